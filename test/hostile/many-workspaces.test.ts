/** Many workspaces on a real platform: lists come in pages, and every client reads all of them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPlatformClient } from '../../src/client/platform-client.ts'
import { listWorkspaces } from '../../src/client/workspaces.ts'
import { startPlatformFor } from '../harness/platform.ts'

test('PL-23 GET /workspaces is paged by rows and by bytes, and the client reads every page', async (t) => {
  const platform = await startPlatformFor(t)
  const large = 'x'.repeat(200 * 1024)
  const made: string[] = []
  for (let count = 0; count < 12; count++) {
    const runtimeConfig = count % 2 === 0 ? { reply: large } : {}
    const input = { name: `agent ${count}`, runtime: 'mock', runtime_config: runtimeConfig }
    const { status, body } = await platform.request('POST', '/workspaces', input)
    assert.equal(status, 201, JSON.stringify(body).slice(0, 300))
    made.push(body.id)
  }
  const sizes: number[] = []
  const seen: string[] = []
  for (let after: string | undefined = ''; after !== undefined; ) {
    const { body } = await platform.request('GET', `/workspaces?limit=1000&after=${after}`)
    assert.ok(Buffer.byteLength(JSON.stringify(body)) < 1.1 * 1024 * 1024)
    sizes.push(body.workspaces.length)
    seen.push(...body.workspaces.map(({ id }: { id: string }) => id))
    after = body.next
  }
  assert.ok(sizes.length > 1, `pages of ${sizes.join(', ')}`)
  assert.deepEqual(seen, made.toSorted())
  const { url, token } = platform
  const listed = await listWorkspaces(createPlatformClient({ url, token }))
  assert.deepEqual(
    listed.map(({ id }) => id),
    seen,
  )
})

test('PL-2 PL-23 a list shows what a workspace works on, and of a large message its size', async (t) => {
  const platform = await startPlatformFor(t)
  const idOf = async (name: string) => {
    const input = { name, runtime: 'exec', runtime_config: { cmd: 'sleep 60' } }
    return (await platform.request('POST', '/workspaces', input)).body.id as string
  }
  const [short, long] = [await idOf('short'), await idOf('long')]
  const send = (id: string, text: string) => {
    const message = { messageId: `m-${id}`, role: 'ROLE_USER', parts: [{ text }] }
    return platform.rpc(id, 'SendMessage', { message, configuration: { returnImmediately: true } })
  }
  await send(short, 'count the stars')
  await send(long, 'x'.repeat(100 * 1024))
  const { workspaces } = (await platform.request('GET', '/workspaces')).body
  const taskOf = (wanted: string) => workspaces.find(({ id }: { id: string }) => id === wanted).current_task
  assert.equal(taskOf(short), 'count the stars')
  assert.match(taskOf(long), /^a message of 10\d KB$/)
})
