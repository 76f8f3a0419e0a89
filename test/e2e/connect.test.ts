/** `molecule connect` in normal use, and with wrong arguments. */
import assert from 'node:assert/strict'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { builtinBackends, createBackendRegistry } from '../../src/backends/backends.ts'
import { createFakeProgram, writeFakeAgent } from '../fakes/agents/fake-program.ts'
import { createExternalWorkspace, launchBridge, spawnBridge, startBridge, temporaryHome } from '../harness/bridge.ts'
import { MOLECULE } from '../harness/command.ts'
import { getTask, getWorkspace, replyText, sendWithoutWaiting, startPlatformFor } from '../harness/platform.ts'
import { prepareBridge } from '../harness/prepared-bridge.ts'
import { waitUntil } from '../harness/wait.ts'

const ESCAPE = '\u001b'

test('CN-1 connect registers, answers messages one after another, and exits with 0', async (t) => {
  const { platform, workspace, home } = await prepareBridge(t)
  const bridge = await startBridge(t, { url: platform.url, workspace, home, cmd: 'tr a-z A-Z; pwd' })
  assert.equal((await getWorkspace(platform, workspace.id)).status, 'online')
  for (const text of ['one', 'two', 'three']) {
    assert.equal(replyText(await platform.send(workspace.id, text)), `${text.toUpperCase()}${home}\n`)
  }
  bridge.kill('SIGTERM')
  assert.equal(await bridge.ended, 0)
  assert.match(bridge.output(), /running "two" from admin/)
  assert.match(bridge.output(), /answered "two"/)
  assert.ok(!bridge.output().includes(ESCAPE))
  assert.equal(statSync(join(home, 'bridge')).mode & 0o077, 0)
})

test('CN-1 the command that creating a workspace returns can be pasted into a shell', async (t) => {
  const platform = await startPlatformFor(t)
  const workspace = await createExternalWorkspace(platform)
  const env = { MOLECULE_HOME: temporaryHome(t), PATH: `${dirname(MOLECULE)}:${process.env['PATH']}` }
  const line = `exec ${workspace.connect} --backend mock --backend-opt reply=ok`
  const bridge = spawnBridge(t, { command: '/bin/sh', args: ['-c', line], env, cwd: env.MOLECULE_HOME })
  await bridge.waitForOutput(/waiting for messages/)
  assert.equal(replyText(await platform.send(workspace.id, 'hello')), 'ok')
  const commandLine = readFileSync(`/proc/${bridge.pid}/cmdline`, 'utf8')
  assert.ok(!commandLine.includes(workspace.auth_token), 'the token is visible in the process list')
})

/** Commands as the first announcement shows them. PATH has a fake claude and a fake python. */
const LINES = [
  ['', 'echo', /claude-code/],
  [`--backend exec --backend-opt cmd="python myhandler.py"`, 'handled: hello', /exec/],
  [`--backend-opt args="--model claude-sonnet-4-6"`, 'echo', /claude-code/],
  ['--backend mock --backend-opt reply=ok', 'ok', /mock/],
] as const

test('CN-1 AG-1 EX-1 the four commands of the first announcement work as written', async (t) => {
  const platform = await startPlatformFor(t)
  const folder = temporaryHome(t)
  writeFakeAgent(join(folder, 'claude'), { agent: 'claude', scenario: 'echo', dir: folder })
  writeFileSync(join(folder, 'python'), '#!/bin/sh\nexec /bin/sh "$@"\n', { mode: 0o755 })
  writeFileSync(join(folder, 'myhandler.py'), 'printf "handled: "; cat\n')
  for (const [flags, answer, backend] of LINES) {
    const workspace = await createExternalWorkspace(platform)
    const env = {
      MOLECULE_HOME: temporaryHome(t),
      MOLECULE_API_URL: platform.url,
      T: workspace.auth_token,
      PATH: `${folder}:${dirname(MOLECULE)}:${process.env['PATH']}`,
    }
    const line = `exec molecule connect ${workspace.id} --token $T ${flags}`
    const bridge = spawnBridge(t, { command: '/bin/sh', args: ['-c', line], env, cwd: folder })
    await bridge.waitForOutput(/waiting for messages/)
    assert.match(bridge.output(), backend)
    assert.equal(replyText(await platform.send(workspace.id, 'hello')), answer === 'echo' ? 'hello' : answer)
    bridge.kill('SIGTERM')
    assert.equal(await bridge.ended, 0)
  }
  const starts = readFileSync(join(folder, 'starts.jsonl'), 'utf8').trim().split('\n')
  assert.deepEqual(JSON.parse(starts.at(-1) ?? '').argv.slice(0, 3), ['-p', '--model', 'claude-sonnet-4-6'])
})

test('CN-1 CL-7 connect takes the name of its workspace', async (t) => {
  const platform = await startPlatformFor(t)
  const workspace = await createExternalWorkspace(platform, { name: 'my laptop' })
  const start = { url: platform.url, home: temporaryHome(t), args: ['--backend', 'mock'] }
  const bridge = await startBridge(t, { ...start, workspace: { ...workspace, id: 'my laptop' } })
  assert.equal(replyText(await platform.send(workspace.id, 'hello')), 'echo: hello')
  bridge.kill('SIGTERM')
  assert.equal(await bridge.ended, 0)
  const wrong = launchBridge(t, { ...start, workspace: { ...workspace, id: 'your laptop' } })
  assert.equal(await wrong.ended, 1)
  assert.match(wrong.output(), /there is no workspace your laptop/)
})

test('BK-6 CN-1 the help of connect names every backend, sorted', async (t) => {
  const help = spawnBridge(t, { command: MOLECULE, args: ['connect', '--help'], env: {}, cwd: temporaryHome(t) })
  assert.equal(await help.ended, 0)
  const names = createBackendRegistry(builtinBackends).names()
  assert.ok(
    help
      .output()
      .replaceAll(/\s+/g, ' ')
      .includes(`the agent: ${names.join(', ')} (claude-code)`),
  )
})

test('CN-1 BK-7 a usage error exits with 2 and says what is valid', async (t) => {
  const home = temporaryHome(t)
  const workspace = { id: 'ws_1', auth_token: 'secret', connect: '' }
  const start = { url: 'http://127.0.0.1:9', workspace, home }
  const cases: [readonly string[], RegExp][] = [
    [['--backend', 'nope'], /unknown backend "nope"; valid: a2a, .*claude, .*exec, .*mock/],
    [['--backend', ''], /unknown backend ""; valid:/],
    [['--backend', 'exec', '--backend-opt', 'cmd'], /It must be KEY=VALUE/],
    [['--backend', 'mock', '--concurrency', '0'], /--concurrency must be a whole number from 1 to 64/],
    [['--backend', 'mock', '--dir', '/nowhere'], /there is no folder \/nowhere/],
    [['--backend', 'mock', '--drain', 'soon'], /--drain must be a duration/],
    [['--backend', 'mock', '--api-url', 'ftp://x'], /--api-url is not an http address/],
    [['--nonsense'], /unknown option/],
  ]
  for (const [args, message] of cases) {
    const bridge = launchBridge(t, { ...start, args })
    assert.equal(await bridge.ended, 2, bridge.output())
    assert.match(bridge.output(), message)
  }
  const tokenless = launchBridge(t, { ...start, token: [], args: ['--backend', 'mock'] })
  assert.equal(await tokenless.ended, 2)
  assert.match(tokenless.output(), /--token, --token-file or MOLECULE_WORKSPACE_TOKEN/)
})

test('CN-1 BK-5 BK-8 a setup that cannot work exits with 1 at start; unknown options cause a warning', async (t) => {
  const platform = await startPlatformFor(t)
  const workspace = await createExternalWorkspace(platform)
  const hosted = { ...workspace, id: await platform.exec('cat') }
  const start = { url: platform.url, workspace, home: temporaryHome(t) }
  const refused = async (more: object, message: RegExp) => {
    const bridge = launchBridge(t, { ...start, ...more })
    assert.equal(await bridge.ended, 1, bridge.output())
    assert.match(bridge.output(), message)
  }
  for (const target of [workspace, { ...workspace, id: 'Laptop' }])
    for (const [args, origin] of [
      [['--backend', 'mock'], '--token'],
      [['--backend', 'mock', '--dry-run'], '--token'],
    ] as const) {
      const message = new RegExp(
        `does not accept the token from ${origin} \\(this token is not known here\\); give the token of ${target.id} by --token, --token-file or MOLECULE_WORKSPACE_TOKEN\\. An admin makes a new one with .molecule workspace connect-command ${target.id}. or on the page`,
      )
      const bridge = launchBridge(t, { ...start, args, workspace: target, token: ['--token', 'wrong'] })
      assert.equal(await bridge.ended, 1, bridge.output())
      assert.match(bridge.output(), message)
      assert.doesNotMatch(bridge.output(), /MOLECULE_ADMIN_TOKEN/)
    }
  await refused({ args: ['--backend', 'mock'], workspace: hosted }, /speaks for|does not reach/)
  await refused({ args: ['--backend', 'exec'] }, /backend option "cmd" is required/)
  const relay = ['--backend', 'a2a', '--backend-opt', 'url=http://127.0.0.1:9/']
  await refused({ args: relay }, /the backend a2a cannot run here: .*127\.0\.0\.1:9/)
  const options = ['--backend-opt', 'reply=ok', '--backend-opt', 'colour=red']
  const bridge = await startBridge(t, { ...start, args: ['--backend', 'mock', ...options] })
  assert.match(bridge.output(), /warning: the backend mock has no option "colour" and ignores it/)
})

test('CN-1 a dry run checks everything and takes no message', async (t) => {
  const platform = await startPlatformFor(t)
  const workspace = await createExternalWorkspace(platform)
  const waiting = await sendWithoutWaiting(platform, workspace.id, 'hello')
  const start = { url: platform.url, workspace, home: temporaryHome(t), cmd: 'cat' }
  const dryRun = launchBridge(t, { ...start, args: ['--dry-run'] })
  assert.equal(await dryRun.ended, 0, dryRun.output())
  assert.match(dryRun.output(), /Dry run: nothing was registered.*workspace {2}Laptop.*backend {4}exec/s)
  const { path } = createFakeProgram('acp', 'needs-login')
  const locked = launchBridge(t, {
    ...start,
    cmd: undefined,
    args: ['--dry-run', '--backend', 'acp', '--backend-opt', `cmd=${path}`],
  })
  assert.equal(await locked.ended, 0, locked.output())
  assert.match(
    locked.output(),
    /backend {4}acp \(0\.99\.0; if it is not logged in: set the option auth_method to one .* key/,
  )
  assert.equal((await getWorkspace(platform, workspace.id)).status, 'offline')
  assert.equal((await getTask(platform, workspace.id, waiting)).status.state, 'TASK_STATE_SUBMITTED')
})

test('CN-2 a person and a peer get the answer, and progress streams during the turn', async (t) => {
  const platform = await startPlatformFor(t)
  const workspace = await createExternalWorkspace(platform)
  const peer = await createExternalWorkspace(platform, { name: 'Peer' })
  const home = temporaryHome(t)
  const gate = join(home, 'gate')
  const cmd = `cat; echo; echo working; until [ -e ${gate} ]; do sleep 0.05; done; echo done`
  await startBridge(t, { url: platform.url, workspace, home, cmd })
  const message = { messageId: 'streamed', role: 'ROLE_USER', parts: [{ text: 'go' }] }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params: { message } })
  const response = await fetch(`${platform.url}/workspaces/${workspace.id}/a2a`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${peer.auth_token}`, 'A2A-Version': '1.0' },
    body,
  })
  let received = ''
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    received += Buffer.from(chunk).toString()
    // The command ends only after the test has read its first line from the stream.
    if (received.includes('working')) writeFileSync(gate, '')
  }
  const events = [...received.matchAll(/^data: (.+)$/gm)].map(([, data = '']) => JSON.parse(data).result)
  const chunks = events.flatMap(({ artifactUpdate }) => artifactUpdate?.artifact.parts ?? [])
  assert.equal(chunks.map(({ text }) => text).join(''), 'go\nworking\ndone\n')
  assert.match(received, /TASK_STATE_COMPLETED/)
  assert.equal(replyText(await platform.send(workspace.id, 'again')), 'again\nworking\ndone\n')
})

test('CN-8 an idle bridge gets the lease when a message is admitted, before the sender gets its answer', async (t) => {
  const platform = await startPlatformFor(t)
  const workspace = await createExternalWorkspace(platform)
  await startBridge(t, { url: platform.url, workspace, home: temporaryHome(t), cmd: 'sleep 0.2' })
  for (let round = 0; round < 3; round++) {
    await waitUntil(async () => (await getWorkspace(platform, workspace.id)).queue_depth === 0)
    const message = { messageId: `at-once-${round}`, role: 'ROLE_USER', parts: [{ text: 'x' }] }
    const configuration = { returnImmediately: true }
    const { body } = await platform.rpc(workspace.id, 'SendMessage', { message, configuration })
    assert.equal(body.result.task.status.state, 'TASK_STATE_WORKING')
    await waitUntil(async () =>
      /COMPLETED/.test((await getTask(platform, workspace.id, body.result.task.id)).status.state),
    )
  }
})

test('CN-1 in a terminal a status line shows waiting, the running time, and the answer', async (t) => {
  const { platform, workspace, home } = await prepareBridge(t)
  const gate = join(home, 'gate')
  const line = `${MOLECULE} connect ${workspace.id} --api-url ${platform.url} --backend exec --backend-opt cmd="until [ -e ${gate} ]; do sleep 0.05; done; cat"`
  const env = { MOLECULE_HOME: home, MOLECULE_WORKSPACE_TOKEN: workspace.auth_token }
  const args = ['-qfec', line, '/dev/null']
  const bridge = spawnBridge(t, { command: 'script', args, env, cwd: home })
  const drawn = (shown: string) => new RegExp(`\r${ESCAPE}\\[K${shown}`)
  await bridge.waitForOutput(drawn('waiting for messages \\(Ctrl-C stops\\)'))
  await sendWithoutWaiting(platform, workspace.id, `hello ${ESCAPE}[31mred`)
  await bridge.waitForOutput(drawn('running [1-9]\\d*(\\.\\d)? s: "hello  \\[31mred" from admin'))
  writeFileSync(gate, '')
  await bridge.waitForOutput(/answered "hello {2}\[31mred" from admin \(\d+(\.\d)? s\)/)
  bridge.kill('SIGTERM')
})
