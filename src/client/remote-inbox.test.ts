import assert from 'node:assert/strict'
import { json } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { setImmediate as settled } from 'node:timers/promises'
import { letterTo } from '../../test/fakes/letters.ts'
import { serve } from '../../test/harness/loopback-server.ts'
import { present } from '../../test/harness/present.ts'
import { waitUntil, within } from '../../test/harness/wait.ts'
import { systemClock } from '../clock.ts'
import { MoleculeError } from '../errors.ts'
import type { Directive, LeaseKey } from '../inbox/worker.ts'
import { silentLog } from '../log.ts'
import { writeEnvelope } from '../protocol/envelope.ts'
import { createPlatformConnection, type PlatformCall, type PlatformConnection } from './platform-connection.ts'
import { createRemoteInbox } from './remote-inbox.ts'

const WORKER = { id: 'worker', workspaces: ['ws_1'] }

interface BridgeBody {
  readonly key: { readonly messageId: string }
  readonly outcome?: object
  readonly leases_max?: number
  readonly holding?: readonly string[]
}

/** A bridge of a platform that answers the first poll with these directives; later polls for work stay open. */
async function openBridge(t: TestContext, handouts: readonly object[]) {
  const calls: { readonly name: string; readonly body: BridgeBody }[] = []
  let polls = 0
  const { url } = await serve(t, async (request, response) => {
    const name = request.url?.split('/').at(-1) ?? ''
    const body = (await json(request)) as BridgeBody
    calls.push({ name, body })
    const answers: Record<string, object> = { begin: { standing: 'held' }, settle: { answer: 'settled' } }
    const isFirst = name === 'lease' && polls++ === 0
    if (isFirst || body.leases_max === 0) answers['lease'] = { handouts: isFirst ? handouts : [] }
    const answer = answers[name]
    if (answer !== undefined) response.setHeader('X-Request-Id', 'r').end(JSON.stringify(answer))
  })
  const connection = createPlatformConnection({ url, token: () => 'x', clock: systemClock, onBackoff: () => undefined })
  t.after(() => connection.close())
  const inbox = createRemoteInbox({
    connection,
    workspaceId: 'ws_1',
    host: 'here',
    backend: 'mock',
    concurrency: 2,
    startedText: 'started',
    log: silentLog,
  })
  return { inbox, calls }
}

test('CN-6 stop and answer directives of a poll reach the turns of the bridge, in order', async (t) => {
  const key = { workspaceId: 'ws_1', conversationId: 'c', taskId: 't', messageId: 'm', epoch: 1 }
  const sent = [
    { type: 'answer', key, askId: 'a', parts: [{ text: 'yes' }] },
    { type: 'stop', key },
  ]
  const { inbox } = await openBridge(t, sent)
  const stop = new AbortController()
  const received: Directive[] = []
  const limit = AbortSignal.any([stop.signal, AbortSignal.timeout(10_000)])
  for await (const directive of inbox.leases(WORKER, limit)) {
    received.push(directive)
    if (received.length === sent.length) stop.abort()
  }
  assert.deepEqual(received, sent)
})

test('CN-5 a bridge that stops gives back, uncounted, the lease that it has begun and not taken', async (t) => {
  const envelope = writeEnvelope(letterTo('ws_1').envelope)
  const handout = (messageId: string) => ({
    type: 'lease',
    lease: { workspaceId: 'ws_1', conversationId: 'c', taskId: 't', messageId, epoch: 1, envelope },
    brief: {},
  })
  const { inbox, calls } = await openBridge(t, [handout('first'), handout('second')])
  const named = (name: string) => calls.filter((call) => call.name === name)
  const stop = new AbortController()
  const leases = inbox.leases(WORKER, stop.signal)[Symbol.asyncIterator]()
  const { value: taken } = await leases.next()
  await waitUntil(() => named('begin').length === 2 && named('lease').length === 2, 'both turns have begun')
  stop.abort()
  await leases.return?.()
  assert.equal(taken?.type, 'lease')
  const [given, ...more] = named('settle').map(({ body }) => body)
  assert.deepEqual(more, [])
  assert.notEqual(given?.key.messageId, taken.lease.messageId)
  assert.deepEqual(given?.outcome, { type: 'released', interrupted: false })
  await inbox.leave(WORKER)
  const { leases_max: wanted, holding } = named('lease').at(-1)?.body ?? {}
  assert.deepEqual([wanted, holding], [0, [`${taken.lease.messageId}.1`]], 'it names what it still runs')
})

const BRIDGE = { id: 'bridge-1', workspaces: ['ws/1'] }
const keyOf = (messageId: string): LeaseKey => ({
  workspaceId: 'ws/1',
  conversationId: 'c',
  taskId: 't',
  messageId,
  epoch: 1,
})
const wireKeyOf = (messageId: string) => ({ conversationId: 'c', taskId: 't', messageId, epoch: 1 })
const { envelope } = letterTo('ws/1')
const handout = (messageId: string) => ({
  type: 'lease',
  brief: { name: `brief of ${messageId}` },
  lease: { ...keyOf(messageId), envelope: writeEnvelope(envelope) },
})

interface Posted {
  readonly name: string
  readonly call: PlatformCall
  readonly answer: (value: object | Promise<object>) => void
}

const ROUTES = ['lease', 'begin', 'append', 'extend', 'settle', 'suspend', 'resume', 'ask']

type Answers = Record<string, object | undefined>

/** A bridge whose platform answers each call by its name; a call without an answer waits until the test answers it. */
function setUp(answers: Answers = {}) {
  const posted: Posted[] = []
  const backoffs: string[] = []
  const connection: PlatformConnection = {
    async post<T>(path: string, call: PlatformCall, signal?: AbortSignal): Promise<T> {
      const name = path.replace('/workspaces/ws%2F1/inbox/', '')
      const { promise, resolve, reject } = Promise.withResolvers<object>()
      signal?.addEventListener('abort', () => reject(new MoleculeError('canceled', 'cancelled')))
      assert.ok(ROUTES.includes(name), `${name} is no route of the platform`)
      posted.push({ name, call, answer: resolve })
      assert.ok(posted.length < 50, 'it polls without a pause')
      const known = answers[name]
      if (known instanceof Error) throw known
      return (known ?? (await promise)) as T
    },
    backoff: (error) => backoffs.push(error.code),
    beginClosing: () => undefined,
    close: () => undefined,
  }
  const inbox = createRemoteInbox({
    connection,
    workspaceId: 'ws/1',
    host: 'here',
    backend: 'mock',
    concurrency: 2,
    startedText: 'started on here',
    log: silentLog,
  })
  const named = (name: string) => posted.filter((each) => each.name === name)
  const calls = (name: string) => named(name).map(({ call }) => call)
  return { inbox, posted, backoffs, named, calls, answers }
}

/** Polls for work; `poll` answers the open poll and returns the body of the next one. */
function start(bridge: ReturnType<typeof setUp>) {
  const stop = new AbortController()
  const leases = bridge.inbox.leases(BRIDGE, stop.signal)[Symbol.asyncIterator]()
  const next = () => within(leases.next(), 'a directive', 5000)
  const polls = () => bridge.named('lease')
  const poll = async (...handouts: object[]) => {
    const before = polls().length
    polls().at(-1)?.answer({ handouts })
    await waitUntil(() => polls().length > before, 'the next poll', 5000)
    const body = polls().at(-1)?.call.body as { leases_max: number; holding: string[] } | undefined
    return [body?.leases_max, ...(body?.holding ?? [])]
  }
  return { stop, leases, next, poll }
}

const HELD = { begin: { standing: 'held' } }

test('CN-5 each step of a lease is one call with its own limits', async () => {
  const { inbox, posted } = setUp({
    begin: { standing: 'held' },
    append: { standing: 'held' },
    extend: { standings: ['held'] },
    suspend: { standing: 'held' },
    resume: { standing: 'held' },
    ask: { standing: 'refused' },
    settle: { answer: 'settled' },
    lease: { handouts: [] },
  })
  const [key, wire] = [keyOf('m'), wireKeyOf('m')]
  const events = { firstIndex: 0, events: [] } as never
  assert.equal(await inbox.begin(key, 'go'), 'held')
  assert.equal(await inbox.append(key, events), 'held')
  assert.deepEqual(await inbox.extend([key]), ['held'])
  assert.equal(await inbox.suspend(key), 'held')
  assert.equal(await inbox.resume(key), 'held')
  assert.equal(await inbox.ask(key, { kind: 'question', id: 'a', parts: [] }), 'refused')
  const permission = { kind: 'permission', id: 'b', parts: [], tool: 'Bash', subject: 'ls', timeoutMs: 5 } as const
  assert.equal(await inbox.ask(key, permission), 'refused')
  assert.equal(await inbox.settle(key, { type: 'stopped' }), 'settled')
  assert.equal(await inbox.settle(key, { type: 'stopped' }, events), 'settled')
  await inbox.leave(BRIDGE)
  const ask = { id: 'a', parts: [] }
  const permissionAsk = { id: 'b', parts: [], permission: { tool: 'Bash', subject: 'ls' }, timeoutMs: 5 }
  const result = { key: wire, host: 'here', outcome: { type: 'stopped' } }
  const bridge = { bridge: 'bridge-1', host: 'here', backend: 'mock', leases_max: 0, holding: [], wait_ms: 0 }
  assert.deepEqual(present(posted.map(({ name, call }) => [name, call])), [
    ['begin', { body: { key: wire, text: 'go' }, timeoutMs: 10_000, maxWaitMs: 2000 }],
    ['append', { body: { key: wire, firstIndex: 0, events: [] }, timeoutMs: 10_000, maxWaitMs: 2000 }],
    ['extend', { body: { keys: [wire] }, timeoutMs: 10_000, maxWaitMs: 0 }],
    ['suspend', { body: { key: wire }, timeoutMs: 10_000 }],
    ['resume', { body: { key: wire }, timeoutMs: 10_000 }],
    ['ask', { body: { key: wire, question: ask }, timeoutMs: 10_000 }],
    ['ask', { body: { key: wire, question: permissionAsk }, timeoutMs: 10_000 }],
    ['settle', { body: result, timeoutMs: 30_000 }],
    ['settle', { body: { ...result, unsent: events }, timeoutMs: 30_000 }],
    ['lease', { body: bridge, timeoutMs: 5000 }],
  ])
})

test('CN-5 a renewed lease is held, waits for its answer, or has to stop; a lease that is not named is stale', async () => {
  const bridge = setUp(HELD)
  const { next, poll, stop, leases } = start(bridge)
  await Promise.all([next(), poll(handout('m'))])
  const keys = ['a', 'b', 'c', 'm'].map(keyOf)
  bridge.answers['extend'] = { standings: ['held', 'held', 'stop', 'held'], waiting: [true, false, true] }
  assert.deepEqual(await bridge.inbox.extend(keys), ['waiting', 'held', 'stop', 'held'])
  bridge.answers['extend'] = { standings: ['held'] }
  assert.deepEqual(await bridge.inbox.extend(keys), ['held', 'stale', 'stale', 'stale'])
  assert.throws(() => bridge.inbox.brief(keyOf('m')), { code: 'internal', message: 'the message m has no brief' })
  stop.abort()
  await leases.return?.()
})

test('CN-5 a bridge names its leases in each poll from the handout to the settle, and their briefs are kept as long', async () => {
  const bridge = setUp({ ...HELD, settle: { answer: 'settled' }, append: { standing: 'held' } })
  const { inbox, answers } = bridge
  const { next, poll, stop, leases } = start(bridge)
  const first = next()
  await waitUntil(() => bridge.named('lease').length === 1, 'the first poll', 5000)
  const body = { bridge: 'bridge-1', host: 'here', backend: 'mock', leases_max: 2, holding: [], wait_ms: 20_000 }
  assert.deepEqual(bridge.calls('lease'), [{ body, timeoutMs: 25_000 }])
  assert.deepEqual(await poll(handout('m'), handout('n')), [2, 'm.1', 'n.1'])
  assert.deepEqual(await first, { done: false, value: { type: 'lease', lease: { ...keyOf('m'), envelope } } })
  assert.equal((await next()).done, false)
  const begun = (messageId: string) => ({ key: wireKeyOf(messageId), text: 'started on here' })
  assert.deepEqual(
    bridge.calls('begin').map((call) => call.body),
    [begun('m'), begun('n')],
  )
  assert.deepEqual(inbox.brief(keyOf('m')), { name: 'brief of m' })
  await inbox.append(keyOf('m'), {} as never)
  assert.deepEqual(await poll(), [2, 'm.1', 'n.1'])
  await inbox.settle(keyOf('m'), { type: 'stopped' })
  assert.throws(() => inbox.brief(keyOf('m')), { code: 'internal' })
  assert.deepEqual(await poll(), [2, 'n.1'])
  answers['append'] = { standing: 'stale' }
  await inbox.append(keyOf('n'), {} as never)
  assert.throws(() => inbox.brief(keyOf('n')), { code: 'internal' })
  assert.deepEqual(await poll(), [2])
  stop.abort()
  await leases.return?.()
})

test('CN-5 a turn that waits for a person gives its slot to another, until it goes on or ends', async () => {
  const bridge = setUp({ ...HELD, settle: { answer: 'settled' }, lease: undefined })
  const { inbox, answers } = bridge
  const { next, poll, stop, leases } = start(bridge)
  await Promise.all([next(), poll(handout('m'))])
  const question = { kind: 'question', id: 'a', parts: [] } as const
  const slots = async () => (await poll())[0]
  const say = (name: string, standing: string) => {
    answers[name] = { standing }
  }
  say('resume', 'held')
  for (const [name, wait] of [
    ['suspend', () => inbox.suspend(keyOf('m'))],
    ['ask', () => inbox.ask(keyOf('m'), question)],
  ] as const) {
    for (const refusal of ['refused', 'stop']) {
      say(name, refusal)
      assert.equal(await wait(), refusal)
      assert.equal(await slots(), 2)
    }
    say(name, 'held')
    assert.equal(await wait(), 'held')
    assert.equal(await slots(), 3)
    assert.equal(await inbox.resume(keyOf('m')), 'held')
    assert.equal(await slots(), 2)
  }
  await inbox.suspend(keyOf('m'))
  assert.equal(await slots(), 3)
  await inbox.settle(keyOf('m'), { type: 'stopped' })
  assert.equal(await slots(), 2)
  stop.abort()
  await leases.return?.()
})

test('CN-5 a lease that has to stop before its turn is settled as stopped, and a stale one is dropped; neither runs', async () => {
  const bridge = setUp({ settle: { answer: 'settled' } })
  const { next, poll, stop, leases } = start(bridge)
  const first = next()
  await waitUntil(() => bridge.named('lease').length === 1, 'the first poll', 5000)
  await poll(handout('stopped'), handout('stale'), handout('runs'))
  for (const [index, standing] of ['stop', 'stale', 'held'].entries())
    bridge.named('begin')[index]?.answer({ standing })
  const { value } = await first
  assert.equal(value?.type === 'lease' && value.lease.messageId, 'runs')
  await waitUntil(() => bridge.named('settle').length === 1, 'the stopped lease is settled', 5000)
  await settled()
  assert.deepEqual(bridge.calls('settle'), [
    { body: { key: wireKeyOf('stopped'), host: 'here', outcome: { type: 'stopped' } }, timeoutMs: 30_000 },
  ])
  assert.deepEqual(await poll(), [2, 'runs.1'])
  stop.abort()
  await leases.return?.()
})

const RELEASED = { host: 'here', outcome: { type: 'released', interrupted: false } }

test('CN-5 a turn that could not begin is released without a lost attempt, also if the release fails', async () => {
  for (const settle of [{ answer: 'settled' }, new MoleculeError('forbidden', 'no')]) {
    const bridge = setUp({ begin: new MoleculeError('forbidden', 'no'), settle })
    const { next, poll, stop, leases } = start(bridge)
    const first = next()
    await waitUntil(() => bridge.named('lease').length === 1, 'the first poll', 5000)
    await poll(handout('m'))
    await waitUntil(() => bridge.named('settle').length === 1, 'the release', 5000)
    assert.deepEqual(bridge.calls('settle'), [{ body: { key: wireKeyOf('m'), ...RELEASED }, timeoutMs: 30_000 }])
    assert.deepEqual(await poll(), [2])
    stop.abort()
    assert.equal((await first).done, true)
    await leases.return?.()
  }
})

test('CN-6 a bridge that stops ends only after its last begun turn was given back', async () => {
  const bridge = setUp()
  const { next, poll, stop } = start(bridge)
  const first = next()
  await waitUntil(() => bridge.named('lease').length === 1, 'the first poll', 5000)
  await poll(handout('m'), handout('n'))
  stop.abort()
  let ended = false
  const end = first.then((result) => {
    ended = true
    return result.done
  })
  await settled()
  assert.equal(ended, false, 'both turns still begin')
  bridge.named('begin')[0]?.answer({ standing: 'held' })
  bridge.named('begin')[1]?.answer(Promise.reject(new MoleculeError('timeout', 'late', { retryable: true })))
  await waitUntil(() => bridge.named('settle').length >= 1, 'the first release', 5000)
  await settled()
  assert.equal(ended, false, 'a release is not answered yet')
  for (let releases = 0; releases < 2; releases++) {
    await waitUntil(() => bridge.named('settle').length > releases, 'a release', 5000)
    bridge.named('settle')[releases]?.answer({ answer: 'settled' })
  }
  assert.equal(await end, true)
  const released = bridge.calls('settle').map(({ body }) => body)
  assert.deepEqual(released, [
    { key: wireKeyOf('n'), ...RELEASED },
    { key: wireKeyOf('m'), ...RELEASED },
  ])
})

test('CN-5 a poll that is refused for good starts a backoff; a retryable failure has had its own, and an abort needs none', async () => {
  for (const [retryable, expected] of [
    [false, ['forbidden']],
    [true, []],
  ] as const) {
    const bridge = setUp()
    const { next, stop, leases } = start(bridge)
    const first = next()
    await waitUntil(() => bridge.named('lease').length === 1, 'the first poll', 5000)
    bridge.named('lease')[0]?.answer(Promise.reject(new MoleculeError('forbidden', 'no', { retryable })))
    await waitUntil(() => bridge.named('lease').length === 2, 'the next poll', 5000)
    stop.abort()
    assert.equal((await first).done, true)
    await leases.return?.()
    assert.deepEqual(bridge.backoffs, expected)
  }
})
