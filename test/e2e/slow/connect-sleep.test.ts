/**
 * A bridge that sleeps past its lease, as a laptop does: SIGSTOP, a pause, SIGCONT. A lease lasts 30 s, and only a
 * platform that has been up that long takes it over. These tests are slow and therefore run in parallel.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { startProxy } from '../../fakes/tcp-proxy.ts'
import { readLines, startBridge, temporaryHome } from '../../harness/bridge.ts'
import { isAlive } from '../../harness/live-processes.ts'
import { replyText, sendWithoutWaiting, waitForFinalTask } from '../../harness/platform.ts'
import { prepareBridge } from '../../harness/prepared-bridge.ts'
import { waitUntil } from '../../harness/wait.ts'

const PAST_THE_LEASE_MS = 36_000

describe('a bridge that sleeps', { concurrency: true }, () => {
  test('CN-9 time asleep does not count against the turn; without a takeover the answer is accepted', async (t) => {
    const { platform, workspace, home, runs } = await prepareBridge(t)
    const cmd = `echo run >> ${runs}; sleep 5; cat`
    const args = ['--backend-opt', 'timeout=25s']
    const bridge = await startBridge(t, { url: platform.url, workspace, home, cmd, args })
    const taskId = await sendWithoutWaiting(platform, workspace.id, 'good night')
    await waitUntil(() => readLines(runs).length === 1)
    bridge.kill('SIGSTOP')
    await delay(PAST_THE_LEASE_MS)
    bridge.kill('SIGCONT')
    assert.equal(replyText(await waitForFinalTask(platform, workspace.id, taskId)), 'good night')
    assert.equal(readLines(runs).length, 1)
    assert.equal(replyText(await platform.send(workspace.id, 'good morning')), 'good morning')
  })

  test('CN-9 a bridge that wakes up after a takeover stops its turn', async (t) => {
    const { platform, workspace, home, runs } = await prepareBridge(t)
    const cmd = `echo $$ >> ${runs}; [ $NAME = sleeper ] && sleep 1000; cat`
    const start = { url: platform.url, workspace, home, cmd, args: ['--backend-opt', 'timeout=none'] }
    const sleeper = await startBridge(t, { ...start, env: { NAME: 'sleeper' } })
    const taskId = await sendWithoutWaiting(platform, workspace.id, 'hello')
    await waitUntil(() => readLines(runs).length === 1)
    sleeper.kill('SIGSTOP')
    await startBridge(t, { ...start, env: { NAME: 'other' } })
    assert.equal(replyText(await waitForFinalTask(platform, workspace.id, taskId)), 'hello')
    assert.ok(isAlive(Number(readLines(runs)[0])))
    sleeper.kill('SIGCONT')
    await sleeper.waitForOutput(/taken over by another bridge, stopped here: "hello"/)
    await waitUntil(() => !isAlive(Number(readLines(runs)[0])))
    assert.equal(readLines(runs).length, 2)
  })

  test("CN-4 an answer that arrives after another bridge's answer is kept as a late result", async (t) => {
    const { platform, workspace, home } = await prepareBridge(t)
    const proxy = await startProxy(platform.url)
    t.after(() => proxy.close())
    const runs = join(home, 'runs')
    const start = { workspace, home, cmd: `echo $NAME >> ${runs}; echo by $NAME` }
    const first = await startBridge(t, { ...start, url: proxy.url, env: { NAME: 'first' } })
    let swallowed = 0
    proxy.rule((line) => (line.includes('/inbox/settle') && ++swallowed > 0 ? 'swallow' : 'pass'))
    const taskId = await sendWithoutWaiting(platform, workspace.id, 'hello')
    await waitUntil(() => swallowed > 0)
    first.kill('SIGKILL')
    await first.ended
    // Another home, as on another machine: a bridge in the same home would post the first bridge's spool.
    await startBridge(t, { ...start, home: temporaryHome(t), url: platform.url, env: { NAME: 'second' } })
    assert.equal(replyText(await waitForFinalTask(platform, workspace.id, taskId)), 'by second\n')
    proxy.rule(() => 'pass')
    const again = await startBridge(t, { ...start, url: proxy.url, env: { NAME: 'third' } })
    assert.match(again.output(), /is too late and kept as a late result/)
    assert.deepEqual(readLines(runs), ['first', 'second'])
    const { body } = await platform.request('GET', `/workspaces/${workspace.id}/activity`)
    assert.equal(body.activity.filter((one: { type: string }) => one.type === 'late').length, 1)
    assert.equal(replyText(await waitForFinalTask(platform, workspace.id, taskId)), 'by second\n')
  })
})
