import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createFakeAgents, startFakeGateway } from '../../../test/fakes/agents/fake-program.ts'
import { errorOf, listEvents, makeTurn, replyOf, type TurnOverrides, tokenOf } from '../../../test/fakes/turns.ts'
import { linuxOnly, markedPids } from '../../../test/harness/live-processes.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT, temporaryDir } from '../../../test/harness/process-harness.ts'
import { waitUntil } from '../../../test/harness/wait.ts'
import { systemClock } from '../../clock.ts'
import { silentLog } from '../../log.ts'
import type { Backend } from '../backend.ts'
import { createOptions } from '../options.ts'
import { findGateway } from './gateway.ts'
import { openclaw } from './openclaw.ts'
import { stateFolderOf } from './state-folder.ts'

const NEVER = new AbortController().signal
/** Nothing listens there. */
const AWAY = '1'
const fake = createFakeAgents()

function setUp(t: TestContext) {
  const { processes, owner, dir } = createProcessHarness(t)
  // The timers of the process supervisor do not keep a test alive.
  const keepAlive = setTimeout(() => undefined, 60_000)
  t.after(() => clearTimeout(keepAlive))
  let port = AWAY
  return {
    /** The gateway of the fake; its port is known to the backends that are built afterwards. */
    async startGateway(scenario: string) {
      const gateway = await startFakeGateway(fake('openclaw', scenario))
      t.after(gateway.stop)
      port = gateway.port
      return gateway
    },
    build(scenario: string, values: Record<string, string> = {}, token = 'gateway-token'): Backend {
      const variables = { OPENCLAW_GATEWAY_PORT: port, OPENCLAW_GATEWAY_TOKEN: token, HOME: dir }
      const environment = { ...PLAIN_ENVIRONMENT, ...variables }
      const context = { processes, environment, clock: systemClock, log: silentLog }
      const backend = openclaw.create(createOptions({ bin: fake('openclaw', scenario), ...values }), context)
      t.after(() => backend.close())
      return backend
    },
    run: (backend: Backend, given: TurnOverrides, signal = NEVER) =>
      listEvents(backend.run(makeTurn({ workingDir: dir, ...given }), signal)),
    pids: () => markedPids(`${owner}:`),
  }
}

test('AG-6 with a gateway a turn is one HTTP request, without a process, and the session continues', async (t) => {
  const { startGateway, build, run } = setUp(t)
  await startGateway('count')
  const backend = build('count')
  const first = await run(backend, { text: 'one' })
  const second = await run(backend, { text: 'two', sessionToken: tokenOf(first), model: 'fake/large' })
  assert.deepEqual([first, second].map(replyOf), ['n=1 by http', 'n=2 by http model=fake/large'])
  assert.deepEqual(
    first.find((event) => event.type === 'usage'),
    { type: 'usage', inputTokens: 11, outputTokens: 7 },
  )
})

test('AG-6 one session over all ways: HTTP, the program through the gateway, and --local without one', async (t) => {
  const { startGateway, build, run } = setUp(t)
  const gateway = await startGateway('count')
  const first = await run(build('count'), { text: 'one' })
  const sessionToken = tokenOf(first)
  const second = await run(build('count', { mode: 'oneshot' }), { text: 'two', sessionToken })
  await gateway.stop()
  const third = await run(build('count'), { text: 'three', sessionToken })
  assert.deepEqual([first, second, third].map(replyOf), ['n=1 by http', 'n=2 by gateway', 'n=3 local'])
  assert.deepEqual([second, third].map(tokenOf), [sessionToken, sessionToken])
})

test('AG-6 a gateway without the HTTP endpoint, or with another token, is used by the program', async (t) => {
  const { startGateway, build, run } = setUp(t)
  const closed = await startGateway('closed')
  assert.equal(replyOf(await run(build('closed'), { text: 'one' })), 'one')
  await closed.stop()
  await startGateway('count')
  assert.equal(replyOf(await run(build('count', {}, 'another-token'), { text: 'one' })), 'n=1 by gateway')
})

test('AG-6 a gateway at an unknown port is found by the refusal of --local', async (t) => {
  const { startGateway, build, run } = setUp(t)
  await startGateway('count')
  for (const mode of ['session', 'oneshot']) {
    const backend = build('count', { mode, gateway_url: `http://127.0.0.1:${AWAY}` })
    assert.equal(replyOf(await run(backend, { text: 'one' })), 'n=1 by gateway')
  }
})

test('AG-6 without a gateway one --local run follows the other, also of two workspaces', async (t) => {
  const { build, run } = setUp(t)
  const backends = [build('echo'), build('echo', { mode: 'oneshot' })]
  const texts = ['one', 'two', 'three', 'four']
  const events = await Promise.all(texts.map((text, n) => run(backends[n % 2] as Backend, { text })))
  assert.deepEqual(events.map(replyOf), texts)
})

test(
  'AG-6 a turn that waits for another --local run can be cancelled, and the next still gets its place',
  linuxOnly,
  async (t) => {
    const { build, run, pids } = setUp(t)
    const stop = new AbortController()
    const cancel = new AbortController()
    const busy = run(build('endless'), { text: 'x' }, stop.signal)
    await waitUntil(() => pids().length === 2, 'the first run works')
    const waiting = run(build('echo'), { text: 'cancelled' }, cancel.signal)
    const next = run(build('echo'), { text: 'next' })
    cancel.abort()
    assert.equal(errorOf(await waiting).code, 'canceled')
    stop.abort()
    assert.equal(errorOf(await busy).code, 'canceled')
    assert.equal(replyOf(await next), 'next')
  },
)

for (const [scenario, code, isRetryable] of [
  ['error-429', 'rate_limited', true],
  ['cut', 'no_end', true],
  ['empty', 'empty_response', true],
] as const) {
  test(`AG-6 over HTTP, ${scenario} is ${code} and does not take another way`, async (t) => {
    const { startGateway, build, run, pids } = setUp(t)
    await startGateway(scenario)
    const error = errorOf(await run(build('echo'), { text: 'x' }))
    assert.deepEqual([error.code, error.retryable], [code, isRetryable])
    assert.deepEqual(pids(), [])
  })
}

test('AG-6 an agent that the gateway does not know is an error of the settings', async (t) => {
  const { startGateway, build, run } = setUp(t)
  await startGateway('echo')
  const error = errorOf(await run(build('echo', { agent: 'nobody' }), { text: 'x' }))
  assert.equal(error.code, 'bad_config')
  assert.match(error.message, /Unknown agent 'nobody'/)
})

test('AG-17 AG-6 the gateway and its token come from the options, the environment or the settings file', async (t) => {
  const dir = temporaryDir(t)
  const headers = async () => ({})
  const find = (environment: Record<string, string>, url = '') => findGateway({ environment, url, headers })
  const own = { url: 'http://127.0.0.1:18789', headers: {}, usesTls: false }
  assert.deepEqual(await find({}), own)
  assert.deepEqual(await find({ OPENCLAW_STATE_DIR: join(dir, 'missing') }), own)
  const write = (gateway: object) => writeFileSync(join(dir, 'openclaw.json'), JSON.stringify({ gateway }))
  write({ port: 19_000, auth: { mode: 'token', token: 'abc' } })
  const found = { url: 'http://127.0.0.1:19000', headers: { Authorization: 'Bearer abc' }, usesTls: false }
  assert.deepEqual(await find({ OPENCLAW_STATE_DIR: dir }), found)
  const variables = { OPENCLAW_STATE_DIR: dir, OPENCLAW_GATEWAY_TOKEN: 'xyz', OPENCLAW_GATEWAY_PORT: '7' }
  const byVariable = { url: 'http://127.0.0.1:7', headers: { Authorization: 'Bearer xyz' }, usesTls: false }
  assert.deepEqual(await find(variables), byVariable)
  // Another gateway does not get the token of this machine's gateway.
  assert.deepEqual(await find(variables, 'https://claw.test/'), {
    url: 'https://claw.test',
    headers: {},
    usesTls: false,
  })
  write({ auth: { mode: 'token', token: '${SECRET}' }, tls: { enabled: true } })
  assert.deepEqual(await find({ OPENCLAW_STATE_DIR: dir }), { ...own, usesTls: true })
})

test('AG-6 the state folder follows the order of openclaw', () => {
  assert.equal(stateFolderOf({}), undefined)
  assert.equal(stateFolderOf({ HOME: '/h' }), '/h/.openclaw')
  assert.equal(stateFolderOf({ HOME: '/h', OPENCLAW_PROFILE: 'work' }), '/h/.openclaw-work')
  assert.equal(stateFolderOf({ HOME: '/h', OPENCLAW_HOME: '/o' }), '/o/.openclaw')
  assert.equal(stateFolderOf({ HOME: '/h', OPENCLAW_STATE_DIR: '/s' }), '/s')
})
