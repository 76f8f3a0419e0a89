/**
 * The answer to a COMMIT is lost between a real PostgreSQL and a real platform: a proxy closes the connection after the
 * server has committed and before the platform gets the answer. lost-answer.test.ts tests the inbox after that.
 */
import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import type { Task } from '../../src/protocol/a2a.ts'
import { replyText } from '../harness/platform.ts'
import { startPostgres, type TestPostgres } from '../harness/stores/postgres.ts'
import { waitUntil } from '../harness/wait.ts'
import { createCrashHarness, recordingCommand, send } from './crash-harness.ts'
import { startDatabaseProxy } from './database-proxy.ts'

let postgres: TestPostgres
before(async () => {
  postgres = await startPostgres()
})
after(() => postgres.stop())

test('RE-3 IN-1 when the answer to the COMMIT of an admission is lost, the client gets 503, and sent again the message finds its task, which runs once', async (t) => {
  const { harness, proxy, workspaceId } = await prepareProxied(t)
  const message = { workspaceId, messageId: 'only', text: 'lost-in-admission' }
  const lost = proxy.loseCommitOf(message.text)
  await assert.rejects(send(harness.platform, message), /STORE_UNAVAILABLE/)
  await lost
  let task: Task | undefined
  await waitUntil(async () => {
    task = await send(harness.platform, { ...message, wait: false }).catch(() => undefined)
    return task !== undefined
  }, 'the store is available again')
  // It is leased to a worker that does not know of it; the platform recovers the lease by itself.
  const answered = await send(harness.platform, message)
  assert.deepEqual([answered?.id, answered && replyText(answered)], [task?.id, 'done: lost-in-admission\n'])
  const [stored, ...more] = await harness.end()
  assert.deepEqual([stored?.state, stored?.replies, more], ['done', 1, []])
  assert.deepEqual(await harness.runs(), [message.text])
})

test('RE-3 IN-10 when the answer to the COMMIT of a settle is lost, the settle is repeated, and there is one reply of one run', async (t) => {
  const { harness, proxy, workspaceId } = await prepareProxied(t)
  const message = { workspaceId, messageId: 'only', text: 'lost-in-settle' }
  const lost = proxy.loseCommitOf(`done: ${message.text}`)
  assert.ok(await send(harness.platform, { ...message, wait: false }))
  await lost
  let answered: Task | undefined
  await waitUntil(async () => {
    answered = await send(harness.platform, { ...message, wait: false }).catch(() => undefined)
    return answered !== undefined && replyText(answered) === `done: ${message.text}\n`
  }, 'the message is answered')
  const [stored, ...more] = await harness.end()
  assert.deepEqual([stored?.state, stored?.losses, stored?.replies, more], ['done', 0, 1, []])
  assert.deepEqual(await harness.runs(), [message.text])
})

/** A platform that reaches its database through a proxy. */
async function prepareProxied(t: TestContext) {
  const proxy = await startDatabaseProxy(await postgres.url())
  const harness = await createCrashHarness(t, proxy.url)
  t.after(() => proxy.close())
  const platform = await harness.start()
  const workspaceId = await platform.exec(recordingCommand(harness.folder, 'echo "done: $input"'))
  return { proxy, harness, workspaceId }
}
