import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import test, { type TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { secretOf, WORKSPACE_ID } from '../../test/fakes/platform/fake-platform.ts'
import { recordingTerminal } from '../../test/fakes/terminal.ts'
import { openDoor } from '../../test/harness/open-door.ts'
import { temporaryDir } from '../../test/harness/process-harness.ts'
import { waitUntil } from '../../test/harness/wait.ts'
import { type Clock, systemClock } from '../clock.ts'
import { bootId, startTimeOf } from '../process/identity.ts'
import { main } from './a2a.ts'
import { delegate } from './commands/a2a/tasks.ts'

async function platform(t: TestContext, maxBlockMs = 60_000) {
  const opened = await openDoor(t, { maxBlockMs })
  const env = { MOLECULE_API_URL: opened.url, MOLECULE_WORKSPACE_TOKEN: secretOf('admin') }
  const run = async (argv: readonly string[], more: Record<string, string> = {}, input = '') => {
    const terminal = recordingTerminal({ ...env, ...more }, input)
    const code = await main(argv, terminal)
    return { code, output: terminal.output(), errors: terminal.errors() }
  }
  return { ...opened, run }
}

test('peers lists the other workspaces with name, id, status and role', async (t) => {
  const { run, fakePlatform } = await platform(t)
  await fakePlatform.workspaces.create({ name: 'Ada', role: 'Backend engineer' })
  const { code, output } = await run(['peers'])
  assert.equal(code, 0)
  assert.match(output, new RegExp(`^echo  ${WORKSPACE_ID}  online\nAda   ws_9\\d+1  online  Backend engineer\n$`))
  assert.doesNotMatch((await run(['peers'], { MOLECULE_WORKSPACE_ID: WORKSPACE_ID })).output, /echo/)
})

test('info shows the own workspace; outside of one it names the missing variable', async (t) => {
  const { run } = await platform(t)
  assert.match((await run(['info'], { MOLECULE_WORKSPACE_ID: WORKSPACE_ID })).output, /^echo /)
  const outside = await run(['info'])
  assert.equal(outside.code, 1)
  assert.match(outside.errors, /MOLECULE_WORKSPACE_ID is not set/)
})

test('delegate prints only the answer; it takes an id or a name, an argument or stdin', async (t) => {
  const { run, fakePlatform } = await platform(t)
  assert.deepEqual(await run(['delegate', WORKSPACE_ID, 'say this']), { code: 0, output: 'say this\n', errors: '' })
  assert.equal((await run(['delegate', 'echo', '-'], {}, 'from stdin')).output, 'from stdin\n')
  assert.equal((await run(['delegate', 'echo', '-'], {}, ' \n')).code, 2)
  assert.notEqual(
    fakePlatform.letters[0]?.envelope.message.messageId,
    fakePlatform.letters[1]?.envelope.message.messageId,
  )
})

test('delegate attaches again when the work outlasts one blocking call', async (t) => {
  const { run, fakePlatform } = await platform(t, 20)
  const answer = run(['delegate', 'echo', 'slow'])
  await waitUntil(() => fakePlatform.letters.length >= 3, 'it has attached again')
  fakePlatform.finish('task-1')
  assert.equal((await answer).output, 'slow\n')
  assert.equal(new Set(fakePlatform.letters.map(({ envelope }) => envelope.message.messageId)).size, 1)
})

test('TW-2 delegate --async prints the task id, and status needs no other id', async (t) => {
  const { run, fakePlatform } = await platform(t)
  assert.equal((await run(['delegate', '--async', 'echo', 'slow'])).output, 'task-1\n')
  assert.equal((await run(['status', 'task-1'])).output, 'working\n')
  fakePlatform.finish('task-1')
  assert.equal((await run(['status', 'task-1'])).output, 'completed\nslow\n')
})

test('TW-4 a failed delegation begins with [A2A_ERROR] and names three things to do, whatever failed', async (t) => {
  const { run, fakePlatform } = await platform(t)
  await fakePlatform.workspaces.create({ name: 'twin' })
  await fakePlatform.workspaces.create({ name: 'twin' })
  for (const [argv, reason] of [
    [['delegate', 'echo', 'fail'], /the task failed/],
    [['delegate', 'echo', 'ask'], /the agent asks/],
    [['delegate', 'nobody', 'x'], /no workspace called "nobody"/],
    [['delegate', 'twin', 'x'], /2 workspaces are called "twin"; use an id: ws_9\d+1, ws_9\d+2/],
    [['delegate', 'echo', 'defect'], /the log has it under this id/],
  ] as const) {
    const { code, output, errors } = await run(argv)
    assert.equal(code, 1, argv.join(' '))
    assert.equal(output, '')
    assert.match(errors, /^\[A2A_ERROR\] DELEGATION FAILED: /)
    assert.match(errors, reason)
    assert.match(errors, /another peer.*yourself.*tell the user/s)
  }
})

test('TW-2 delegate retries with the same message when the platform is busy or unreachable', async (t) => {
  const bodies: string[] = []
  const answers: readonly RequestListener[] = [
    (_request, response) => response.writeHead(429, { 'Retry-After': '0' }).end('{"error":{"code":"queue_full"}}'),
    (_request, response) => response.writeHead(503, { 'Retry-After': '0' }).end('<html>a proxy</html>'),
    (_request, response) => {
      const task = { id: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } }
      response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { task } }))
    },
  ]
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      answers[bodies.length]?.(request, response)
      bodies.push(body)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const { port } = server.address() as { port: number }
  const terminal = recordingTerminal({ MOLECULE_API_URL: `http://127.0.0.1:${port}`, MOLECULE_ADMIN_TOKEN: 'x' })
  assert.equal(await main(['delegate', WORKSPACE_ID, 'hello'], terminal), 0, terminal.errors())
  assert.equal(bodies.length, 3)
  assert.equal(new Set(bodies).size, 1)
})

test('TW-3 delegate finds its task again after a connection that was lost for long', async (t) => {
  let nowMs = 0
  let calls = 0
  const clock: Clock = {
    ...systemClock,
    monotonicMs: () => nowMs,
    after(delayMs, callback) {
      nowMs += delayMs
      const timer = setImmediate(callback)
      return () => clearImmediate(timer)
    },
  }
  const server = createServer((request, response) => {
    calls += 1
    // The first call waited for the task before the connection was lost.
    if (calls === 1) nowMs += 60_000
    if (calls <= 30) {
      request.socket.destroy()
      return
    }
    const task = { id: 't', contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' }, artifacts: [REPLY] }
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result: { task } }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const { port } = server.address() as { port: number }
  const terminal = recordingTerminal({ MOLECULE_API_URL: `http://127.0.0.1:${port}`, MOLECULE_ADMIN_TOKEN: 'x' })
  await delegate({ workspace: WORKSPACE_ID, task: 'hello', wait: true }, terminal, clock)
  assert.deepEqual([terminal.output(), calls], ['found\n', 31])
  calls = 1
  const never = delegate({ workspace: WORKSPACE_ID, task: 'hello', wait: true }, terminal, clock)
  await assert.rejects(never, /DELEGATION FAILED/, 'a platform that was never reached')
})

const REPLY = { artifactId: 'reply', parts: [{ text: 'found' }] }

test('a process of a2a waits for a platform that does not run yet', async (t) => {
  const { door, url } = await openDoor(t)
  await door.close()
  const entry = new URL('./a2a.mjs', import.meta.url).pathname
  const env = { PATH: process.env['PATH'], MOLECULE_API_URL: url, MOLECULE_WORKSPACE_TOKEN: secretOf('admin') }
  const child = spawn(process.execPath, [entry, 'delegate', 'echo', 'hello'], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  const ended = Promise.all([text(child.stdout), once(child, 'exit')])
  // By now the first attempt has been refused; the second comes a second later.
  await delay(700)
  await openDoor(t, { port: Number(new URL(url).port) })
  assert.deepEqual(await ended, ['hello\n', [0, null]])
})

test('the token is that of the workspace, else the admin token, else the one of the platform that runs here', async (t) => {
  const { url } = await openDoor(t)
  const dir = temporaryDir(t)
  writeFileSync(join(dir, 'admin-token'), `${secretOf('admin')}\n`, { mode: 0o600 })
  const identity = { pid: process.pid, startTime: await startTimeOf(process.pid), bootId: await bootId() }
  writeFileSync(join(dir, 'platform.json'), JSON.stringify({ url, ...identity }))
  const base = { MOLECULE_API_URL: url, MOLECULE_HOME: dir }
  const code = async (env: Record<string, string>) => main(['peers'], recordingTerminal({ ...base, ...env }))
  assert.equal(await code({}), 0)
  assert.equal(await code({ MOLECULE_ADMIN_TOKEN: secretOf('viewer') }), 0)
  assert.equal(await code({ MOLECULE_ADMIN_TOKEN: 'wrong' }), 1)
  assert.equal(await code({ MOLECULE_ADMIN_TOKEN: 'wrong', MOLECULE_WORKSPACE_TOKEN: secretOf('viewer') }), 0)
  assert.equal(await code({ MOLECULE_API_URL: url.replace('127.0.0.1', 'localhost') }), 0)
  assert.equal(await code({ MOLECULE_API_URL: '' }), 0)
  assert.equal(await code({ MOLECULE_HOME: temporaryDir(t) }), 1)
})

test('an invalid URL and an unreachable platform are one sentence each', async () => {
  const wrong = recordingTerminal({ MOLECULE_API_URL: 'localhost:8080', MOLECULE_ADMIN_TOKEN: 'x' })
  assert.equal(await main(['peers'], wrong), 1)
  assert.match(wrong.errors(), /^\[A2A_ERROR\] MOLECULE_API_URL is not an http address/)
  const away = recordingTerminal({ MOLECULE_API_URL: 'http://127.0.0.1:1', MOLECULE_ADMIN_TOKEN: 'x' })
  assert.equal(await main(['peers'], away), 1)
  assert.match(away.errors(), /^\[A2A_ERROR\] the platform at http:\/\/127.0.0.1:1 cannot be reached .*molecule up/)
})
