import { once } from 'node:events'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { secretOf, WORKSPACE_ID } from '../../../test/fakes/platform/fake-platform.ts'
import { openDoor, sendParams } from '../../../test/harness/open-door.ts'
import { waitUntil } from '../../../test/harness/wait.ts'

const WAIT_MS = 10_000

/** Writes bytes and keeps the answer. */
async function dial(t: TestContext, url: string, head: readonly string[]) {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  t.after(() => socket.destroy())
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk
  })
  await once(socket, 'connect')
  const authorization = `Authorization: Bearer ${secretOf('admin')}`
  socket.write(`${[...head, 'Host: localhost', authorization].join('\r\n')}\r\n\r\n`)
  const answered = (what: RegExp) =>
    waitUntil(
      () => what.test(text),
      () => `${what}: ${text}`,
      WAIT_MS,
    )
  return { socket, answered, text: () => text }
}

const KEY = ['Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', 'Sec-WebSocket-Version: 13']

test('PL-7 an upgrade to a WebSocket is accepted in any case of its name, any other is answered as usual', async (t) => {
  const { url } = await openDoor(t)
  for (const name of ['websocket', 'WebSocket']) {
    const upgrade = await dial(t, url, ['GET /ws HTTP/1.1', 'Connection: Upgrade', `Upgrade: ${name}`, ...KEY])
    await upgrade.answered(/^HTTP\/1\.1 101 /)
  }
  const http2 = await dial(t, url, ['GET /health HTTP/1.1', 'Connection: Upgrade', 'Upgrade: h2c'])
  await http2.answered(/^HTTP\/1\.1 200 .*"ok"/s)
})

test('PL-9 a client that asks before it sends its body may go on, and is then answered', async (t) => {
  const { url } = await openDoor(t)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'SendMessage', params: sendParams('hello') })
  const post = [`POST /workspaces/${WORKSPACE_ID}/a2a HTTP/1.1`, 'Expect: 100-continue']
  const { socket, answered } = await dial(t, url, [...post, `Content-Length: ${body.length}`])
  await answered(/^HTTP\/1\.1 100 Continue\r\n\r\n$/)
  socket.write(body)
  await answered(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 .*TASK_STATE_COMPLETED/s)
  const large = await dial(t, url, [...post, `Content-Length: ${8 * 1024 * 1024 + 1}`])
  await large.answered(/^HTTP\/1\.1 413 .*connection: close.*larger than 8388608 bytes/is)
})
