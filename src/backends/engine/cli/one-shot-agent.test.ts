import assert from 'node:assert/strict'
import { chmodSync, globSync, readdirSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createFakeAgents, type FakeAgentName } from '../../../../test/fakes/agents/fake-program.ts'
import { listEvents, makeTurn, streamedText, type TurnOverrides } from '../../../../test/fakes/turns.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../../../test/harness/process-harness.ts'
import { systemClock } from '../../../clock.ts'
import { type Log, silentLog } from '../../../log.ts'
import type { Backend, BackendEvent } from '../../backend.ts'
import { builtinBackends, createBackendRegistry } from '../../backends.ts'
import { createOptions } from '../../options.ts'

const fake = createFakeAgents()
const NEVER = new AbortController().signal

function createDesk(t: TestContext) {
  const { processes, dir } = createProcessHarness(t)
  // The timers of the process code do not keep a test alive.
  const keepAlive = setTimeout(() => undefined, 60_000)
  t.after(() => clearTimeout(keepAlive))
  const warned: string[] = []
  const log = { ...silentLog, warn: (_: unknown, message: string) => void warned.push(message) } as Log
  const build = (agent: FakeAgentName, scenario: string, values: Readonly<Record<string, string>> = {}): Backend => {
    const context = { processes, environment: PLAIN_ENVIRONMENT, clock: systemClock, log }
    const options = createOptions({ bin: fake(agent, scenario), ...values })
    const backend = createBackendRegistry(builtinBackends).get(agent).create(options, context)
    t.after(() => backend.close())
    return backend
  }
  const run = (backend: Backend, overrides: TurnOverrides) =>
    listEvents(backend.run(makeTurn({ workingDir: dir, ...overrides }), NEVER))
  return { build, run, warned, dir }
}

const ONE_SHOT = { mode: 'oneshot' }
/** Nothing listens there. */
const NO_GATEWAY = { gateway_url: 'http://127.0.0.1:1' }
const AGENTS = ['gemini', 'opencode', 'hermes', 'openclaw'] as const
const oneShot = (agent: FakeAgentName) => (agent === 'openclaw' ? { ...ONE_SHOT, ...NO_GATEWAY } : ONE_SHOT)

const failureOf = (events: readonly BackendEvent[]) => {
  const end = events.at(-1)
  assert.ok(end?.type === 'failed', `it did not fail: ${streamedText(events)}`)
  return end.error
}

const tokenOf = (events: readonly BackendEvent[]) => {
  const event = events.findLast(({ type }) => type === 'session')
  return event?.type === 'session' ? event.token : undefined
}

for (const agent of AGENTS) {
  test(`${agent}: instructions precede the first prompt of a session and not the next`, async (t) => {
    const { build, run } = createDesk(t)
    const backend = build(agent, 'echo', oneShot(agent))
    const first = await run(backend, { text: 'one', systemPrompt: 'Be kind.' })
    assert.equal(streamedText(first), '<instructions>\nBe kind.\n</instructions>\n\none')
    const sessionToken = tokenOf(first)
    assert.ok(sessionToken)
    const second = await run(backend, { text: 'two', systemPrompt: 'Be kind.', sessionToken })
    assert.equal(streamedText(second), 'two')
    assert.equal(tokenOf(second), sessionToken)
  })

  test(`${agent}: attachments are named in the prompt`, async (t) => {
    const { build, run } = createDesk(t)
    const parts = [
      { type: 'text', text: 'look' },
      { type: 'data', data: { a: 1 }, filename: 'a.json' },
    ] as const
    const reply = streamedText(await run(build(agent, 'echo', oneShot(agent)), { parts }))
    assert.match(reply, /^look\n\nFiles attached to this message.*\n- \.molecule\/inbox\/.*a\.json/)
  })

  test(`BK-8 ${agent}: validate gives the version, or the problem and its remedy`, async (t) => {
    const { build, dir } = createDesk(t)
    const found = await build(agent, 'echo').validate(NEVER)
    assert.ok(found.ok)
    assert.match(found.version ?? '', /^\d+\.\d+\.\d+$/)
    const missing = await build(agent, 'echo', { bin: '/no/such/program' }).validate(NEVER)
    assert.ok(!missing.ok)
    assert.match(`${missing.problem} ${missing.remedy}`, new RegExp(`"${agent}".*/no/such/program.*install`))
    const plain = join(dir, 'plain')
    writeFileSync(plain, 'x')
    chmodSync(plain, 0o644)
    const unusable = await build(agent, 'echo', { bin: plain }).validate(NEVER)
    assert.ok(!unusable.ok && unusable.problem.includes('not executable'))
  })
}

for (const agent of ['gemini', 'opencode', 'hermes'] as const) {
  test(`RT-5 ${agent}: an unknown session is session_lost`, async (t) => {
    const { build, run } = createDesk(t)
    const sessionToken = tokenOf(await run(build(agent, 'echo', oneShot(agent)), { text: 'one' }))
    assert.ok(sessionToken)
    const events = await run(build(agent, 'lost', oneShot(agent)), { text: 'two', sessionToken })
    assert.equal(failureOf(events).code, 'session_lost')
  })
}

for (const [agent, scenario, code] of [
  ['gemini', 'error-401', 'auth_failed'],
  ['gemini', 'error-429', 'rate_limited'],
  ['opencode', 'error-401', 'auth_failed'],
  ['hermes', 'error-429', 'rate_limited'],
  ['hermes', 'http-as-answer', 'bad_request'],
  ['openclaw', 'error-401', 'auth_failed'],
] as const) {
  test(`${agent}: ${scenario} is ${code}`, async (t) => {
    const { build, run } = createDesk(t)
    assert.equal(failureOf(await run(build(agent, scenario, oneShot(agent)), { text: 'x' })).code, code)
  })
}

for (const agent of AGENTS) {
  test(`${agent}: the use of a tool is reported`, async (t) => {
    const { build, run } = createDesk(t)
    const events = await run(build(agent, 'tool', oneShot(agent)), { text: 'x' })
    const states = events.flatMap((event) => (event.type === 'tool' ? [event.state] : []))
    assert.deepEqual(states, ['started', 'finished'])
    assert.equal(events.at(-1)?.type, 'done')
  })
}

test('AG-18 gemini takes no provider, so it is dropped, and the option overrides the workspace', async (t) => {
  const { build, run } = createDesk(t)
  const argsOf = async (values: Readonly<Record<string, string>>, model?: string): Promise<string[]> =>
    JSON.parse(
      streamedText(await run(build('gemini', 'argv', { ...ONE_SHOT, ...values }), { ...(model && { model }) })),
    )
  const modelIn = (args: string[]) => args[args.indexOf('-m') + 1]
  assert.equal(modelIn(await argsOf({}, 'google/gemini-3-pro')), 'gemini-3-pro')
  assert.equal(modelIn(await argsOf({ model: 'gemini-3-flash' }, 'google/gemini-3-pro')), 'gemini-3-flash')
  assert.ok(!(await argsOf({})).includes('-m'))
})

for (const [agent, values, option] of [
  ['gemini', { max_turns: '5' }, 'max_turns'],
  ['gemini', { ...ONE_SHOT, mcp_servers: '{"a":{"command":"x"}}' }, 'mcp_servers'],
  ['gemini', { ...ONE_SHOT, permission: 'ask' }, 'permission'],
  ['opencode', { max_turns: '5' }, 'max_turns'],
  ['hermes', { ...ONE_SHOT, allowed_tools: 'terminal' }, 'allowed_tools'],
  ['hermes', { ...ONE_SHOT, permission: 'allowed_tools' }, 'permission'],
  ['hermes', { ...ONE_SHOT, mcp_servers: '{"a":{"command":"x"}}' }, 'mcp_servers'],
  ['hermes', { max_turns: '5' }, 'max_turns'],
  ['openclaw', { permission: 'bypass' }, 'permission'],
  ['openclaw', { warm_max: '2' }, 'warm_max'],
] as const) {
  test(`AG-15 ${agent} with ${JSON.stringify(values)} warns that it cannot honour ${option}`, (t) => {
    const { build, warned } = createDesk(t)
    build(agent, 'echo', values)
    assert.equal(warned.length, 1)
    assert.match(warned[0] ?? '', new RegExp(`"${agent}" cannot honour option "${option}"`))
  })
}

test("opencode's own HTTP server has a password", async (t) => {
  const { build, run } = createDesk(t)
  const started = JSON.parse(streamedText(await run(build('opencode', 'environment'), { text: 'x' })))
  for (const name of ['OPENCODE_SERVER_PASSWORD', 'OPENCODE_CONFIG_CONTENT'])
    assert.ok(started.names.includes(name), name)
  assert.deepEqual(started.argv, ['acp'])
})

test("openclaw's prompt is in a private file that is removed after the turn", async (t) => {
  const { build, run, dir } = createDesk(t)
  const folders = () => readdirSync(tmpdir()).filter((name) => name.startsWith('molecule-agent-'))
  const before = new Set(folders())
  assert.equal(streamedText(await run(build('openclaw', 'echo', NO_GATEWAY), { text: 'quiet' })), 'quiet')
  assert.deepEqual(
    folders().filter((name) => !before.has(name) && globSync(join(tmpdir(), name, 'message.md')).length > 0),
    [],
  )
  assert.deepEqual(readdirSync(dir), [])
})
