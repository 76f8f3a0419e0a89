import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { createFakeAgents } from '../../../test/fakes/agents/fake-program.ts'
import { listEvents, makeTurn, streamedText, type TurnOverrides, tokenOf } from '../../../test/fakes/turns.ts'
import { linuxOnly, markedPids } from '../../../test/harness/live-processes.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../../test/harness/process-harness.ts'
import { waitUntil } from '../../../test/harness/wait.ts'
import { systemClock } from '../../clock.ts'
import { type Log, silentLog } from '../../log.ts'
import { onAbort } from '../../wait.ts'
import type { Backend, BackendEvent, PermissionRequest } from '../backend.ts'
import { createOptions } from '../options.ts'
import { acp } from './acp.ts'

const fake = createFakeAgents()
const NEVER = new AbortController().signal

interface AcpHarness {
  build(scenario: string, values?: Readonly<Record<string, string>>): Backend
  run(backend: Backend, given: TurnOverrides, signal?: AbortSignal): Promise<BackendEvent[]>
  processes(): number
  readonly warnings: unknown[]
}

function setUp(t: TestContext): AcpHarness {
  const { processes, owner, dir } = createProcessHarness(t)
  // The timers of the process supervisor do not keep a test alive.
  const keepAlive = setTimeout(() => undefined, 60_000)
  t.after(() => clearTimeout(keepAlive))
  const warnings: unknown[] = []
  const log: Log = { ...silentLog, warn: (fields: unknown) => void warnings.push(fields) } as Log
  return {
    warnings,
    build(scenario, { dialect = 'plain', ...values } = {}) {
      const options = createOptions({ cmd: `${fake('acp', scenario)} ${dialect}`, ...values })
      const backend = acp.create(options, { processes, environment: PLAIN_ENVIRONMENT, clock: systemClock, log })
      t.after(() => backend.close())
      return backend
    },
    run: (backend, given, signal = NEVER) => listEvents(backend.run(makeTurn({ workingDir: dir, ...given }), signal)),
    processes: () => markedPids(`${owner}:`).length,
  }
}

const failureOf = (events: readonly BackendEvent[]) => {
  const end = events.at(-1)
  assert.ok(end?.type === 'failed', `it did not fail: ${streamedText(events)}`)
  return end.error
}

test('AG-7 many conversations share one process, each with its own memory', linuxOnly, async (t) => {
  const { build, run, processes } = setUp(t)
  const backend = build('count')
  const first = await Promise.all(['a', 'b', 'c'].map((text) => run(backend, { text })))
  assert.equal(processes(), 1)
  assert.deepEqual(first.map(streamedText), ['n=1', 'n=1', 'n=1'])
  assert.equal(new Set(first.map(tokenOf)).size, 3)
  const again = await run(backend, { text: 'again', sessionToken: tokenOf(first[0] ?? []) })
  assert.equal(streamedText(again), 'n=2')
  assert.ok(again.some((event) => event.type === 'usage' && event.inputTokens === 10 && event.outputTokens === 5))
})

for (const dialect of ['gemini', 'plain'] as const) {
  const way = dialect === 'gemini' ? 'loaded, and its replayed history is not taken for an answer' : 'resumed'
  test(`AG-7 RT-5 a session outlives its process: ${way}`, async (t) => {
    const { build, run } = setUp(t)
    const before = build('count', { dialect })
    const token = tokenOf(await run(before, { text: 'one' }))
    await before.close()
    assert.equal(streamedText(await run(build('count', { dialect }), { text: 'two', sessionToken: token })), 'n=2')
  })
}

for (const [scenario, why] of [
  ['lost', 'does not know it'],
  ['no-load', 'cannot load any'],
] as const) {
  test(`RT-5 a session is lost if the new process ${why}`, async (t) => {
    const { build, run } = setUp(t)
    const token = tokenOf(await run(build('echo'), { text: 'one' }))
    const error = failureOf(await run(build(scenario), { text: 'two', sessionToken: token }))
    assert.equal(error.code, 'session_lost')
  })
}

test('AG-16 ask: a person sees exactly what the agent wants, and a yes counts once', async (t) => {
  const { build, run } = setUp(t)
  const asked: PermissionRequest[] = []
  const ask = async (wanted: PermissionRequest) => {
    asked.push(wanted)
    return 'allowed' as const
  }
  const events = await run(build('tool', { dialect: 'gemini' }), { text: 'x', ask })
  assert.equal(streamedText(events), 'chosen: proceed_once')
  const [{ id, ...request }] = asked as [PermissionRequest]
  assert.deepEqual(request, { tool: 'mcp_lab_ping_tool', subject: '{"text":"pong?"}' })
  assert.match(id, /^mcp_lab_ping_tool__/)
})

test('AG-16 a denial reaches the agent, and the reply names the denied tool', async (t) => {
  const { build, run } = setUp(t)
  const events = await run(build('tool'), { text: 'x' })
  assert.equal(streamedText(events), 'chosen: cancel\n\n(Not allowed in this turn: mcp_lab_ping_tool.)')
  assert.ok(events.some((event) => event.type === 'tool' && event.state === 'failed'))
})

for (const [title, values, given, chosen] of [
  ['allowed_tools', { permission: 'allowed_tools', allowed_tools: 'edit, mcp_lab_ping_tool' }, {}, 'proceed_once'],
  ['allowed_tools without it', { permission: 'allowed_tools', allowed_tools: 'edit' }, {}, 'cancel'],
  ['bypass', { permission: 'bypass' }, {}, 'proceed_once'],
] as const) {
  test(`AG-16 ${title}: no person is asked, and the agent gets ${chosen}`, async (t) => {
    const { build, run } = setUp(t)
    const ask = () => assert.fail('a person was asked')
    const events = await run(build('tool', values), { text: 'x', ask, ...given })
    assert.match(streamedText(events), new RegExp(`^chosen: ${chosen}`))
  })
}

test('AG-16 a cancel while a person is asked ends the turn', async (t) => {
  const { build, run } = setUp(t)
  const cancel = new AbortController()
  const ask = (_: PermissionRequest, signal: AbortSignal) =>
    new Promise<'denied'>((resolve) => {
      onAbort(signal, () => resolve('denied'))
      cancel.abort()
    })
  assert.equal(failureOf(await run(build('tool'), { text: 'x', ask }, cancel.signal)).code, 'canceled')
})

test('AG-7 stop reasons: a refusal is rejected, out of steps is max_turns, out of tokens is an answer', async (t) => {
  const { build, run } = setUp(t)
  const endOf = async (scenario: string) => (await run(build(scenario), { text: 'words' })).at(-1)
  const refusal = await endOf('refusal')
  assert.ok(refusal?.type === 'done')
  assert.deepEqual([refusal.finality, refusal.parts], ['rejected', [{ text: 'words' }]])
  const steps = await endOf('max_turn_requests')
  assert.ok(steps?.type === 'failed')
  assert.equal(steps.error.code, 'max_turns')
  assert.equal((await endOf('max_tokens'))?.type, 'done')
})

for (const [dialect, status, code] of [
  ['gemini', 429, 'rate_limited'],
  ['codex', 429, 'rate_limited'],
  ['plain', 401, 'auth_failed'],
  ['opencode', 400, 'provider_failed'],
] as const) {
  test(`AG-7 ${dialect}'s way to say ${status} is ${code}`, async (t) => {
    const { build, run } = setUp(t)
    const error = failureOf(await run(build(`error-${status}`, { dialect }), { text: 'x' }))
    assert.equal(error.code, code)
    // The same key is refused at every attempt.
    if (code === 'auth_failed') assert.equal(error.retryable, false)
  })
}

test('AG-7 RT-5 hermes as a plain ACP agent: an error as its answer, a session that it silently replaced', async (t) => {
  const { build, run } = setUp(t)
  const cmd = (scenario: string) => ({ cmd: `${fake('hermes', scenario)} acp` })
  assert.equal(failureOf(await run(build('', cmd('error-429')), { text: 'x' })).code, 'rate_limited')
  const token = tokenOf(await run(build('', cmd('echo')), { text: 'one' }))
  const error = failureOf(await run(build('', cmd('lost')), { text: 'two', sessionToken: token }))
  assert.equal(error.code, 'session_lost')
})

test(
  'a process that dies fails its turn with a retryable error, and the next turn gets a new process',
  linuxOnly,
  async (t) => {
    const { build, run, processes } = setUp(t)
    const backend = build('dies')
    for (const text of ['one', 'two']) {
      const error = failureOf(await run(backend, { text }))
      assert.deepEqual([error.code, error.retryable, error.details['exitCode']], ['exit', true, 7])
      assert.equal(processes(), 0)
    }
  },
)

test('an agent that ignores a cancel is ended with its children', linuxOnly, async (t) => {
  const { build, run, processes } = setUp(t)
  const cancel = new AbortController()
  const running = run(build('deaf'), { text: 'x' }, cancel.signal)
  await waitUntil(() => processes() === 2, 'its child is there')
  cancel.abort()
  assert.equal(failureOf(await running).code, 'canceled')
  assert.equal(processes(), 0)
})

test(
  'a cancel leaves other turns of the process running; the process ends after the last of them',
  linuxOnly,
  async (t) => {
    const { build, run, processes } = setUp(t)
    const backend = build('mixed')
    const cancel = new AbortController()
    const waiting = run(backend, { text: 'wait' }, cancel.signal)
    await waitUntil(() => processes() === 2, 'its child is there')
    const slow = run(backend, { text: 'slow words' })
    const begun = run(backend, { text: 'quick' })
    assert.equal(streamedText(await begun), 'quick')
    cancel.abort()
    assert.equal(failureOf(await waiting).code, 'canceled')
    assert.equal(streamedText(await run(backend, { text: 'after' })), 'after')
    assert.equal(streamedText(await slow), 'slow words')
    await waitUntil(() => processes() === 1, 'only the successor is left')
  },
)

test('AG-18 the session gets the model as it was written, with its provider', async (t) => {
  const { build, run } = setUp(t)
  assert.equal(streamedText(await run(build('models'), { text: 'x' })), 'default')
  assert.equal(streamedText(await run(build('models'), { text: 'x', model: 'fake/large' })), 'fake/large')
  const over = build('models', { model: 'fake/large' })
  assert.equal(streamedText(await run(over, { text: 'x', model: 'fake/small' })), 'fake/large')
})

test('AG-18 AG-7 a conversation gets a changed model, and without one that of a new conversation', async (t) => {
  const { build, run } = setUp(t)
  const backend = build('models')
  const models: string[] = []
  let sessionToken = tokenOf(await run(backend, { text: 'x' }))
  for (const model of ['fake/large', undefined, undefined, 'fake/large']) {
    const events = await run(backend, { text: 'x', sessionToken, ...(model !== undefined && { model }) })
    sessionToken = tokenOf(events)
    models.push(streamedText(events))
  }
  assert.deepEqual(models, ['fake/large', 'default', 'default', 'fake/large'])
})

for (const dialect of ['opencode', 'plain'] as const) {
  test(`AG-18 RT-5 ${dialect}: a conversation goes back to the usual model also in a new process`, async (t) => {
    const { build, run } = setUp(t)
    let sessionToken: string | undefined
    const ask = async (model?: string) => {
      const backend = build('models', { dialect })
      const events = await run(backend, {
        text: 'x',
        ...(sessionToken !== undefined && { sessionToken }),
        ...(model !== undefined && { model }),
      })
      sessionToken = tokenOf(events)
      await backend.close()
      return streamedText(events)
    }
    assert.equal(await ask('fake/large'), 'fake/large')
    assert.equal(await ask('fake/large'), 'fake/large')
    assert.equal(await ask(), 'default')
    assert.equal(await ask(), 'default')
  })
}

test('AG-18 a model that the agent does not have is refused, never replaced by another', async (t) => {
  const { build, run } = setUp(t)
  const backend = build('models', { model: 'fake/none' })
  for (const text of ['x', 'again']) {
    const error = failureOf(await run(backend, { text }))
    assert.equal(error.code, 'bad_config')
    assert.match(error.message, /refuses the model fake\/none/)
  }
})

test('AG-15 a model that cannot be set, and an option that ACP does not have, give a warning', async (t) => {
  const { build, run, warnings } = setUp(t)
  const backend = build('echo', { model: 'fake/large', max_turns: '5' })
  await run(backend, { text: 'x' })
  await run(backend, { text: 'y' })
  assert.deepEqual(warnings, [
    { backend: 'acp', option: 'max_turns' },
    { backend: 'acp', option: 'model' },
  ])
})

test('a shared process gets no token of a conversation; an MCP server gets its own variables', async (t) => {
  const { build, run } = setUp(t)
  const env = { MOLECULE_WORKSPACE_TOKEN: 'secret', MOLECULE_API_URL: 'http://127.0.0.1:1', TRACEPARENT: 'x' }
  const mcpServers = [{ name: 'team', command: '/bin/true', args: ['a'], env: { TOKEN: 'secret' } }]
  const given = { text: 'x', env, mcpServers, conversationId: 'c' }
  const seen = JSON.parse(streamedText(await run(build('environment'), given)))
  for (const name of ['MOLECULE_API_URL', 'CLAUDE_CODE_MAX_RETRIES']) assert.ok(seen.names.includes(name), name)
  for (const name of ['MOLECULE_WORKSPACE_TOKEN', 'TRACEPARENT']) assert.ok(!seen.names.includes(name), name)
  // The name is of the conversation: some agents take two servers of one name for the same server.
  const server = { name: 'team-2e7d2c03', command: '/bin/true', args: ['a'], env: [{ name: 'TOKEN', value: 'secret' }] }
  assert.deepEqual(seen.mcp, [server])
})

test('TW-1 the agent gets the MCP server of the workspace as a program, with its token in a file', async (t) => {
  const { build, run } = setUp(t)
  const program = {
    name: 'molecule',
    command: 'molecule',
    args: ['mcp'],
    env: { A: 'b', MOLECULE_WORKSPACE_TOKEN: 't' },
  }
  const mcpServers = [
    { name: 'molecule', url: 'http://x/mcp', tokenVariable: 'MOLECULE_WORKSPACE_TOKEN', token: 'secret-t', program },
  ]
  const backend = build('environment')
  const text = streamedText(await run(backend, { text: 'x', mcpServers, conversationId: 'c' }))
  assert.doesNotMatch(text, /secret-t/)
  const [{ env, ...server }] = JSON.parse(text).mcp
  assert.deepEqual(server, { name: 'molecule-2e7d2c03', command: 'molecule', args: ['mcp'] })
  const [a, , file] = env
  assert.deepEqual([a, file.name, env.length], [{ name: 'A', value: 'b' }, 'MOLECULE_WORKSPACE_TOKEN_FILE', 3])
  assert.equal(readFileSync(file.value, 'utf8'), 'secret-t')
  await backend.close()
  assert.throws(() => readFileSync(file.value))
})

test('AG-7 an agent that wants a login names its methods, and auth_method calls one of them', async (t) => {
  const { build, run } = setUp(t)
  const refused = failureOf(await run(build('needs-login'), { text: 'x' }))
  assert.deepEqual([refused.code, refused.retryable], ['auth_failed', false])
  assert.match(
    refused.message,
    /not logged in: Authentication required; set the option auth_method to one of its login methods: key \(API key: Takes the key of the environment\), account/,
  )
  assert.ok(refused.message.length < 700, 'the texts of the agent are bounded')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: none may be there
  assert.doesNotMatch(refused.message, /[\u0000-\u001f]/)
  const backend = build('needs-login', { auth_method: 'key' })
  assert.equal(streamedText(await run(backend, { text: 'hello' })), 'hello')
  assert.equal(streamedText(await run(backend, { text: 'again', conversationId: 'other' })), 'again')
  const wrong = failureOf(await run(build('needs-login', { auth_method: 'account' }), { text: 'x' }))
  assert.deepEqual([wrong.code, wrong.retryable], ['auth_failed', false])
  const unknown = failureOf(await run(build('needs-login', { auth_method: 'face' }), { text: 'x' }))
  assert.equal(unknown.code, 'bad_config')
  assert.match(unknown.message, /no login method "face".*key \(API key/)
  const late = failureOf(await run(build('needs-login-late'), { text: 'x' }))
  assert.deepEqual([late.code, late.retryable], ['auth_failed', false])
  assert.match(late.message, /is not logged in: .*login methods: key \(API key/)
  const told = build('needs-login-late', { auth_method: 'key' })
  assert.equal(streamedText(await run(told, { text: 'hello' })), 'hello')
  const silent = failureOf(await run(build('needs-login-silent'), { text: 'x' }))
  assert.deepEqual([silent.code, /auth_method/.test(silent.message)], ['auth_failed', false])
})

test('AG-7 BK-8 validate names the login methods of an agent, and refuses an unknown auth_method', async (t) => {
  const { build } = setUp(t)
  const open = await build('needs-login').validate(NEVER)
  assert.ok(open.ok && /if it is not logged in: set the option auth_method .* key \(API key/.test(open.note ?? ''))
  const set = await build('needs-login', { auth_method: 'key' }).validate(NEVER)
  assert.ok(set.ok && set.note === undefined)
  const unknown = await build('needs-login', { auth_method: 'face' }).validate(NEVER)
  assert.ok(!unknown.ok && /no login method "face"/.test(unknown.problem) && /key \(API key/.test(unknown.remedy))
})

test('the prompt names attached files below the text', async (t) => {
  const { build, run } = setUp(t)
  const parts = [
    { type: 'text', text: 'look' },
    { type: 'file', filename: 'a.txt', bytes: 'aGk=', mime_type: 'text/plain' },
  ] as const
  const reply = streamedText(await run(build('echo'), { parts }))
  assert.match(
    reply,
    /^look\n\nFiles attached to this message.*\n- \.molecule\/inbox\/.*\/a\.txt \(text\/plain, 2 bytes\)$/,
  )
})

test('BK-8 validate greets the agent and returns its version, or the problem and its remedy', async (t) => {
  const { build, processes } = setUp(t)
  assert.deepEqual(await build('echo').validate(NEVER), { ok: true, version: '0.99.0' })
  const bare = await build('no-load').validate(NEVER)
  assert.ok(bare.ok && bare.note?.includes('cannot load sessions'))
  const silent = 'the agent does not answer initialize: '
  for (const [cmd, why] of [
    ['/no/such/agent', '/no/such/agent: the program was not found'],
    ['/bin/true', '/bin/true ended before it answered'],
  ] as const) {
    const validation = await build('echo', { cmd }).validate(NEVER)
    assert.ok(!validation.ok)
    assert.equal(validation.problem, `backend "acp": ${silent}${why}`)
    assert.match(validation.remedy, /^run the command by hand: /)
  }
  assert.equal(processes(), 0)
})

test('a missing command is refused by the name of the option, and an open quote with the reason', (t) => {
  const { build } = setUp(t)
  assert.throws(() => build('echo', { cmd: '' }), /"cmd" is required/)
  assert.throws(() => build('echo', { cmd: 'agent "x' }), /a quote is not closed/)
})
