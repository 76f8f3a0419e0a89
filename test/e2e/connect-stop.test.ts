/** Stopping a bridge, cancelling its turns, and bridges that share a workspace. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createExternalWorkspace, launchBridge, readLines, startBridge, temporaryHome } from '../harness/bridge.ts'
import { isAlive } from '../harness/live-processes.ts'
import {
  getTask,
  getWorkspace,
  reasonText,
  replyText,
  sendWithoutWaiting,
  startPlatformFor,
  waitForFinalTask,
} from '../harness/platform.ts'
import { prepareBridge } from '../harness/prepared-bridge.ts'
import { waitUntil } from '../harness/wait.ts'

test('CN-6 after SIGTERM a bridge takes no new message, finishes the running turn, and exits with 0', async (t) => {
  const { platform, workspace, home, runs } = await prepareBridge(t)
  const gate = join(home, 'gate')
  const cmd = `echo run >> ${runs}; until [ -e ${gate} ]; do sleep 0.05; done; cat`
  const bridge = await startBridge(t, { url: platform.url, workspace, home, cmd })
  const running = await sendWithoutWaiting(platform, workspace.id, 'running')
  await waitUntil(() => readLines(runs).length === 1)
  bridge.kill('SIGTERM')
  await bridge.waitForOutput(
    /stopping: waiting up to 10 s for 1 running turn \("running" from .*press Ctrl-C again to stop it now/,
  )
  const late = await sendWithoutWaiting(platform, workspace.id, 'late')
  writeFileSync(gate, '')
  assert.equal(await bridge.ended, 0)
  assert.equal(replyText(await waitForFinalTask(platform, workspace.id, running)), 'running')
  assert.equal((await getTask(platform, workspace.id, late)).status.state, 'TASK_STATE_SUBMITTED')
  assert.equal(readLines(runs).length, 1)
})

test('CN-6 a turn that outlives the drain is killed and released; the next bridge runs its message at once', async (t) => {
  const { platform, workspace, home, runs } = await prepareBridge(t)
  const cmd = `echo $$ >> ${runs}; [ $(wc -l < ${runs}) = 1 ] && sleep 1000; cat`
  const start = { url: platform.url, workspace, home, cmd, args: ['--drain', '300ms'] }
  const bridge = await startBridge(t, start)
  const taskId = await sendWithoutWaiting(platform, workspace.id, 'hello')
  await waitUntil(() => readLines(runs).length === 1)
  bridge.kill('SIGTERM')
  assert.equal(await bridge.ended, 0)
  assert.match(bridge.output(), /given back "hello"/)
  assert.ok(!isAlive(Number(readLines(runs)[0])))
  await startBridge(t, start)
  assert.equal(replyText(await waitForFinalTask(platform, workspace.id, taskId)), 'hello')
})

test('CN-6 a second SIGTERM ends the bridge at once and leaves no process', async (t) => {
  const { platform, workspace, home, runs } = await prepareBridge(t)
  const args = ['--drain', '10m']
  const bridge = await startBridge(t, {
    url: platform.url,
    workspace,
    home,
    cmd: `echo $$ >> ${runs}; sleep 1000`,
    args,
  })
  await sendWithoutWaiting(platform, workspace.id, 'hello')
  await waitUntil(() => readLines(runs).length === 1)
  bridge.kill('SIGTERM')
  await bridge.waitForOutput(/stopping/)
  bridge.kill('SIGTERM')
  await bridge.ended
  assert.match(bridge.output(), /stopping now/)
  assert.ok(!isAlive(Number(readLines(runs)[0])))
})

test('CN-6 a bridge that cannot reach its platform can be stopped', async (t) => {
  const home = temporaryHome(t)
  const workspace = { id: `ws_${'0'.repeat(26)}`, auth_token: 'secret', connect: '' }
  const bridge = launchBridge(t, { url: 'http://127.0.0.1:9', workspace, home, cmd: 'cat' })
  // The command works in the folder of the bridge.
  await bridge.waitForOutput(/\(.*ECONNREFUSED.*\); start it there with "\S+\/bin\/molecule up"; retrying in/)
  bridge.kill('SIGINT')
  assert.equal(await bridge.ended, 0)
})

test('CN-6 PL-4 IN-7 a bridge that is stopped signs off: the workspace is offline at once, and callers are told', async (t) => {
  const { platform, workspace, home } = await prepareBridge(t, { args: ['--max-block', '10m'] })
  const start = { url: platform.url, workspace, home, cmd: 'cat' }
  const [one, other] = [await startBridge(t, start), await startBridge(t, start)]
  one.kill('SIGTERM')
  assert.equal(await one.ended, 0)
  assert.equal((await getWorkspace(platform, workspace.id)).status, 'online', 'the other bridge is connected')
  other.kill('SIGTERM')
  assert.equal(await other.ended, 0)
  const stopped = await getWorkspace(platform, workspace.id)
  assert.deepEqual([stopped.status, stopped.status_reason], ['offline', 'its bridge was stopped'])
  const waiting = await platform.send(workspace.id, 'for later')
  assert.equal(reasonText(waiting), 'waiting: the workspace is offline (its bridge was stopped)')
  await startBridge(t, start)
  assert.equal((await getWorkspace(platform, workspace.id)).status, 'online')
  assert.equal(replyText(await waitForFinalTask(platform, workspace.id, waiting.id)), 'for later')
})

test('CN-6 cancelling a task ends its turn on the bridge at once', async (t) => {
  const { platform, workspace, home, runs } = await prepareBridge(t)
  const bridge = await startBridge(t, { url: platform.url, workspace, home, cmd: `echo $$ >> ${runs}; sleep 1000` })
  const taskId = await sendWithoutWaiting(platform, workspace.id, 'hello')
  await waitUntil(() => readLines(runs).length === 1)
  await platform.rpc(workspace.id, 'CancelTask', { id: taskId })
  await bridge.waitForOutput(/cancelled "hello"/)
  assert.ok(!isAlive(Number(readLines(runs)[0])))
})

test('CN-7 two bridges on one machine share the work, and every message is answered once', async (t) => {
  const platform = await startPlatformFor(t)
  const workspace = await createExternalWorkspace(platform, { max_concurrent_tasks: 2 })
  const home = temporaryHome(t)
  const runs = join(home, 'runs')
  const start = { url: platform.url, workspace, home, cmd: `echo $NAME >> ${runs}; sleep 0.1; cat` }
  const one = await startBridge(t, { ...start, env: { NAME: 'one' } })
  const other = await startBridge(t, { ...start, env: { NAME: 'other' } })
  const texts = Array.from({ length: 20 }, (_, index) => `message ${index}`)
  const tasks = await Promise.all(texts.map((text) => platform.send(workspace.id, text)))
  assert.deepEqual(tasks.map(replyText), texts)
  assert.equal(readLines(runs).length, texts.length)
  assert.deepEqual([...new Set(readLines(runs))].sort(), ['one', 'other'])
  for (const bridge of [one, other]) bridge.kill('SIGTERM')
  assert.deepEqual(await Promise.all([one.ended, other.ended]), [0, 0])
})

test('CN-7 a bridge runs at most --concurrency turns at a time', async (t) => {
  const platform = await startPlatformFor(t)
  const workspace = await createExternalWorkspace(platform, { max_concurrent_tasks: 8 })
  const home = temporaryHome(t)
  const runs = join(home, 'runs')
  const cmd = `echo + >> ${runs}; sleep 0.2; echo - >> ${runs}; cat`
  await startBridge(t, { url: platform.url, workspace, home, cmd, args: ['--concurrency', '3'] })
  const texts = Array.from({ length: 12 }, (_, index) => `message ${index}`)
  const tasks = await Promise.all(texts.map((text) => platform.send(workspace.id, text)))
  assert.deepEqual(tasks.map(replyText), texts)
  let running = 0
  const most = Math.max(...readLines(runs).map((line) => (running += line === '+' ? 1 : -1)))
  assert.equal(most, 3)
})
