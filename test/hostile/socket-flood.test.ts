/** A viewer that asks a socket for thousands of streams, on a real platform: few log lines, and others are served. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { bearerOptions, connectSocket } from '../harness/clients/socket-client.ts'
import { withPlatform } from '../harness/platform.ts'
import { within } from '../harness/wait.ts'

const POLICY_VIOLATION = 1008

test(
  'RE-3 RE-9 a client that names thousands of wrong streams is disconnected, and the log gets a line a message',
  withPlatform(async (platform) => {
    const { body: viewer } = await platform.request('POST', '/tokens', { name: 'v', role: 'viewer' })
    const id = await platform.exec('cat')
    const logLines = () => readFileSync(join(platform.dataDir, 'molecule.log'), 'utf8').split('\n').length
    const before = logLines()
    const client = await connectSocket(platform.url, bearerOptions(viewer.token))
    const messages = 10
    for (let message = 0; message < messages; message++) {
      const names = Array.from({ length: 1900 }, (_, index) => [`ws_${message}_${index}`, 0])
      client.send({ subscribe: Object.fromEntries(names) })
    }
    assert.equal(await within(client.closed, 'the client is disconnected'), POLICY_VIOLATION)
    assert.ok(client.messages.length < 1900, `${client.messages.length} refusals were sent`)
    assert.match(JSON.stringify(client.messages[0]), /"type":"error"/)
    const added = logLines() - before
    assert.ok(added <= 2 * messages, `${added} log lines`)

    const { body: other } = await platform.request('POST', '/tokens', { name: 'w', role: 'viewer' })
    const honest = await connectSocket(platform.url, bearerOptions(other.token))
    honest.send({ subscribe: { [id]: 0, gone: 0 } })
    await platform.send(id, 'hello')
    await within(
      (async () => {
        while (honest.seqs(id).length === 0) await new Promise((resolve) => honest.socket.once('message', resolve))
      })(),
      'another client gets its events',
    )
    assert.equal(honest.socket.readyState, honest.socket.OPEN)
    honest.socket.close()
  }),
)
