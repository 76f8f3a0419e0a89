import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createFakeProgram } from '../../../test/fakes/agents/fake-program.ts'
import { errorOf, listEvents, makeTurn, replyOf, streamedText, type TurnOverrides } from '../../../test/fakes/turns.ts'
import { markedPids } from '../../../test/harness/live-processes.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../../test/harness/process-harness.ts'
import { waitUntil } from '../../../test/harness/wait.ts'
import { systemClock } from '../../clock.ts'
import { silentLog } from '../../log.ts'
import type { Decision, PermissionRequest } from '../backend.ts'
import { createOptions } from '../options.ts'
import { codex } from './codex.ts'

const { path: bin, dir } = createFakeProgram('codex')

function setUp(t: TestContext, values: Record<string, string> = {}, environment: Record<string, string> = {}) {
  const { processes, owner, dir: workingDir } = createProcessHarness(t)
  const warned: string[] = []
  const log = { ...silentLog, warn: (_: object, message: string) => void warned.push(message) } as typeof silentLog
  const context = { processes, environment: { ...PLAIN_ENVIRONMENT, ...environment }, clock: systemClock, log }
  const backend = codex.create(createOptions({ bin, permission: 'bypass', ...values }), context)
  t.after(() => backend.close())
  const keepAlive = setTimeout(() => undefined, 60_000)
  t.after(() => clearTimeout(keepAlive))
  let token: string | undefined
  const run = async (text: string, given: TurnOverrides = {}, signal = new AbortController().signal) => {
    const known = token === undefined ? {} : { sessionToken: token }
    const turn = makeTurn({ text, conversationId: 'c', workingDir, ...known, ...given })
    const events = await listEvents(backend.run(turn, signal))
    token = events.findLast((event) => event.type === 'session')?.token ?? token
    return events
  }
  return { backend, run, warned, alive: () => markedPids(`${owner}:`).length, workingDir }
}

const recorded = (file: string) =>
  readFileSync(join(dir, file), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

test('AG-2 one warm process answers the turns of a conversation, and the next process resumes the thread', async (t) => {
  const first = setUp(t)
  await first.run('one')
  assert.equal(replyOf(await first.run('!count')), 'n=2 one|!count')
  assert.equal(first.alive(), 1)
  const events = await first.run('three')
  assert.deepEqual(
    events.find(({ type }) => type === 'usage'),
    { type: 'usage', inputTokens: 10, outputTokens: 5 },
  )
  await first.backend.close()
  const second = setUp(t)
  const token = events.findLast((event) => event.type === 'session')?.token ?? ''
  const resumed = await second.run('!count', { sessionToken: token })
  assert.equal(replyOf(resumed), 'n=4 one|!count|three|!count')
  assert.deepEqual(
    resumed.find(({ type }) => type === 'usage'),
    { type: 'usage', inputTokens: 10, outputTokens: 5 },
  )
})

test('AG-2 one-shot: the thread is resumed, and a new thread instead of it is a lost session', async (t) => {
  const { run } = setUp(t, { mode: 'oneshot' })
  await run('one')
  assert.equal(replyOf(await run('!count')), 'n=2 one|!count')
  const forgetful = setUp(t, { mode: 'oneshot', args: '--fake forget' })
  const sessionToken = '01a1de56-e19e-7c23-a0d9-b566626ebf70'
  assert.equal(errorOf(await forgetful.run('x', { sessionToken })).code, 'session_lost')
})

test('AG-2 RT-5 an unknown thread is a lost session in both modes, and a warm process stays usable', async (t) => {
  for (const mode of ['session', 'oneshot']) {
    const { run } = setUp(t, { mode })
    const lost = await run('x', { sessionToken: '11111111-2222-3333-4444-555555555555' })
    assert.equal(errorOf(lost).code, 'session_lost')
    assert.equal(errorOf(await run('x', { sessionToken: 'nonsense' })).code, 'session_lost')
    assert.equal(replyOf(await run('hello')), 'hello')
  }
})

test('AG-2 a turn does not wait for a one-shot that stays after its answer', async (t) => {
  const { run, alive } = setUp(t, { mode: 'oneshot' })
  assert.equal(replyOf(await run('!linger hello')), 'hello')
  assert.equal(alive(), 0)
})

test('AG-2 errors have the same meaning in both modes', async (t) => {
  const expected = {
    'error-401': 'auth_failed',
    'error-429': 'rate_limited',
    'error-500': 'provider_failed',
    'error-529': 'overloaded',
    'bad-model': 'bad_request',
  }
  for (const mode of ['session', 'oneshot']) {
    const { run } = setUp(t, { mode })
    for (const [name, code] of Object.entries(expected)) {
      assert.deepEqual([mode, name, errorOf(await run(`!${name}`)).code], [mode, name, code])
    }
  }
  assert.equal(errorOf(await setUp(t).run('!context')).code, 'context_full')
})

test('AG-19 AG-2 without a network a turn ends instead of waiting for ever, and its process with it', async (t) => {
  for (const mode of ['session', 'oneshot']) {
    const { run, alive } = setUp(t, { mode })
    const { code, retryable } = errorOf(await run('!no-network'))
    assert.deepEqual([mode, code, retryable], [mode, 'provider_unreachable', true])
    await waitUntil(() => alive() === 0, `${mode}: no process is left`)
    assert.equal(replyOf(await run('hello')), 'hello')
  }
})

test('AG-2 a cancelled turn is interrupted: its tool dies, its process stays and continues the conversation', async (t) => {
  const { run, alive } = setUp(t)
  await run('one')
  const cancel = new AbortController()
  const running = run('!endless', {}, cancel.signal)
  await waitUntil(() => alive() === 2, 'its tool is there')
  cancel.abort()
  assert.equal(errorOf(await running).code, 'canceled')
  assert.equal(alive(), 1)
  assert.equal(replyOf(await run('!count')), 'n=2 one|!count')
})

test('AG-2 a process that ignores the interrupt is ended, and the next process resumes', async (t) => {
  const { run, alive } = setUp(t)
  await run('one')
  const cancel = new AbortController()
  const running = run('!deaf', {}, cancel.signal)
  await waitUntil(() => alive() === 2, 'its tool is there')
  cancel.abort()
  assert.equal(errorOf(await running).code, 'canceled')
  assert.equal(alive(), 0)
  assert.equal(replyOf(await run('!count')), 'n=2 one|!count')
})

test('AG-2 commentary is a status and no part of the reply; two messages are joined by a blank line', async (t) => {
  const { run } = setUp(t)
  const events = await run('!commentary well')
  assert.equal(replyOf(events), 'well')
  assert.ok(events.some((event) => event.type === 'status' && event.text === 'Let me think.'))
  const twice = await run('!twice well')
  assert.equal(replyOf(twice), 'First of all.\n\nwell')
  assert.equal(streamedText(twice), 'First of all.\n\nwell')
})

const asking = (decision: Decision) => {
  const asked: PermissionRequest[] = []
  const ask = async (request: PermissionRequest) => {
    asked.push(request)
    return decision
  }
  return { asked, ask }
}

test('AG-16 AG-2 ask: a person decides about exactly that command, change or tool, and the reply names a denial', async (t) => {
  const { run } = setUp(t, { permission: '' })
  const cases = {
    'ask-command rm -r x': ['shell', 'rm -r x'],
    'ask-patch a.txt': ['apply_patch', '[{"path":"a.txt","kind":{"type":"add"},"diff":"+hello"}]'],
    'ask-mcp seven': ['mcp__lab__ping', '{"wish":"seven"}'],
  } as const
  for (const [text, [tool, subject]] of Object.entries(cases)) {
    const yes = asking('allowed')
    assert.equal(replyOf(await run(`!${text}`, { ask: yes.ask })), 'done')
    assert.deepEqual(
      yes.asked.map((one) => [one.tool, one.subject]),
      [[tool, subject]],
    )
    const no = asking('denied')
    assert.equal(replyOf(await run(`!${text}`, { ask: no.ask })), `not done\n\n(Not allowed in this turn: ${tool}.)`)
  }
  const [begun] = recorded('threads.jsonl').slice(-1)
  assert.deepEqual([begun.params.approvalPolicy, begun.params.sandbox], ['untrusted', 'workspace-write'])
})

test('AG-16 AG-2 allowed_tools: a tool on the list needs no permission, and every other is refused', async (t) => {
  const { run } = setUp(t, { permission: 'allowed_tools', allowed_tools: 'shell, mcp__lab' })
  const never = async () => assert.fail('no person must be asked')
  assert.equal(replyOf(await run('!ask-command ls', { ask: never })), 'done')
  assert.equal(replyOf(await run('!ask-mcp x', { ask: never })), 'done')
  assert.match(replyOf(await run('!ask-patch a', { ask: never })), /^not done/)
  assert.match(replyOf(await run('!ask-other a', { ask: never })), /^not done/)
})

test('AG-15 AG-2 an option without effect gives a warning with its name', (t) => {
  const { warned } = setUp(t, { mode: 'oneshot', permission: 'ask', allowed_tools: 'shell', max_turns: '3' })
  assert.deepEqual(
    warned.map((message) => /option "(\w+)"/.exec(message)?.[1]),
    ['max_turns', 'permission', 'allowed_tools'],
  )
  assert.ok(warned.every((message) => message.includes('"codex"')))
})

test('AG-18 AG-2 the prefix of a model is dropped; folder, instructions and servers go over stdin', async (t) => {
  const { run, workingDir } = setUp(t)
  const mcpServers = [{ name: 'lab', command: 'node', args: ['x'], env: { KEY: 'hush' } }]
  await run('x', { model: 'openai/gpt-5', systemPrompt: 'Be brief.', mcpServers })
  const { params } = recorded('threads.jsonl').at(-1)
  assert.deepEqual([params.model, params.cwd, params.developerInstructions], ['gpt-5', workingDir, 'Be brief.'])
  const lab = {
    command: 'node',
    args: ['x'],
    env: { KEY: 'hush' },
    required: true,
    default_tools_approval_mode: 'approve',
  }
  assert.deepEqual(params.config, { mcp_servers: { lab } })
  const { argv, env } = recorded('starts.jsonl').at(-1)
  assert.doesNotMatch(JSON.stringify([argv, env]), /hush|brief/)
  assert.equal(env.MOLECULE_WORKSPACE_ID, 'ws_1')
})

test('AG-18 AG-2 a thread gets its model when it is opened, and again only when it changes', async (t) => {
  const { run } = setUp(t)
  for (const model of ['gpt-5', 'gpt-5', 'gpt-6', 'gpt-6']) await run('x', { model })
  const models = recorded('turns.jsonl').map((turn) => turn.model)
  assert.deepEqual(models.slice(-4), [undefined, undefined, 'gpt-6', undefined])
  assert.equal(recorded('threads.jsonl').at(-1).params.model, 'gpt-5')
})

test('RT-9 AG-2 a key from a file wins over OPENAI_API_KEY, which stays as it is', async (t) => {
  const { workingDir } = setUp(t)
  const file = join(workingDir, 'key')
  const { writeFileSync } = await import('node:fs')
  writeFileSync(file, 'sk-file\n')
  await setUp(t, { auth_token_file: file, mode: 'oneshot' }).run('x')
  const fromFile = recorded('starts.jsonl').at(-1).env
  assert.deepEqual([fromFile.CODEX_API_KEY, fromFile.OPENAI_API_KEY], ['sk-file', 'sk-file'])
  await setUp(t, { auth_token_file: file, mode: 'oneshot' }, { OPENAI_API_KEY: 'sk-env' }).run('x')
  const fromEnv = recorded('starts.jsonl').at(-1).env
  assert.deepEqual([fromEnv.CODEX_API_KEY, fromEnv.OPENAI_API_KEY], ['sk-file', 'sk-env'])
})

test('RT-9 AG-2 warm: the process gets a key of its own, because the app server reads none from the environment', async (t) => {
  const { workingDir } = setUp(t)
  const file = join(workingDir, 'key')
  const { writeFileSync } = await import('node:fs')
  writeFileSync(file, 'sk-file\n')
  await setUp(t, { auth_token_file: file }).run('x')
  await setUp(t, {}, { CODEX_API_KEY: 'sk-env' }).run('x')
  assert.deepEqual(recorded('logins.jsonl').slice(-2), [
    { type: 'apiKey', apiKey: 'sk-file' },
    { type: 'apiKey', apiKey: 'sk-env' },
  ])
  const { argv } = recorded('starts.jsonl').at(-1)
  assert.ok(argv.includes('cli_auth_credentials_store="ephemeral"'))
  assert.doesNotMatch(JSON.stringify(argv), /sk-/)
})

test('BK-8 AG-2 validate finds codex and its version, or says how to install it', async (t) => {
  const signal = new AbortController().signal
  const found = await setUp(t).backend.validate(signal)
  assert.deepEqual([found.ok, found.ok && found.version], [true, '0.166.0'])
  const missing = await setUp(t, { bin: '/nowhere/codex' }).backend.validate(signal)
  assert.ok(
    !missing.ok &&
      /there is no program \/nowhere\/codex/.test(missing.problem) &&
      /npm i -g @openai\/codex/.test(missing.remedy),
  )
})

test('AG-2 a thread that loses its model goes back to the default of codex, once, also after a restart', async (t) => {
  const first = setUp(t)
  let sessionToken = ''
  for (const model of ['gpt-5', undefined, undefined, 'gpt-6']) {
    const events = await first.run('x', model === undefined ? {} : { model })
    sessionToken = events.findLast((event) => event.type === 'session')?.token ?? ''
  }
  await first.backend.close()
  await setUp(t).run('x', { sessionToken })
  const models = recorded('turns.jsonl').map((turn) => turn.model)
  assert.deepEqual(models.slice(-5), [undefined, 'gpt-usual', undefined, 'gpt-6', 'gpt-usual'])
})
