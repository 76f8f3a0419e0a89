/** The claude-code backend against a fake claude that runs as a real process. */
import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type SetUpClaudeOptions, setUpClaude, startsOf } from '../fakes/agents/claude-harness.ts'
import { createFakeProgram } from '../fakes/agents/fake-program.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { errorOf, replyOf, streamedText, tokenOf } from '../fakes/turns.ts'
import { isAlive, linuxOnly, markedPids } from '../harness/live-processes.ts'
import { waitUntil } from '../harness/wait.ts'

const fake = createFakeProgram('claude')
const setUp = (t: TestContext, given: Partial<SetUpClaudeOptions> = {}) => setUpClaude(t, { program: fake, ...given })

test('AG-1 a conversation keeps one process and its memory; two messages at once are answered in order', async (t) => {
  const program = createFakeProgram('claude')
  const { run } = setUp(t, { program })
  const sessionToken = tokenOf(await run('one'))
  const [two, three] = await Promise.all([run('two', { sessionToken }), run('!count three', { sessionToken })])
  assert.equal(replyOf(two), 'two')
  assert.equal(replyOf(three), 'n=3 one|two|!count three')
  assert.equal(startsOf(program).length, 1)
})

test('AG-1 a session is resumed by its id after its process or the platform has ended', async (t) => {
  const program = createFakeProgram('claude')
  const first = setUp(t, { program })
  const sessionToken = tokenOf(await first.run('one'))
  await first.backend.close()
  const second = setUp(t, { program })
  const events = await second.run('!count two', { sessionToken })
  assert.equal(replyOf(events), 'n=2 one|!count two')
  assert.equal(tokenOf(events), sessionToken)
})

test('AG-1 RT-5 a turn without a session token does not reuse the memory of the warm process', async (t) => {
  const { run } = setUp(t)
  await run('one')
  assert.equal(replyOf(await run('!count two')), 'n=1 !count two')
})

test('RT-5 a session that claude does not know fails with session_lost', async (t) => {
  for (const mode of ['session', 'oneshot']) {
    const { run } = setUp(t, { options: { mode } })
    const sessionToken = '11111111-2222-3333-4444-555555555555'
    assert.equal(errorOf(await run('hello', { sessionToken })).code, 'session_lost')
    assert.equal(replyOf(await run('hello')), 'hello')
  }
})

test('AG-1 claude gets its prompt and MCP servers in private files, ids and token in the environment', async (t) => {
  const program = createFakeProgram('claude')
  const options = { model: 'anthropic/claude-sonnet-4-5', mcp_servers: '{"own":{"command":"own"}}', max_turns: '7' }
  const { run } = setUp(t, { program, options, environment: { CLAUDE_AUTH_TOKEN: 'a-token', CLAUDECODE: '1' } })
  const server = { name: 'platform', command: 'node', args: [], env: { SECRET: 'x' } }
  const given = {
    systemPrompt: 'Be kind.',
    mcpServers: [server],
    env: { MOLECULE_WORKSPACE_TOKEN: 't', TRACEPARENT: '1' },
  }
  const sessionToken = tokenOf(await run('one', given))
  const [start] = startsOf(program)
  assert.ok(start !== undefined)
  assert.equal(start.files.systemPrompt, 'Be kind.')
  assert.deepEqual(Object.keys(JSON.parse(start.files.mcp ?? '{}').mcpServers), ['own', 'platform'])
  const line = start.argv.join(' ')
  assert.match(line, /--model claude-sonnet-4-5 /)
  assert.match(line, /--max-turns 7 /)
  // Tools of the platform's own server need no permission; tools of the configured server do.
  assert.match(line, /--allowedTools mcp__platform --permission-mode default/)
  assert.ok(!line.includes('Be kind') && !line.includes('SECRET'))
  assert.equal(start.env['CLAUDE_CODE_OAUTH_TOKEN'], 'a-token')
  assert.equal(start.env['CLAUDE_CODE_MAX_RETRIES'], '1')
  assert.equal(start.env['MOLECULE_WORKSPACE_TOKEN'], 't')
  assert.equal(start.env['MOLECULE_WORKSPACE_ID'], 'ws_1')
  // A warm process outlives the message, so variables of one message stay out; CLAUDECODE would mark a nested claude.
  for (const name of ['TRACEPARENT', 'MOLECULE_MESSAGE_ID', 'CLAUDECODE']) assert.equal(start.env[name], undefined)
  await run('two', { ...given, env: { ...given.env, TRACEPARENT: '2' }, sessionToken })
  assert.equal(startsOf(program).length, 1)
  await run('three', { ...given, systemPrompt: 'Be brief.', sessionToken })
  const [, second] = startsOf(program)
  assert.equal(second?.files.systemPrompt, 'Be brief.')
  assert.match(second?.argv.join(' ') ?? '', /--resume \S+ --system-prompt-snapshot off/)
  const file = start.argv[start.argv.indexOf('--append-system-prompt-file') + 1] ?? ''
  assert.ok(file !== '' && !existsSync(file))
})

test('RT-9 the token file is used when no variable has a token; pass_meta=false passes no ids', async (t) => {
  const program = createFakeProgram('claude')
  const file = join(program.dir, '.auth-token')
  writeFileSync(file, 'from-file\n')
  const options = { auth_token_file: file, mode: 'oneshot', pass_meta: 'false' }
  await setUp(t, { program, options }).run('one')
  await setUp(t, { program, options, environment: { CLAUDE_CODE_OAUTH_TOKEN: 'from-env' } }).run('two')
  await setUp(t, { program, options: { mode: 'oneshot' } }).run('three')
  const starts = startsOf(program)
  assert.deepEqual(
    starts.map(({ env }) => env['CLAUDE_CODE_OAUTH_TOKEN']),
    ['from-file', 'from-env', undefined],
  )
  assert.deepEqual(
    starts.map(({ env }) => env['MOLECULE_TASK_ID'] !== undefined),
    [false, false, true],
  )
})

test('text, tools, retries, usage and cost arrive as events', async (t) => {
  const { run } = setUp(t)
  const streamed = await run('!stream one two three')
  assert.equal(streamedText(streamed), 'one two three')
  assert.deepEqual(streamed.at(-2), { type: 'usage', inputTokens: 10, outputTokens: 5, costUsd: 0.25 })
  const tools = (await run('!tool')).filter((event) => event.type === 'tool')
  assert.deepEqual(
    tools.map(({ name, state }) => [name, state]),
    [
      ['mcp__lab__ping_tool', 'started'],
      ['mcp__lab__ping_tool', 'failed'],
    ],
  )
  const retried = await run('!retry')
  assert.ok(retried.some((event) => event.type === 'status' && /answered 500: retry 1 of 1/.test(event.text)))
  assert.equal(errorOf(retried).code, 'provider_failed')
})

test('provider errors get their own codes in both modes', async (t) => {
  const expected = {
    'error-400': ['bad_request', false],
    'error-401': ['auth_failed', false],
    'error-429': ['rate_limited', true],
    'error-529': ['overloaded', true],
    'usage-limit': ['quota_exhausted', true],
    'bad-model': ['unknown_model', false],
    'max-turns': ['max_turns', false],
    long: ['context_full', false],
  }
  for (const mode of ['session', 'oneshot']) {
    const { run } = setUp(t, { options: { mode } })
    for (const [name, outcome] of Object.entries(expected)) {
      const { code, retryable } = errorOf(await run(`!${name}`))
      assert.deepEqual([code, retryable], outcome, `${mode} ${name}`)
    }
  }
})

test('a usage limit reports when it ends', async (t) => {
  const { run } = setUp(t)
  const { details } = errorOf(await run('!usage-limit'))
  assert.ok(Number(details['resetAfterMs']) > 365 * 24 * 3600_000)
})

test(
  'cancelling kills a tool that runs in its own process session; the warm claude keeps its memory',
  linuxOnly,
  async (t) => {
    const { run, alive } = setUp(t, { clock: manualClock() })
    const sessionToken = tokenOf(await run('one'))
    const cancel = new AbortController()
    const running = run('!endless', { sessionToken }, cancel.signal)
    await waitUntil(() => alive() === 2, 'the tool runs')
    cancel.abort()
    assert.equal(errorOf(await running).code, 'canceled')
    assert.equal(alive(), 1)
    assert.equal(replyOf(await run('!count two', { sessionToken })), 'n=3 one|!endless|!count two')
  },
)

test(
  'a claude that ignores interrupt and SIGTERM is killed with its children; its session can be resumed',
  linuxOnly,
  async (t) => {
    const { run, alive } = setUp(t)
    const sessionToken = tokenOf(await run('one'))
    const cancel = new AbortController()
    const running = run('!deaf', { sessionToken }, cancel.signal)
    await waitUntil(() => alive() === 2, 'the tool runs')
    cancel.abort()
    assert.equal(errorOf(await running).code, 'canceled')
    assert.equal(alive(), 0)
    assert.equal(replyOf(await run('!count two', { sessionToken })), 'n=3 one|!deaf|!count two')
  },
)

test('cancelling the first turn of a process ends the process', linuxOnly, async (t) => {
  const { run, alive } = setUp(t)
  const cancel = new AbortController()
  const running = run('!endless', {}, cancel.signal)
  await waitUntil(() => alive() === 2, 'the tool runs')
  cancel.abort()
  assert.equal(errorOf(await running).code, 'canceled')
  assert.equal(alive(), 0)
})

test('a process killed during a turn is a retryable failure, and the next turn works', async (t) => {
  const { run } = setUp(t)
  const sessionToken = tokenOf(await run('one'))
  const error = errorOf(await run('!die', { sessionToken }))
  assert.deepEqual([error.code, error.retryable, error.details['signal']], ['exit', true, 'SIGKILL'])
  assert.equal(replyOf(await run('!count two', { sessionToken })), 'n=3 one|!die|!count two')
})

test('a process that died between turns is replaced', linuxOnly, async (t) => {
  const { run, owner } = setUp(t)
  const sessionToken = tokenOf(await run('one'))
  const [pid] = markedPids(`${owner}:`)
  assert.ok(pid !== undefined)
  process.kill(pid, 'SIGKILL')
  await waitUntil(() => !isAlive(pid), 'the process is dead')
  await waitUntil(() => markedPids(`${owner}:`).length === 0, 'no marked process is left')
  const events = await run('!count two', { sessionToken })
  const end = events.at(-1)
  // When the backend has not noticed the exit yet, the turn fails and may be retried.
  if (end?.type === 'failed') assert.ok(end.error.retryable)
  else assert.equal(replyOf(events), 'n=2 one|!count two')
})

test('lines that are not JSON and warnings that look like errors are ignored', async (t) => {
  const warm = setUp(t, { options: { args: '--fake greeting' } })
  assert.equal(replyOf(await warm.run('hello')), 'hello')
  const once = setUp(t, { options: { mode: 'oneshot' } })
  assert.equal(replyOf(await once.run('!warn hello')), 'hello')
  assert.equal(replyOf(await once.run('!array hello')), 'hello')
  assert.match(errorOf(await once.run('!garbage')).message, /^Failed to parse CLI output/)
})

test('a one-shot claude that prints its result and does not exit is killed', linuxOnly, async (t) => {
  const { run, alive } = setUp(t, { options: { mode: 'oneshot' } })
  assert.equal(replyOf(await run('!linger hello')), 'hello')
  assert.equal(alive(), 0)
})

test(
  'warm_max=4 answers twenty conversations with at most four processes, and warm_idle closes them',
  linuxOnly,
  async (t) => {
    const clock = manualClock()
    const { run, alive } = setUp(t, { options: { warm_max: '4', warm_idle: '10m' }, clock })
    let most = 0
    const watch = setInterval(() => {
      most = Math.max(most, alive())
    }, 20)
    t.after(() => clearInterval(watch))
    const texts = Array.from({ length: 20 }, (_, n) => `message ${n}`)
    const replies = await Promise.all(texts.map((text) => run(text, { conversationId: text })))
    assert.deepEqual(replies.map(replyOf), texts)
    clearInterval(watch)
    assert.ok(most > 0 && most <= 4, `${most} at once`)
    assert.equal(alive(), 4)
    clock.advance(601_000)
    await waitUntil(() => alive() === 0, 'all processes are closed')
  },
)

test('AG-1 default: the runtime gives up a turn after 5 minutes without any activity', (t) => {
  assert.equal(setUp(t).backend.stallMs, 5 * 60 * 1000)
  assert.equal(setUp(t, { options: { timeout: '90s' } }).backend.stallMs, 90_000)
})

test('AG-15 an option that cannot be honoured causes a warning with its name', (t) => {
  const { warnings } = setUp(t, { options: { mode: 'oneshot', permission: 'ask', warm_max: '2' } })
  assert.deepEqual(warnings, [
    'backend "claude-code" cannot honour option "permission": it cannot ask in mode oneshot; allowed_tools is in force',
    'backend "claude-code" cannot honour option "warm_max": in mode oneshot nothing is kept warm',
  ])
})

test('BK-8 validate reports version and path, or what to do when claude is missing', async (t) => {
  const signal = new AbortController().signal
  const validation = await setUp(t).backend.validate(signal)
  assert.deepEqual(validation, { ok: true, version: '2.1.327', note: fake.path })
  const missing = await setUp(t, { options: { bin: 'no-such-claude' } }).backend.validate(signal)
  assert.ok(!missing.ok)
  assert.match(missing.problem, /"claude-code": no-such-claude is not found on PATH/)
  assert.match(missing.remedy, /npm install -g @anthropic-ai\/claude-code/)
  const gone = await setUp(t, { options: { bin: '/no/such/claude' } }).run('hello')
  assert.equal(errorOf(gone).code, 'backend_missing')
})

test('an invalid option is refused with its name', (t) => {
  const bad = {
    mode: 'warm',
    permission: 'all',
    timeout: '5',
    max_turns: '0',
    warm_max: 'x',
    warm_idle: '-1s',
    args: '"',
    mcp_servers: '[',
  }
  for (const [key, value] of Object.entries(bad)) {
    assert.throws(() => setUp(t, { options: { [key]: value } }), new RegExp(`"${key}"`))
  }
})
