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
import { startTelegram } from '../fakes/telegram/telegram.ts'
import { openTerminal, runCommand, startCommand } from '../harness/command.ts'
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

const stopPlatform = (home: string) =>
  process.kill(JSON.parse(readFileSync(join(home, 'platform.json'), 'utf8')).pid, 'SIGTERM')

/** A start of the gateway: what it prints, and who may do what then. */
async function startAndRead(
  t: TestContext,
  env: Readonly<Record<string, string>> & { readonly MOLECULE_HOME: string },
) {
  const home = env.MOLECULE_HOME
  const command = startCommand(t, ['gateway'], { env })
  await command.waitForOutput(/Let them in/)
  const list = async (args: readonly string[]) =>
    JSON.parse((await runCommand([...args, '-o', 'json'], { env: { MOLECULE_HOME: home } })).out)
  const people: { channel: string; person: string; state: string; role: string }[] = await list(['pair', 'list'])
  const channels: { name: string }[] = await list(['channel', 'list'])
  stopPlatform(home)
  const { out, err } = await command.ended()
  return {
    out,
    err,
    people: people.map(({ channel, person, state, role }) => `${channel}/${person} ${state} ${role}`).sort(),
    channels: channels.map(({ name }) => name),
  }
}

test('GW-1 GW-4 OWNER names the owners: they are made at the start, and are none when it no longer names them', async (t) => {
  const { service, home } = await setUp(t)
  const base = {
    MOLECULE_HOME: home,
    SOCKET_API_URL: service.apiUrl,
    SOCKET_CHANNEL_TOKEN: service.token,
    AGENT_BACKEND: 'mock',
    WORKING_DIR: home,
  }
  const first = await startAndRead(t, { ...base, OWNER: 'ada, socket:@bob:home' })
  assert.deepEqual(first.people, ['socket/@bob:home approved owner', 'socket/ada approved owner'])
  assert.doesNotMatch(first.out, /No person owns/)
  const second = await startAndRead(t, { ...base, OWNER: 'socket:ada,discord:7' })
  assert.deepEqual(second.people, ['socket/@bob:home approved user', 'socket/ada approved owner'])
  assert.match(second.err, /OWNER no longer names @bob:home .*is no owner of socket any more/)
  assert.match(second.err, /warning: OWNER names discord:7, and no discord bot is set; it is ignored/)
  const third = await startAndRead(t, base)
  assert.deepEqual(third.people, ['socket/@bob:home approved user', 'socket/ada approved user'])
  assert.match(
    third.out,
    /No person owns socket yet .*set OWNER=socket:<id of a person>, or .*pair approve <code> --owner/,
  )
  const wrong = await runCommand(['gateway'], { env: { ...base, OWNER: 'discrod:7' } })
  assert.equal(wrong.code, 1)
  assert.match(
    wrong.err,
    /^error: OWNER cannot have "discrod:7": there is no kind of channel "discrod"; the kinds are /,
  )
  const unclear = await runCommand(['gateway'], { env: { ...base, OWNER: '7', TELEGRAM_BOT_TOKEN: 'x' } })
  assert.match(unclear.err, /OWNER cannot have "7": several bots are set, so write of which one, as socket:7/)
})

test('GW-1 a bot that the environment no longer names is removed; one that "channel add" has made stays and is named', async (t) => {
  const { service, home } = await setUp(t)
  const [telegram, own] = [await startTelegram(), await startSocketService()]
  t.after(() => Promise.all([telegram.close(), own.close()]))
  const base = {
    MOLECULE_HOME: home,
    SOCKET_API_URL: service.apiUrl,
    SOCKET_CHANNEL_TOKEN: service.token,
    AGENT_BACKEND: 'mock',
    WORKING_DIR: home,
  }
  const command = startCommand(t, ['gateway'], {
    env: { ...base, TELEGRAM_BOT_TOKEN: telegram.token, TELEGRAM_API_URL: telegram.apiUrl, OWNER: 'telegram:1001' },
  })
  await command.waitForOutput(/Let them in/)
  const add = ['channel', 'add', 'socket', '--name', 'mine', '--workspace', 'gateway', '--service-url', own.apiUrl]
  const added = await runCommand(add, { env: { MOLECULE_HOME: home }, input: own.token })
  assert.equal(added.code, 0, added.err)
  await waitUntil(() => telegram.isConnected(), 'the bot of the environment is connected')
  stopPlatform(home)
  await command.ended()
  const second = await startAndRead(t, base)
  assert.deepEqual(second.channels, ['mine', 'socket'])
  assert.deepEqual(second.people, [])
  assert.match(
    second.err,
    /the telegram bot .?"telegram.?" of an earlier start is not in the environment, so it is removed/,
  )
  assert.match(second.err, /the socket bot .?"mine.?" is not in the environment and still answers/)
})

test('GW-4 without OWNER the terminal offers the people who write to the bot, until one of them is its owner', async (t) => {
  const { service, home } = await setUp(t)
  const env = {
    MOLECULE_HOME: home,
    SOCKET_API_URL: service.apiUrl,
    SOCKET_CHANNEL_TOKEN: service.token,
    AGENT_BACKEND: 'mock',
    WORKING_DIR: home,
  }
  const terminal = openTerminal(t, ['gateway'], env)
  await terminal.waitForText(/No person owns socket yet .*the people who write to it are offered here/)
  await waitUntil(() => service.isConnected())
  const [eve, ada] = [service.newPlace('direct'), service.newPlace('direct')]
  service.say({ place: eve, author: { id: 'eve', name: 'Eve\u202e', isBot: false }, text: 'let me in' })
  await terminal.waitForText(/Eve\\u202e \(eve\) wrote to the bot socket\. Make .* the owner, .*\[y\/N\] /)
  terminal.type('n\n')
  service.say({ place: ada, author: ADA, text: 'hello' })
  await terminal.waitForText(/Ada \(ada\) wrote to the bot socket\./)
  terminal.type('y\n')
  await terminal.waitForText(/Ada \(ada\) is the owner of socket\./)
  await waitUntil(() => service.written(ada).some(({ text }) => text === 'echo: hello'), 'the held message is answered')
  const { out } = await runCommand(['pair', 'list', '-o', 'json'], { env: { MOLECULE_HOME: home } })
  const people = JSON.parse(out).map(({ person, state, role }: Record<string, string>) => `${person} ${state} ${role}`)
  assert.deepEqual(people, ['eve pending user', 'ada approved owner'])
  stopPlatform(home)
  assert.equal(await terminal.ended(), 0)
})

test('GW-1 a stop while the terminal asks about an owner ends the gateway', async (t) => {
  const { service, home } = await setUp(t)
  const env = {
    MOLECULE_HOME: home,
    SOCKET_API_URL: service.apiUrl,
    SOCKET_CHANNEL_TOKEN: service.token,
    AGENT_BACKEND: 'mock',
    WORKING_DIR: home,
  }
  const terminal = openTerminal(t, ['gateway'], env)
  await waitUntil(() => service.isConnected())
  service.say({ place: service.newPlace('direct'), author: ADA, text: 'hello' })
  await terminal.waitForText(/Make Ada the owner/)
  stopPlatform(home)
  assert.equal(await terminal.ended(), 0)
})

test('GW-1 CN-6 "channel remove" and a stop end the gateway while its service cannot be reached', async (t) => {
  const { service, home } = await setUp(t)
  const other = await startSocketService()
  const env = {
    MOLECULE_HOME: home,
    SOCKET_API_URL: service.apiUrl,
    SOCKET_CHANNEL_TOKEN: service.token,
    AGENT_BACKEND: 'mock',
    WORKING_DIR: home,
  }
  const command = startCommand(t, ['gateway'], { env })
  await command.waitForOutput(/Let them in/)
  const run = (args: readonly string[], input = '') => runCommand(args, { env: { MOLECULE_HOME: home }, input })
  const added = await run(['channel', 'add', 'socket', '--name', 'two', '--service-url', other.apiUrl], other.token)
  assert.equal(added.code, 0, added.err)
  await waitUntil(() => service.isConnected() && other.isConnected(), 'both bots are connected')
  await Promise.all([service.close(), other.close()])
  assert.equal((await run(['channel', 'remove', 'two'])).code, 0)
  const { out } = await run(['channel', 'list', '-o', 'json'])
  assert.deepEqual(
    JSON.parse(out).map(({ name }: { name: string }) => name),
    ['socket'],
  )
  stopPlatform(home)
  assert.equal((await command.ended()).code, 0)
})
