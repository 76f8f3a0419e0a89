/** `molecule gateway`, `molecule channel` and `molecule pair` as people type them, with a chat program on a socket. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { startsOf } from '../fakes/agents/claude-harness.ts'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import type { ChatService } from '../fakes/chat-service.ts'
import { startSocketService } from '../fakes/socket-service.ts'
import { runCommand, startCommand } from '../harness/command.ts'
import { startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

async function setUp(t: TestContext): Promise<{ service: ChatService; home: string }> {
  const service = await startSocketService()
  const home = await mkdtemp(join(tmpdir(), 'molecule-gateway-'))
  t.after(async () => {
    await service.close()
    await rm(home, { recursive: true, force: true })
  })
  return { service, home }
}

const ADA = { id: 'ada', name: 'Ada', isBot: false }

test('GW-12 GW-4 a bot is added, bound, listed and removed by commands; a stranger pairs and the held message is answered', async (t) => {
  const { service } = await setUp(t)
  const platform = await startPlatformFor(t)
  const env = { MOLECULE_HOME: platform.dataDir }
  await platform.exec('cat', { name: 'parrot' })
  const run = async (args: readonly string[], input = '') => {
    const result = await runCommand(args, { env, input })
    assert.equal(result.code, 0, result.err)
    assert.ok(!`${result.out}${result.err}`.includes(service.token))
    return result.out
  }
  const added = await run(['channel', 'add', 'socket', '--service-url', service.apiUrl], service.token)
  assert.match(added, /added socket: the bot Molecule/)
  const refused = await runCommand(['channel', 'add', 'socket', '--name', 'two', '--service-url', service.apiUrl], {
    env,
    input: 'not-the-token',
  })
  assert.equal(refused.code, 1)
  assert.match(refused.err, /refuses the token/)
  assert.ok(!refused.err.includes('not-the-token'))

  const place = service.newPlace('group')
  await run(['channel', 'bind', 'socket', place.id, 'parrot'])
  assert.match(await run(['channel', 'list']), new RegExp(`socket +socket +Molecule +${place.id} parrot +works`))
  await waitUntil(() => service.isConnected())
  service.say({ place, author: ADA, text: 'let me in' })
  service.say({ place, author: ADA, text: 'please' })
  await waitUntil(() => service.written(place).length === 1)
  const code = /\*\*([A-Z0-9]{8})\*\*/.exec(service.written(place)[0]?.text ?? '')?.[1] ?? ''
  const listed = await platform.request('GET', '/pairings')
  assert.deepEqual([listed.body.pairings[0].code, listed.body.pairings[0].state], [code, 'pending'])
  assert.match(await run(['pair', 'list']), new RegExp(`socket +Ada +ada +pending +${code}`))
  assert.match(await run(['pair', 'approve', code]), /Ada may talk to socket/)
  await waitUntil(() => service.written(place).length === 3)
  assert.deepEqual(
    service
      .written(place)
      .slice(1)
      .map(({ text }) => text),
    ['let me in', 'please'],
  )
  assert.match(await run(['pair', 'deny', 'socket/ada']), /Ada is ignored/)
  await run(['channel', 'unbind', 'socket', place.id])
  await run(['channel', 'remove', 'socket'])
  await waitUntil(() => !service.isConnected())
  assert.match(await run(['channel', 'list']), /There are no channels/)
})

test('GW-1 without a token the gateway ends with 1 and one sentence that says what to click', async (t) => {
  const { home } = await setUp(t)
  const { code, err } = await runCommand(['gateway'], { env: { MOLECULE_HOME: home } })
  assert.equal(code, 1)
  assert.match(err, /^error: the gateway needs the token of a bot in DISCORD_BOT_TOKEN .*click New Application/)
  assert.equal(err.trim().split('\n').length, 1)
})

test('GW-1 BK-8 a wrong token, an unknown backend and a backend that cannot run end the gateway with 1', async (t) => {
  const { service, home } = await setUp(t)
  const base = { MOLECULE_HOME: home, SOCKET_API_URL: service.apiUrl, SOCKET_CHANNEL_TOKEN: service.token }
  const run = (env: Record<string, string>) => runCommand(['gateway'], { env: { ...base, ...env } })
  const wrong = await run({ SOCKET_CHANNEL_TOKEN: 'a-wrong-token', AGENT_BACKEND: 'mock' })
  assert.equal(wrong.code, 1)
  assert.match(wrong.err, /refuses the token/)
  assert.ok(!wrong.err.includes('a-wrong-token'))
  const unknown = await run({ AGENT_BACKEND: 'clippy' })
  assert.equal(unknown.code, 1)
  assert.match(unknown.err, /unknown backend "clippy"; valid: .*claude/)
  const missing = await run({ AGENT_BACKEND: 'codex', BACKEND_CLI_PATH: '/nowhere/codex' })
  assert.equal(missing.code, 1)
  assert.match(
    missing.err,
    /the backend codex cannot run here: .*\/nowhere\/codex.*; here BACKEND_CLI_PATH is the option bin\n$/,
  )
  const empty = await run({ AGENT_BACKEND: 'exec' })
  assert.match(empty.err, /"cmd" is required; here BACKEND_CLI_PATH is the option cmd\n$/)
  const odd = await run({ PERMISSION: 'sometimes' })
  assert.match(
    odd.err,
    /"sometimes" is not ask or allowed_tools or bypass; here PERMISSION is the option permission\n$/,
  )
  const far = await run({ AGENT_BACKEND: 'a2a' })
  assert.match(far.err, /"url" is required; no variable sets the option url: use ".*molecule up" and bind the bot/)
})

test('GW-1 AG-15 at each start the environment is the whole truth, and what the backend ignores is named', async (t) => {
  const { service, home } = await setUp(t)
  const codex = createFakeProgram('codex')
  const bin = join(home, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'codex'), `#!/bin/sh\nexec ${codex.path} "$@"\n`, { mode: 0o755 })
  const base = {
    MOLECULE_HOME: home,
    SOCKET_API_URL: service.apiUrl,
    SOCKET_CHANNEL_TOKEN: service.token,
    WORKING_DIR: home,
    AGENT_BACKEND: 'codex',
    PATH: `${bin}:${process.env['PATH']}`,
  }
  const settingsAfter = async (env: Record<string, string>) => {
    const command = startCommand(t, ['gateway'], { env: { ...base, ...env } })
    await command.waitForOutput(/Let them in/)
    const { out } = await runCommand(['workspace', 'inspect', 'gateway', '-o', 'json'], {
      env: { MOLECULE_HOME: home },
    })
    const channels = await runCommand(['channel', 'list', '-o', 'json'], { env: { MOLECULE_HOME: home } })
    process.kill(JSON.parse(readFileSync(join(home, 'platform.json'), 'utf8')).pid, 'SIGTERM')
    const { err } = await command.ended()
    const { runtime, model, permission, runtime_config } = JSON.parse(out)
    return { err, runtime, model, permission, runtime_config, people: JSON.parse(channels.out)[0].allowed_people }
  }
  const first = await settingsAfter({
    BACKEND_CLI_PATH: codex.path,
    BACKEND_MODEL: 'gpt-7',
    ALLOWED_TOOLS: 'shell',
    PERMISSION: 'bypass',
    BACKEND_MAX_TURNS: '10',
    QUERY_TIMEOUT_MS: '1000',
    SOCKET_ALLOWED_USERS: 'ada',
  })
  assert.deepEqual([first.runtime, first.model, first.permission, first.people], ['codex', 'gpt-7', 'bypass', ['ada']])
  assert.deepEqual(first.runtime_config, { bin: codex.path, allowed_tools: 'shell', timeout: '1000ms' })
  const ignored = /the backend codex does not support BACKEND_MAX_TURNS and ignores it/
  assert.match(first.err, ignored)
  assert.match(readFileSync(join(home, 'molecule.log'), 'utf8'), ignored)
  const second = await settingsAfter({ BACKEND_MODEL: '' })
  assert.deepEqual([second.model, second.permission, second.people], [undefined, undefined, []])
  assert.deepEqual(second.runtime_config, { timeout: '300000ms' })
  assert.doesNotMatch(second.err, /does not support/)
  const third = await settingsAfter({ AGENT_BACKEND: 'mock', ALLOWED_TOOLS: 'shell', BACKEND_MODEL: 'gpt-7' })
  assert.deepEqual([third.runtime, third.model, third.runtime_config], ['mock', undefined, {}])
  for (const name of ['ALLOWED_TOOLS', 'BACKEND_MODEL'])
    assert.match(third.err, new RegExp(`the backend mock does not support ${name}`))
})

test('GW-1 AG-16 unless it is told otherwise the gateway runs claude with 25 steps, which asks; bypass is set by PERMISSION and warned of', async (t) => {
  const { service, home } = await setUp(t)
  const claude = createFakeProgram('claude')
  const env = {
    ...CLAUDE_LOGGED_IN,
    // claude refuses bypass as root without it.
    IS_SANDBOX: '1',
    MOLECULE_HOME: home,
    SOCKET_API_URL: service.apiUrl,
    SOCKET_CHANNEL_TOKEN: service.token,
    SOCKET_ALLOWED_USERS: 'ada',
    WORKING_DIR: home,
    BACKEND_CLI_PATH: claude.path,
  }
  const place = service.newPlace('direct')
  const run = async (more: Record<string, string>) => {
    const answered = service.written(place).length
    const command = startCommand(t, ['gateway'], { env: { ...env, ...more } })
    await command.waitForOutput(/Let them in/)
    service.say({ place, author: ADA, text: 'hello' })
    await waitUntil(() => service.written(place).length > answered)
    process.kill(JSON.parse(readFileSync(join(home, 'platform.json'), 'utf8')).pid, 'SIGTERM')
    return { err: (await command.ended()).err, argv: startsOf(claude).at(-1)?.argv.join(' ') ?? '' }
  }
  const bypass = await run({ PERMISSION: 'bypass' })
  assert.match(bypass.argv, /--dangerously-skip-permissions/)
  assert.match(bypass.err, /claude-code uses every tool without asking, because PERMISSION is bypass/)
  const plain = await run({})
  assert.match(plain.argv, /--max-turns 25 .*--permission-mode default --permission-prompt-tool stdio/)
  assert.doesNotMatch(plain.argv, /--dangerously-skip-permissions/)
  assert.doesNotMatch(plain.err, /without asking/)
})

test('GW-1 the gateway runs by environment alone; a bad number warns, and a second start keeps its workspace', async (t) => {
  const { service, home } = await setUp(t)
  const env = {
    MOLECULE_HOME: home,
    SOCKET_API_URL: service.apiUrl,
    SOCKET_CHANNEL_TOKEN: service.token,
    AGENT_BACKEND: 'mock',
    BACKEND_MAX_TURNS: 'many',
    SOCKET_ALLOWED_USERS: 'ada',
    WORKING_DIR: home,
  }
  const place = service.newPlace('direct')
  for (const [index, text] of ['hello', 'again'].entries()) {
    const command = startCommand(t, ['gateway'], { env })
    await command.waitForErrors(/warning: BACKEND_MAX_TURNS must be a whole number above 0, not "many"; 25 is used/)
    service.say({ place, author: ADA, text })
    await waitUntil(() => service.written(place).length === index + 1)
    assert.equal(service.written(place)[index]?.text, `echo: ${text}`)
    const list = await runCommand(['workspace', 'list', '-o', 'json'], { env: { MOLECULE_HOME: home } })
    const workspaces = JSON.parse(list.out)
    assert.deepEqual(
      workspaces.map(({ name, runtime }: { name: string; runtime: string }) => [name, runtime]),
      [['gateway', 'mock']],
    )
    const { pid } = JSON.parse(readFileSync(join(home, 'platform.json'), 'utf8'))
    process.kill(pid, 'SIGTERM')
    const { code, out } = await command.ended()
    assert.equal(code, 0)
    // It has its workspace.
    assert.doesNotMatch(out, /makes a first workspace/)
  }
})
