import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createFakeAgents } from '../../../test/fakes/agents/fake-program.ts'
import { errorOf, listEvents, makeTurn, replyOf, type TurnOverrides, tokenOf } from '../../../test/fakes/turns.ts'
import { linuxOnly, markedPids } from '../../../test/harness/live-processes.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../../test/harness/process-harness.ts'
import { waitUntil } from '../../../test/harness/wait.ts'
import { systemClock } from '../../clock.ts'
import { silentLog } from '../../log.ts'
import type { Backend, PermissionRequest } from '../backend.ts'
import { createOptions } from '../options.ts'
import { acpPrompt } from './args.ts'
import { hermes } from './hermes.ts'

const fake = createFakeAgents()
const NEVER = new AbortController().signal

function setUp(t: TestContext) {
  const { processes, owner, dir } = createProcessHarness(t)
  // The timers of the process supervisor do not keep a test alive.
  const keepAlive = setTimeout(() => undefined, 60_000)
  t.after(() => clearTimeout(keepAlive))
  const context = { processes, environment: PLAIN_ENVIRONMENT, clock: systemClock, log: silentLog }
  return {
    build(scenario: string, values: Readonly<Record<string, string>> = {}): Backend {
      const backend = hermes.create(createOptions({ bin: fake('hermes', scenario), ...values }), context)
      t.after(() => backend.close())
      return backend
    },
    run: (backend: Backend, given: TurnOverrides, signal = NEVER) =>
      listEvents(backend.run(makeTurn({ workingDir: dir, conversationId: 'c1', ...given }), signal)),
    pids: () => markedPids(`${owner}:`),
  }
}

test('AG-5 a warm hermes answers from one process and remembers', linuxOnly, async (t) => {
  const { build, run, pids } = setUp(t)
  const backend = build('count')
  const first = await run(backend, { text: 'one' })
  const before = pids()
  const second = await run(backend, { text: 'two', sessionToken: tokenOf(first) })
  assert.deepEqual([first, second].map(replyOf), ['n=1 model=fake:default', 'n=2 model=fake:default'])
  assert.deepEqual([before.length, pids()], [1, before])
})

test('AG-5 RT-5 a new process resumes the session, and its history is not taken for an answer', async (t) => {
  const { build, run } = setUp(t)
  const before = build('count')
  const sessionToken = tokenOf(await run(before, { text: 'one' }))
  await before.close()
  assert.equal(replyOf(await run(build('count'), { text: 'two', sessionToken })), 'n=2 model=fake:default')
})

test('AG-5 RT-5 a session that hermes does not know is lost, although hermes says that it resumed it', async (t) => {
  const { build, run } = setUp(t)
  const sessionToken = tokenOf(await run(build('echo'), { text: 'one' }))
  const backend = build('lost')
  assert.equal(errorOf(await run(backend, { text: 'two', sessionToken })).code, 'session_lost')
  // The runtime runs the message once more, without the token.
  assert.equal(replyOf(await run(backend, { text: 'two' })), 'two')
})

test(
  'AG-5 a cancel that hermes answers with an error ends its process: it would queue every later prompt',
  linuxOnly,
  async (t) => {
    const { build, run, pids } = setUp(t)
    const backend = build('endless')
    const stuck: number[] = []
    for (const text of ['one', 'two']) {
      const cancel = new AbortController()
      const running = run(backend, { text }, cancel.signal)
      await waitUntil(() => pids().length === 2, 'its tool runs')
      stuck.push(...pids())
      cancel.abort()
      assert.equal(errorOf(await running).code, 'canceled')
      assert.deepEqual(pids(), [])
    }
    assert.equal(new Set(stuck).size, 4)
  },
)

for (const [scenario, code] of [
  ['error-401', 'auth_failed'],
  ['error-429', 'rate_limited'],
  ['error-500', 'provider_failed'],
  ['empty', 'empty_response'],
  ['not-configured', 'auth_failed'],
] as const) {
  test(`AG-5 warm hermes: ${scenario} is ${code}`, async (t) => {
    const { build, run } = setUp(t)
    assert.equal(errorOf(await run(build(scenario), { text: 'x' })).code, code)
  })
}

test('AG-5 an answer of the model that begins like an HTTP error stays an answer', async (t) => {
  const { build, run } = setUp(t)
  assert.match(replyOf(await run(build('http-as-answer'), { text: 'x' })), /^HTTP 404: /)
})

test('AG-5 a message that begins with a slash is no command of hermes', async (t) => {
  const { build, run } = setUp(t)
  const backend = build('count')
  const sessionToken = tokenOf(await run(backend, { text: 'one' }))
  assert.match(replyOf(await run(backend, { text: '/reset', sessionToken })), /^n=2 /)
  assert.equal(acpPrompt('  /model x'), 'The message is:\n  /model x')
  assert.equal(acpPrompt('1/2'), '1/2')
})

test('AG-16 AG-5 hermes asks a person before a dangerous command; the reply begins without blank lines', async (t) => {
  const { build, run } = setUp(t)
  const asked: PermissionRequest[] = []
  const ask = async (request: PermissionRequest) => {
    asked.push(request)
    return asked.length === 1 ? ('allowed' as const) : ('denied' as const)
  }
  const backend = build('tool')
  assert.equal(replyOf(await run(backend, { text: 'x', ask })), 'chosen: allow_once')
  assert.equal(replyOf(await run(backend, { text: 'x', ask })), 'chosen: deny\n\n(Not allowed in this turn: execute.)')
  assert.deepEqual([asked[0]?.tool, asked[0]?.subject], ['execute', 'rm -rf /home/user/work'])
})

test('AG-18 AG-5 the session gets the model of the workspace as it was written', async (t) => {
  const { build, run } = setUp(t)
  const model = 'anthropic/claude-sonnet-4.6'
  assert.equal(replyOf(await run(build('count'), { text: 'x', model })), `n=1 model=${model}`)
})
