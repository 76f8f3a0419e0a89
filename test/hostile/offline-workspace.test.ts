/** A workspace whose bridge is away must not hold its callers: they get their task and the reason at once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createExternalWorkspace, startBridge, temporaryHome } from '../harness/bridge.ts'
import { reasonText, replyText, startPlatformFor, waitForFinalTask } from '../harness/platform.ts'

const OFFLINE_REASON = 'waiting: the workspace is offline (it has never connected)'

test('IN-7 a blocking call to an offline workspace answers at once with the reason; the message stays queued', async (t) => {
  // Longer than the limit of a test: a call that waits for its limit fails.
  const platform = await startPlatformFor(t, { args: ['--max-block', '10m'] })
  const workspace = await createExternalWorkspace(platform)
  const task = await platform.send(workspace.id, 'hello', { messageId: 'first' })
  assert.equal(task.status.state, 'TASK_STATE_SUBMITTED')
  assert.equal(reasonText(task), OFFLINE_REASON)
  const again = await platform.send(workspace.id, 'hello', { messageId: 'first' })
  assert.equal(again.id, task.id)
  assert.equal(reasonText(again), OFFLINE_REASON)

  await startBridge(t, { url: platform.url, workspace, home: temporaryHome(t), cmd: 'cat' })
  assert.equal(replyText(await waitForFinalTask(platform, workspace.id, task.id)), 'hello')
  const served = await platform.send(workspace.id, 'with a bridge the call waits')
  assert.equal(replyText(served), 'with a bridge the call waits')
})
