/** A bridge whose handler cannot run: the messages wait, people see why, and it goes on when the handler works again. */
import assert from 'node:assert/strict'
import { chmodSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createExternalWorkspace, readLines, startBridge, temporaryHome } from '../../harness/bridge.ts'
import { runCommand } from '../../harness/command.ts'
import {
  getTask,
  getWorkspace,
  type PlatformUnderTest,
  reasonText,
  replyText,
  sendWithoutWaiting,
  startPlatformFor,
  waitForFinalTask,
} from '../../harness/platform.ts'
import { waitUntil } from '../../harness/wait.ts'

async function setUp(t: TestContext, more: object = {}) {
  const platform = await startPlatformFor(t)
  const workspace = await createExternalWorkspace(platform, more)
  const home = temporaryHome(t)
  const [handler, runs] = [join(home, 'handler'), join(home, 'runs')]
  /** Appears whole, as an editor writes it: a shell cannot run a file that is still open for writing. */
  const install = (script: string) => {
    writeFileSync(`${handler}.new`, `#!/bin/sh\n${script}\n`)
    chmodSync(`${handler}.new`, 0o755)
    renameSync(`${handler}.new`, handler)
  }
  return { platform, workspace, id: workspace.id, home, handler, runs, install }
}

const statusIs = (platform: PlatformUnderTest, id: string, status: string) =>
  waitUntil(async () => (await getWorkspace(platform, id)).status === status, `the workspace is ${status}`)

test('CN-3 messages wait for a handler that is missing, with the reason, and are answered in order when it is there', async (t) => {
  const { platform, workspace, id, home, handler, runs, install } = await setUp(t)
  const bridge = await startBridge(t, { url: platform.url, workspace, home, cmd: handler })
  const tasks = [
    await sendWithoutWaiting(platform, id, 'one\n'),
    await sendWithoutWaiting(platform, id, 'two\n'),
    await sendWithoutWaiting(platform, id, 'three\n'),
  ]
  await statusIs(platform, id, 'degraded')
  const reason =
    /its handler cannot run: a command of the agent was not found \(exit code 127\); messages wait, next try at \d\d:\d\d:\d\d UTC/
  await waitUntil(async () => reason.test((await getWorkspace(platform, id)).status_reason), 'the reason is shown')
  await waitUntil(
    async () => /cannot run/.test(reasonText(await getTask(platform, id, tasks[0] ?? ''))),
    'the task waits',
  )
  const first = await getTask(platform, id, tasks[0] ?? '')
  assert.equal(first.status.state, 'TASK_STATE_WORKING')
  assert.match(reasonText(first), /^waiting: the handler of this workspace cannot run: .*exit code 127.*next try at/)
  await bridge.waitForOutput(/ the handler cannot run: command .*not found\); messages wait, next try at/)
  const env = { MOLECULE_HOME: platform.dataDir, MOLECULE_API_URL: platform.url }
  const overview = (await runCommand(['status'], { env })).out
  assert.match(overview, /\nDegraded:\n {2}Laptop {2}its handler cannot run: a command of the agent was not found/)
  install(`cat >> ${runs}; echo fine`)
  for (const task of tasks) assert.equal(replyText(await waitForFinalTask(platform, id, task)), 'fine\n')
  assert.deepEqual(readLines(runs), ['one', 'two', 'three'])
  await bridge.waitForOutput(/the handler works again/)
  await statusIs(platform, id, 'online')
  const { body } = await platform.request('GET', `/messages/${tasks[0]}/story`)
  assert.match(JSON.stringify(body), /attempt 1 gave the answer/)
})

test('CN-3 a message that a broken handler cannot run goes to another bridge, or to the bridge when it starts again', async (t) => {
  const { platform, workspace, id, home, handler } = await setUp(t)
  const first = await startBridge(t, { url: platform.url, workspace, home, cmd: handler })
  const task = await sendWithoutWaiting(platform, id, 'hello')
  await first.waitForOutput(/cannot run/)
  const second = await startBridge(t, { url: platform.url, workspace, home: temporaryHome(t), cmd: 'cat' })
  assert.equal(replyText(await waitForFinalTask(platform, id, task)), 'hello')
  await second.waitForOutput(/answered "hello"/)
  for (const bridge of [first, second]) {
    bridge.kill('SIGTERM')
    await bridge.ended
  }
  const again = { url: platform.url, workspace, home }
  const broken = await startBridge(t, { ...again, cmd: handler })
  const waiting = await sendWithoutWaiting(platform, id, 'once more')
  await broken.waitForOutput(/cannot run/)
  broken.kill('SIGTERM')
  await broken.ended
  await startBridge(t, { ...again, cmd: 'cat' })
  assert.equal(replyText(await waitForFinalTask(platform, id, waiting)), 'once more')
})

test('CN-3 a message that fails again and again is kept while nothing else is answered; a restart tries it at once', async (t) => {
  const { platform, workspace, id, home, handler, runs, install } = await setUp(t)
  install(`echo run >> ${runs}; echo broken >&2; exit 1`)
  const start = { url: platform.url, workspace, home, cmd: handler }
  const bridge = await startBridge(t, start)
  const task = await sendWithoutWaiting(platform, id, 'hello')
  await waitUntil(() => readLines(runs).length === 4, 'four attempts', 60_000)
  await waitUntil(
    async () => /attempt 5 in 1 min: .*exit code 1/.test((await getWorkspace(platform, id)).status_reason ?? ''),
    'the reason is shown',
  )
  assert.equal((await getWorkspace(platform, id)).status, 'degraded')
  bridge.kill('SIGTERM')
  await bridge.ended
  install('cat')
  await startBridge(t, start)
  assert.equal(replyText(await waitForFinalTask(platform, id, task)), 'hello')
})

test('CN-3 a message that was kept is tried at once when the handler has answered another one', async (t) => {
  const { platform, workspace, id, home, handler, runs, install } = await setUp(t)
  install(`echo run >> ${runs}; exit 1`)
  await startBridge(t, { url: platform.url, workspace, home, cmd: handler })
  const task = await sendWithoutWaiting(platform, id, 'hello')
  await waitUntil(
    async () => /attempt 5 in 1 min/.test((await getWorkspace(platform, id)).status_reason ?? ''),
    'the message is kept',
  )
  install('cat')
  assert.equal(replyText(await platform.send(id, 'works')), 'works')
  const isAnswered = async () => replyText(await getTask(platform, id, task)) === 'hello'
  await waitUntil(isAnswered, 'it is answered before its next time', 30_000)
})

test('CN-3 a max_attempts that somebody set rules, also on a bridge', async (t) => {
  const { platform, workspace, id, home } = await setUp(t, { max_attempts: 1 })
  await startBridge(t, { url: platform.url, workspace, home, cmd: 'exit 1' })
  const task = await waitForFinalTask(platform, id, await sendWithoutWaiting(platform, id, 'hello'))
  assert.equal(task.status.state, 'TASK_STATE_FAILED')
})
