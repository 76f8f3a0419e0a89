/** A bridge whose backend, network or platform fails: it keeps running, and no message is computed twice. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readLines, startBridge } from '../../harness/bridge.ts'
import { isAlive } from '../../harness/live-processes.ts'
import {
  getWorkspace,
  replyText,
  sendWithoutWaiting,
  startPlatformFor,
  waitForFinalTask,
} from '../../harness/platform.ts'
import { prepareBridge, prepareBridgeBehindProxy } from '../../harness/prepared-bridge.ts'
import { waitUntil } from '../../harness/wait.ts'

/** A bridge that is killed while it writes leaves half a file, which was never posted and does not count. */
function isWholeOutcome(path: string): boolean {
  try {
    JSON.parse(readFileSync(path, 'utf8'))
    return path.endsWith('.json')
  } catch {
    return false
  }
}

/** The spool files of the only bridge in this home. */
function spoolOf(home: string): string[] {
  const [bridgeDir = ''] = readdirSync(join(home, 'bridge')).filter((name) => name.includes('ws_'))
  const folder = join(home, 'bridge', bridgeDir, '0', 'outbox')
  return readdirSync(folder).map((name) => join(folder, name))
}

test('CN-3 a failed turn is retried, other messages continue, and the workspace shows why it is degraded', async (t) => {
  const { platform, workspace, home, runs } = await prepareBridge(t)
  const cmd = `read text; echo $text >> ${runs}; if [ $text = bad ] && [ $(grep -c bad ${runs}) = 1 ]; then exit 3; fi; echo fine`
  const bridge = await startBridge(t, { url: platform.url, workspace, home, cmd })
  const bad = await sendWithoutWaiting(platform, workspace.id, 'bad\n')
  await waitUntil(async () => (await getWorkspace(platform, workspace.id)).status === 'degraded')
  assert.match(
    (await getWorkspace(platform, workspace.id)).status_reason,
    /its last turn failed: attempt 2 of 4 in 5 s: .* ended with exit code 3/,
  )
  await bridge.waitForOutput(/failed: .*: "bad" from admin/)
  assert.equal(replyText(await platform.send(workspace.id, 'good\n')), 'fine\n')
  assert.equal(replyText(await waitForFinalTask(platform, workspace.id, bad)), 'fine\n')
  assert.deepEqual(readLines(runs), ['bad', 'good', 'bad'])
  await waitUntil(async () => (await getWorkspace(platform, workspace.id)).status === 'online')
})

test('CN-4 when the response to a settle is lost, the bridge sends the reply again and does not recompute it', async (t) => {
  const { platform, workspace, home, proxy, runs } = await prepareBridgeBehindProxy(t)
  const bridge = await startBridge(t, { url: proxy.url, workspace, home, cmd: `echo run >> ${runs}; echo the answer` })
  let settles = 0
  proxy.rule((line) => (line.includes('/inbox/settle') && ++settles === 1 ? 'lose' : 'pass'))
  assert.equal(replyText(await platform.send(workspace.id, 'x')), 'the answer\n')
  await bridge.waitForOutput(/answered "x"/)
  assert.deepEqual([settles, readLines(runs).length], [2, 1])
  assert.deepEqual(spoolOf(home), [])
  assert.equal(replyText(await platform.send(workspace.id, 'y')), 'the answer\n')
})

test('CN-4 a bridge killed before it posts a reply posts it after its restart, before it leases anything', async (t) => {
  const { platform, workspace, home, proxy, runs } = await prepareBridgeBehindProxy(t)
  const start = { url: proxy.url, workspace, home, cmd: `cat; echo run >> ${runs}` }
  const first = await startBridge(t, start)
  const requests: string[] = []
  proxy.rule((line) => (line.includes('/inbox/settle') ? 'swallow' : 'pass'))
  const taskId = await sendWithoutWaiting(platform, workspace.id, 'precious')
  await waitUntil(() => spoolOf(home).some(isWholeOutcome))
  const [kept = ''] = spoolOf(home)
  assert.equal(statSync(kept).mode & 0o777, 0o600)
  first.kill('SIGKILL')
  await first.ended
  proxy.rule((line) => {
    requests.push(line)
    return 'pass'
  })
  const second = await startBridge(t, start)
  const task = await waitForFinalTask(platform, workspace.id, taskId)
  assert.equal(replyText(task), 'precious')
  assert.match(second.output(), /posted the answer of an earlier run/)
  assert.deepEqual([readLines(runs).length, spoolOf(home)], [1, []])
  const names = requests.map((line) => /inbox\/(\w+)/.exec(line)?.[1]).filter(Boolean)
  assert.deepEqual(names.slice(0, 2), ['settle', 'lease'])
})

test('CN-4 a failure that a killed bridge could not post is posted after its restart and counted once', async (t) => {
  const { platform, workspace, home, proxy, runs } = await prepareBridgeBehindProxy(t)
  const cmd = `echo run >> ${runs}; [ $(wc -l < ${runs}) = 1 ] && exit 3; cat`
  const start = { url: proxy.url, workspace, home, cmd }
  const first = await startBridge(t, start)
  proxy.rule((line) => (line.includes('/inbox/settle') ? 'swallow' : 'pass'))
  const taskId = await sendWithoutWaiting(platform, workspace.id, 'hello')
  await waitUntil(() => spoolOf(home).some(isWholeOutcome), 'the failure is in the spool')
  first.kill('SIGKILL')
  await first.ended
  proxy.rule(() => 'pass')
  const second = await startBridge(t, start)
  assert.equal(replyText(await waitForFinalTask(platform, workspace.id, taskId)), 'hello')
  assert.match(second.output(), /posted the answer of an earlier run/)
  const { body } = await platform.request('GET', `/messages/${taskId}/story`)
  assert.match(JSON.stringify(body), /exit code 3/)
  assert.equal(readLines(runs).length, 2)
})

test('CN-4 a bridge killed during a turn leaves no process, and the next bridge runs the message at once', async (t) => {
  const { platform, workspace, home, runs } = await prepareBridge(t)
  const cmd = `echo $$ >> ${runs}; [ $(wc -l < ${runs}) = 1 ] && sleep 1000; cat`
  const start = { url: platform.url, workspace, home, cmd }
  const first = await startBridge(t, start)
  const taskId = await sendWithoutWaiting(platform, workspace.id, 'hello')
  await waitUntil(() => readLines(runs).length === 1)
  first.kill('SIGKILL')
  await first.ended
  await startBridge(t, start)
  assert.equal(replyText(await waitForFinalTask(platform, workspace.id, taskId)), 'hello')
  assert.ok(!isAlive(Number(readLines(runs)[0])))
})

test('CN-5 a platform that is killed and restarted during a turn still gets the answer of that turn', async (t) => {
  const { platform, workspace, home, runs } = await prepareBridge(t)
  const gate = join(home, 'gate')
  const cmd = `echo run >> ${runs}; until [ -e ${gate} ]; do sleep 0.05; done; cat`
  const bridge = await startBridge(t, { url: platform.url, workspace, home, cmd })
  const taskId = await sendWithoutWaiting(platform, workspace.id, 'hello')
  await waitUntil(() => readLines(runs).length === 1)
  await platform.stop('SIGKILL')
  await bridge.waitForOutput(/cannot be reached .*retrying in/)
  writeFileSync(gate, '')
  const port = new URL(platform.url).port
  const back = await startPlatformFor(t, { dataDir: platform.dataDir, args: ['--port', port] })
  assert.equal(replyText(await waitForFinalTask(back, workspace.id, taskId)), 'hello')
  await bridge.waitForOutput(/connected again/)
  assert.equal(replyText(await back.send(workspace.id, 'next')), 'next')
  assert.equal(readLines(runs).length, 2)
})

test('CN-4 a bridge stopped while the platform is unreachable keeps its answer and posts it at the next start', async (t) => {
  const { platform, workspace, home, proxy, runs } = await prepareBridgeBehindProxy(t)
  const start = { url: proxy.url, workspace, home, cmd: `cat; echo run >> ${runs}`, args: ['--drain', '300ms'] }
  const bridge = await startBridge(t, start)
  const badGateway = 'HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n'
  let refused = 0
  proxy.rule((line) => (line.includes('/inbox/settle') && ++refused > 0 ? { answer: badGateway } : 'pass'))
  const taskId = await sendWithoutWaiting(platform, workspace.id, 'hello')
  await waitUntil(() => refused > 0)
  bridge.kill('SIGTERM')
  assert.equal(await bridge.ended, 0)
  assert.match(bridge.output(), /answers not yet posted to the platform: 1/)
  proxy.rule(() => 'pass')
  await startBridge(t, start)
  assert.equal(replyText(await waitForFinalTask(platform, workspace.id, taskId)), 'hello')
  assert.equal(readLines(runs).length, 1)
})

test('CN-5 after a token rotation the bridge reports it, retries, and continues with the new token of its file', async (t) => {
  const { platform, workspace, home } = await prepareBridge(t)
  const file = join(home, 'token')
  writeFileSync(file, `${workspace.auth_token}\n`)
  const bridge = await startBridge(t, { url: platform.url, workspace, home, cmd: 'cat', token: ['--token-file', file] })
  const { body } = await platform.request('GET', '/tokens')
  const { id } = body.tokens.find((token: { workspace_id?: string }) => token.workspace_id === workspace.id)
  const rotated = await platform.request('POST', `/tokens/${id}/rotate`, { overlap: '0s' })
  assert.equal(rotated.status, 200, JSON.stringify(rotated.body))
  await sendWithoutWaiting(platform, workspace.id, 'ends the waiting lease call')
  await bridge.waitForOutput(/replaced by a rotation.*write the new token to/)
  writeFileSync(file, rotated.body.token)
  await bridge.waitForOutput(/connected again/)
  assert.equal(replyText(await platform.send(workspace.id, 'hello')), 'hello')
})

test('CN-5 the bridge waits for the Retry-After of a 429 or 503 and loses nothing', async (t) => {
  const { platform, workspace, home, proxy, runs } = await prepareBridgeBehindProxy(t)
  const bridge = await startBridge(t, { url: proxy.url, workspace, home, cmd: `cat; echo run >> ${runs}` })
  const refusals = ['429 Too Many Requests', '503 Service Unavailable']
  const times: number[] = []
  proxy.rule((line) => {
    if (!line.includes('/inbox/settle')) return 'pass'
    times.push(performance.now())
    const status = refusals.shift()
    return status === undefined
      ? 'pass'
      : { answer: `HTTP/1.1 ${status}\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n` }
  })
  assert.equal(replyText(await platform.send(workspace.id, 'x')), 'x')
  assert.deepEqual([times.length, readLines(runs).length], [3, 1])
  // The bridge's own backoff would be half a second; Retry-After asks for one second.
  for (let index = 1; index < times.length; index++) {
    assert.ok((times[index] as number) - (times[index - 1] as number) >= 990)
  }
  assert.match(bridge.output(), /HTTP 429.*retrying in 1s/)
})

test('CN-5 a silent connection times out, and a message leased over it runs once', async (t) => {
  const { platform, workspace, home, proxy, runs } = await prepareBridgeBehindProxy(t)
  const bridge = await startBridge(t, { url: proxy.url, workspace, home, cmd: `cat; echo run >> ${runs}` })
  proxy.silence()
  const taskId = await sendWithoutWaiting(platform, workspace.id, 'into the void')
  await bridge.waitForOutput(/did not answer in time/)
  assert.equal(replyText(await waitForFinalTask(platform, workspace.id, taskId)), 'into the void')
  assert.equal(readLines(runs).length, 1)
  const { body } = await platform.request('GET', `/workspaces/${workspace.id}/activity`)
  assert.equal(body.activity.filter((one: { type: string }) => one.type === 'late').length, 0)
})
