/** `molecule up`: first start, workspaces, conflicts over folder and port, kill and stop. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { MOLECULE } from '../harness/command.ts'
import { pidsOfSleep, pidsWithCommandLine, uniqueSeconds } from '../harness/live-processes.ts'
import { replyText, startPlatform, withPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

/** Runs `molecule` to its end. */
async function molecule(...args: string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn(MOLECULE, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  child.stdout.on('data', (chunk) => (output += chunk))
  child.stderr.on('data', (chunk) => (output += chunk))
  await once(child, 'close')
  return { code: child.exitCode, output }
}

test(
  'PL-1 up creates a private data folder and token, gets ready, and refuses requests without the token',
  withPlatform(async (platform) => {
    assert.equal((await stat(platform.dataDir)).mode & 0o777, 0o700)
    assert.equal((await stat(join(platform.dataDir, 'admin-token'))).mode & 0o777, 0o600)
    assert.match(platform.token, /^mol_[\w-]{43}$/)
    assert.equal((await fetch(`${platform.url}/ready`)).status, 200)
    assert.equal((await fetch(`${platform.url}/health`)).status, 200)
    assert.equal((await fetch(`${platform.url}/workspaces`)).status, 401)
    assert.ok(!platform.output().includes(platform.token))
  }),
)

test(
  'PL-1 the command that up prints creates a first workspace from another shell',
  withPlatform(async (platform) => {
    const command = /In another terminal:\n +(\S.* init) /.exec(platform.output())?.[1]
    const shell = spawn('sh', ['-c', `${command} --yes --runtime mock --name first`], { stdio: 'ignore' })
    const [code] = await once(shell, 'exit')
    assert.equal(code, 0)
    const { body } = await platform.request('GET', '/workspaces')
    assert.deepEqual(
      body.workspaces.map(({ name, status }: { name: string; status: string }) => ({ name, status })),
      [{ name: 'first', status: 'online' }],
    )
  }),
)

test(
  'PL-1 the printed login link works once',
  withPlatform(async (platform) => {
    const code = /log in +http:\S+#(\S+)/.exec(platform.output())?.[1]
    const login = () =>
      fetch(`${platform.url}/login`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Origin: platform.url },
        body: JSON.stringify({ code }),
      })
    const first = await login()
    assert.ok(first.ok, await first.text())
    const cookie = first.headers.get('set-cookie') ?? ''
    assert.match(cookie, /HttpOnly/i)
    assert.match(cookie, /SameSite=Strict/i)
    const headers = { Cookie: cookie.split(';')[0] ?? '' }
    assert.equal((await fetch(`${platform.url}/workspaces`, { headers })).status, 200)
    assert.equal((await login()).status, 401)
  }),
)

test(
  'PL-2 a workspace is created online, listed and shown; an invalid one is refused with the reason',
  withPlatform(async (platform) => {
    const wanted = { name: 'echo', role: 'repeats', runtime: 'exec', runtime_config: { cmd: 'cat' } }
    const { status, body } = await platform.request('POST', '/workspaces', wanted)
    assert.equal(status, 201)
    assert.match(body.id, /^ws_[0-9A-HJKMNP-TV-Z]{26}$/)
    assert.deepEqual([body.name, body.role, body.runtime, body.status], ['echo', 'repeats', 'exec', 'online'])
    const seen = await platform.request('GET', `/workspaces/${body.id}`)
    assert.deepEqual([seen.status, seen.body.status, seen.body.queue_depth], [200, 'online', 0])
    const all = await platform.request('GET', '/workspaces')
    assert.ok(JSON.stringify(all.body).includes(body.id))
    const refused = async (more: object) => {
      const answer = await platform.request('POST', '/workspaces', { ...wanted, ...more })
      assert.equal(answer.status, 400, JSON.stringify(answer.body))
      return answer.body.error.message as string
    }
    assert.match(await refused({ runtime: 'nothing' }), /unknown backend "nothing".*exec, .*mock/)
    assert.match(await refused({ runtime_config: {} }), /"cmd" is required/)
    assert.match(await refused({ runtime_config: { cmd: 'cat', timeout: '5 apples' } }), /5 apples/)
    assert.match(await refused({ runtime_config: { cmd: 'cat', max_attempts: 'many' } }), /max_attempts/)
    assert.match(await refused({ parent_id: 'ws_none' }), /ws_none/)
    assert.match(await refused({ colour: 'red' }), /colour/)
    assert.equal((await platform.request('GET', '/workspaces/ws_none')).status, 404)
  }),
)

test(
  'PL-13 a second platform on the same data folder exits and names the URL of the first',
  withPlatform(async (platform) => {
    const { code, output } = await molecule('up', '--port', '0', '--data-dir', platform.dataDir)
    assert.equal(code, 1)
    assert.match(output, new RegExp(String(platform.url).replaceAll('.', '\\.')))
    assert.match(output, /--data-dir/)
    assert.ok(output.trim().split('\n').length <= 3, output)
  }),
)

test('PL-13 the error for a taken port names its process and --port', async () => {
  const holder = createServer()
  holder.listen(0, '127.0.0.1')
  await once(holder, 'listening')
  const { port } = holder.address() as AddressInfo
  const dataDir = await mkdtemp(join(tmpdir(), 'molecule-e2e-'))
  try {
    const { code, output } = await molecule('up', '--port', String(port), '--data-dir', dataDir)
    assert.equal(code, 1)
    assert.match(output, new RegExp(`port ${port} .* taken`))
    assert.match(output, /--port/)
    if (process.platform === 'linux') assert.match(output, new RegExp(`process ${process.pid}\\b`))
  } finally {
    holder.close()
    await rm(dataDir, { recursive: true })
  }
})

test('RE-5 the next platform kills the orphans of a killed one and answers the interrupted message', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'molecule-e2e-'))
  const seconds = uniqueSeconds()
  const flag = join(dataDir, 'second-time')
  let platform = await startPlatform({ dataDir })
  try {
    const cmd = `if test -e ${flag}; then echo answered; else touch ${flag}; setsid sleep ${seconds} & sleep ${seconds}; fi`
    const id = await platform.exec(cmd)
    const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'go' }] }
    const configuration = { returnImmediately: true }
    const { body } = await platform.rpc(id, 'SendMessage', { message, configuration })
    await waitUntil(() => pidsOfSleep(seconds).length >= 2)
    await platform.stop('SIGKILL')
    assert.ok(pidsOfSleep(seconds).length >= 2, 'the orphans outlive the platform')
    platform = await startPlatform({ dataDir })
    assert.match(platform.output(), /cleaned up/)
    assert.deepEqual(pidsOfSleep(seconds), [])
    const again = await platform.rpc(id, 'SendMessage', { message })
    assert.equal(again.body.result.task.id, body.result.task.id)
    assert.equal(replyText(again.body.result.task), 'answered\n')
  } finally {
    await platform.dispose()
    await rm(dataDir, { recursive: true, force: true })
  }
})

test(
  'EX-8 SIGTERM lets the running turn finish within the drain, then stops the platform',
  withPlatform(async (platform) => {
    const id = await platform.exec('sleep 0.5; cat')
    const sent = platform.send(id, 'finish me')
    await waitUntil(async () => (await platform.request('GET', `/workspaces/${id}`)).body.running === 1)
    const exited = platform.stop()
    assert.equal(replyText(await sent), 'finish me')
    assert.equal(await exited, 0)
  }),
)

test('EX-8 with --drain 0 SIGTERM kills the turn at once, and the next platform runs its message again', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'molecule-e2e-'))
  const seconds = uniqueSeconds()
  let platform = await startPlatform({ dataDir, args: ['--drain', '0'] })
  try {
    const id = await platform.exec(`sleep ${seconds}`, { runtime_config: { timeout: 'none' } })
    const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'go' }] }
    await platform.rpc(id, 'SendMessage', { message, configuration: { returnImmediately: true } })
    await waitUntil(() => pidsWithCommandLine(`sleep ${seconds}`).length > 0)
    assert.equal(await platform.stop(), 0)
    assert.deepEqual(pidsWithCommandLine(`sleep ${seconds}`), [])
    platform = await startPlatform({ dataDir, args: ['--drain', '0'] })
    await waitUntil(() => pidsWithCommandLine(`sleep ${seconds}`).length > 0)
    assert.equal(await platform.stop(), 0)
    assert.deepEqual(pidsWithCommandLine(`sleep ${seconds}`), [])
  } finally {
    await platform.dispose()
    await rm(dataDir, { recursive: true, force: true })
  }
})
