import assert from 'node:assert/strict'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createFakeAgents, type FakeAgentName } from '../../../../test/fakes/agents/fake-program.ts'
import { listEvents, makeTurn, replyOf, type TurnOverrides, tokenOf } from '../../../../test/fakes/turns.ts'
import { linuxOnly, markedPids } from '../../../../test/harness/live-processes.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../../../test/harness/process-harness.ts'
import { waitUntil } from '../../../../test/harness/wait.ts'
import { systemClock } from '../../../clock.ts'
import { type Log, silentLog } from '../../../log.ts'
import type { Backend, BackendEvent } from '../../backend.ts'
import { builtinBackends, createBackendRegistry } from '../../backends.ts'
import { createOptions } from '../../options.ts'

const fake = createFakeAgents()
const NEVER = new AbortController().signal
const SECRETS = { ANTHROPIC_API_KEY: 'secret', CODEX_API_KEY: 'secret', GEMINI_API_KEY: 'secret' }

function createDesk(t: TestContext) {
  const { processes, dir, owner } = createProcessHarness(t)
  // The timers of the process code do not keep a test alive.
  const keepAlive = setTimeout(() => undefined, 60_000)
  t.after(() => clearTimeout(keepAlive))
  const warned: string[] = []
  const log = { ...silentLog, warn: (_: unknown, message: string) => void warned.push(message) } as Log
  const environment = { ...PLAIN_ENVIRONMENT, ...SECRETS }
  const build = (agent: FakeAgentName, bin: string, values: Readonly<Record<string, string>> = {}): Backend => {
    const name = agent === 'claude' ? 'claude-code' : agent
    const context = { processes, environment, clock: systemClock, log }
    const backend = createBackendRegistry(builtinBackends)
      .get(name)
      .create(createOptions({ bin, ...values }), context)
    t.after(() => backend.close())
    return backend
  }
  const run = (backend: Backend, overrides: TurnOverrides) =>
    listEvents(backend.run(makeTurn({ workingDir: dir, conversationId: 'c1', ...overrides }), NEVER))
  return { build, run, warned, dir, alive: () => markedPids(`${owner}:`) }
}

const probe = async (backend: Backend, signal = NEVER) => (await backend.probe?.(signal)) ?? assert.fail('no probe')

const statusOf = (events: readonly BackendEvent[]) =>
  events.flatMap((event) => (event.type === 'status' ? [event.text] : []))
/** The recorded starts of the fakes. */
const startsOf = (bin: string): { argv: string[]; env: Record<string, string> }[] =>
  readFileSync(join(dirname(bin), 'starts.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))

/** Each agent in a version that lacks something that its warm mode needs. */
const DRIFTED: readonly (readonly [string, FakeAgentName, string, string])[] = [
  ['AG-1', 'claude', 'without-input-format', 'option --input-format missing'],
  ['AG-2', 'codex', 'no-app-server', 'command app-server missing'],
  ['AG-2', 'codex', 'renamed', 'event turn/completed missing'],
  ['AG-3', 'gemini', 'without-acp', 'option --acp missing'],
  ['AG-4', 'opencode', 'no-acp', 'command acp missing'],
  ['AG-5', 'hermes', 'no-acp', 'command acp missing'],
]

for (const [id, agent, scenario, missing] of DRIFTED) {
  test(`${id} ${agent}, ${missing}: turns run one-shot, with one warning and a status`, async (t) => {
    const { build, run, warned } = createDesk(t)
    const backend = build(agent, fake(agent, scenario))
    const first = await run(backend, { text: 'one' })
    assert.equal(replyOf(first), 'one')
    assert.deepEqual(statusOf(first), [`running one-shot without streaming: ${missing}`])
    const second = await run(backend, { text: 'two', sessionToken: tokenOf(first) })
    assert.equal(replyOf(second), 'two')
    assert.deepEqual(statusOf(second), statusOf(first))
    assert.equal(warned.length, 1)
    assert.match(warned[0] ?? '', new RegExp(`${missing}, running one-shot without streaming`))
  })

  test(`CL-3 ${agent}: a probe without a model finds ${missing}`, linuxOnly, async (t) => {
    const { build, alive } = createDesk(t)
    const backend = build(agent, fake(agent, scenario))
    assert.deepEqual(await probe(backend), [{ missing, instead: 'running one-shot without streaming' }])
    assert.deepEqual(alive(), [])
  })
}

for (const agent of ['claude', 'codex', 'gemini', 'opencode', 'hermes', 'openclaw'] as const) {
  test(`CL-3 ${agent} in the tested version: a probe finds no drift in either mode`, async (t) => {
    const { build } = createDesk(t)
    assert.deepEqual(await probe(build(agent, fake(agent))), [])
    assert.deepEqual(await probe(build(agent, fake(agent), { mode: 'oneshot' })), [])
  })
}

test('CL-3 drift of both modes has no way around it', async (t) => {
  const { build } = createDesk(t)
  assert.deepEqual(await probe(build('claude', fake('claude', 'without-model'))), [
    { missing: 'option --model missing' },
  ])
  assert.deepEqual(await probe(build('openclaw', fake('openclaw', 'without-message-file'))), [
    { missing: 'option --message-file missing' },
  ])
  assert.deepEqual(await probe(build('hermes', fake('hermes', 'without-query-file'), { mode: 'oneshot' })), [
    { missing: 'option --query-file missing' },
  ])
})

test('CL-3 a probe finds another protocol version, and an agent that cannot load sessions', async (t) => {
  const { build } = createDesk(t)
  const instead = 'running one-shot without streaming'
  assert.deepEqual(await probe(build('gemini', fake('gemini', 'acp-2'))), [
    { missing: 'ACP 1 missing, it speaks 2', instead },
  ])
  assert.deepEqual(await probe(build('claude', fake('claude', 'no-initialize'))), [
    { missing: 'control request initialize missing', instead: 'kept warm, but it may not ask or be interrupted' },
  ])
  assert.deepEqual(await probe(build('opencode', fake('opencode', 'no-load'))), [
    { missing: 'session/load missing', instead: 'a conversation is forgotten when its process ends' },
  ])
})

test("CL-3 a probe gets no credentials, and a temporary folder for the user's state", async (t) => {
  const { build } = createDesk(t)
  for (const [agent, variable] of [['claude', 'CLAUDE_CONFIG_DIR'] as const, ['codex', 'CODEX_HOME'] as const]) {
    const bin = fake(agent)
    await probe(build(agent, bin))
    const { env } = startsOf(bin).at(-1) ?? assert.fail('not started')
    assert.match(env[variable] ?? '', /molecule-look-/)
    assert.doesNotMatch(JSON.stringify(env), /secret/)
  }
})

test('CL-3 a probe without an answer can be cancelled and leaves no process', linuxOnly, async (t) => {
  const { build, dir, alive } = createDesk(t)
  const bin = join(dir, 'silent')
  writeFileSync(bin, '#!/bin/sh\nexec sleep 300\n')
  chmodSync(bin, 0o755)
  for (const agent of ['claude', 'codex', 'gemini', 'hermes'] as const) {
    const stop = new AbortController()
    const probing = probe(build(agent, bin), stop.signal)
    await waitUntil(() => alive().length > 0, 'it was started')
    stop.abort()
    await assert.rejects(probing, { code: 'canceled' })
    assert.deepEqual(alive(), [])
  }
})

test('AG-16 after the fallback to one-shot, an action that needs permission is refused', async (t) => {
  const { build, run } = createDesk(t)
  const bin = fake('claude', 'without-input-format')
  await run(build('claude', bin, { permission: 'ask' }), { text: 'hello' })
  const { argv } = startsOf(bin).at(-1) ?? assert.fail('not started')
  assert.ok(!argv.includes('--input-format'), argv.join(' '))
  assert.equal(argv[argv.indexOf('--permission-mode') + 1], 'dontAsk')
})

test('AG-2 a death, a login error and a provider error do not cause the fallback', async (t) => {
  const { build, run, warned } = createDesk(t)
  const cases = [
    ['claude', 'complain', 'exit'],
    ['codex', 'complain', 'exit'],
    ['codex', 'error-401', 'auth_failed'],
    ['gemini', 'needs-login', 'auth_failed'],
    ['gemini', 'dies', 'exit'],
  ] as const
  for (const [agent, scenario, code] of cases) {
    const events = await run(build(agent, fake(agent, scenario)), { text: 'hello' })
    const end = events.at(-1)
    assert.ok(end?.type === 'failed', `${agent} ${scenario}`)
    assert.equal(end.error.code, code)
    assert.deepEqual(
      statusOf(events).filter((text) => text.includes('one-shot')),
      [],
    )
  }
  assert.deepEqual(warned, [])
})

test('AG-2 a closed backend in fallback starts no process', linuxOnly, async (t) => {
  const { build, run, alive } = createDesk(t)
  const bin = fake('codex', 'no-app-server')
  const backend = build('codex', bin)
  assert.equal(replyOf(await run(backend, { text: 'one' })), 'one')
  const before = startsOf(bin).length
  await backend.close()
  const end = (await run(backend, { text: 'two' })).at(-1)
  assert.ok(end?.type === 'failed' && end.error.code === 'canceled')
  assert.equal(startsOf(bin).length, before)
  assert.deepEqual(alive(), [])
})
