import assert from 'node:assert/strict'
import { test } from 'node:test'
import { leaseOf } from '../../test/fakes/letters.ts'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import type { Backend, BackendEvent, Turn } from '../backends/backend.ts'
import { MoleculeError } from '../errors.ts'
import type { Directive, Inbox, Lease, LeaseKey, LeaseStanding, Outcome, RenewedStanding } from '../inbox/worker.ts'
import { silentLog } from '../log.ts'
import { createWaitQueue, onAbort } from '../wait.ts'
import { createRuntime, type RuntimeOptions } from './runtime.ts'

const away = () => new MoleculeError('store_unavailable', 'away', { retryable: true })
const DONE: BackendEvent = { type: 'done', parts: [{ text: 'ok' }], finality: 'completed' }

const leaseNamed = (messageId: string): Lease => leaseOf({ messageId })

type Play = (turn: Turn, signal: AbortSignal) => AsyncIterable<BackendEvent>

/** Ends when it is aborted, as a killed agent does. */
const untilAborted: Play = async function* (_turn, signal) {
  await new Promise<void>((resolve) => void onAbort(signal, resolve))
  yield { type: 'failed', error: new MoleculeError('canceled', 'killed') }
}

/** A clock that knows how many of its timers wait. */
function createCountingClock() {
  const clock = manualClock()
  let timers = 0
  const after: typeof clock.after = (delayMs, callback) => {
    timers += 1
    let isOpen = true
    const close = () => {
      if (isOpen) timers -= 1
      isOpen = false
    }
    const cancel = clock.after(delayMs, () => {
      close()
      callback()
    })
    return () => {
      close()
      cancel()
    }
  }
  return { ...clock, after, timers: () => timers }
}

/** The answers of an inbox, which a test may replace. */
interface Answers {
  extend: (keys: readonly LeaseKey[]) => Promise<RenewedStanding[]>
  append: () => Promise<LeaseStanding>
  settle: () => Promise<'settled' | 'stale'>
  /** Called when the runtime begins to take directives. */
  onLeases: () => void
  /** Runs when the runtime takes no more. */
  onEnd: () => Promise<void>
}

/** A started runtime on an inbox whose directives and answers the test gives. */
function setUp(play: Play, more: Partial<RuntimeOptions> & { stallMs?: number } = {}) {
  const clock = createCountingClock()
  const directives = createWaitQueue<Directive>()
  const extended: string[][] = []
  const settled: [string, Outcome][] = []
  const seen = { closed: 0, asked: [] as string[], warned: [] as string[] }
  const answers: Answers = {
    extend: async (keys) => keys.map(() => 'held'),
    append: async () => 'held',
    settle: async () => 'settled',
    onLeases: () => undefined,
    onEnd: async () => undefined,
  }
  const inbox: Inbox = {
    async *leases(_worker, signal) {
      answers.onLeases()
      try {
        for (let next = await directives.take(signal); next !== undefined; next = await directives.take(signal))
          yield next
      } finally {
        await answers.onEnd()
      }
    },
    begin: async () => 'held',
    async extend(keys) {
      extended.push(keys.map(({ messageId }) => messageId))
      return await answers.extend(keys)
    },
    append: () => answers.append(),
    async settle({ messageId }, outcome) {
      settled.push([messageId, outcome])
      return await answers.settle()
    },
    suspend: async () => 'held',
    resume: async () => 'held',
    async ask(_key, { id }) {
      seen.asked.push(id)
      return 'held'
    },
  }
  const { stallMs, ...options } = more
  const backend = (): Backend => ({
    name: 'played',
    run: play,
    validate: async () => ({ ok: true }),
    ...(stallMs !== undefined && { stallMs }),
    async close() {
      seen.closed += 1
    },
  })
  const brief = { runtime: 'x', options: {}, systemPrompt: '', workingDir: '/', maxAttempts: 1, env: {} }
  const log = { ...silentLog, warn: (_fields: object, message: string) => void seen.warned.push(message) }
  const runtime = createRuntime({
    inbox,
    clock,
    log,
    worker: { id: 'w', workspaces: 'hosted' },
    brief: async () => brief,
    build: backend,
    ...options,
  })
  const start = async (...messageIds: string[]) => {
    runtime.start()
    for (const messageId of messageIds) directives.put({ type: 'lease', lease: leaseNamed(messageId) })
    await clock.settle()
  }
  const send = async (directive: Directive) => {
    directives.put(directive)
    await clock.settle()
  }
  /** Fails instead of waiting for ever where a drain does not end. */
  const drain = async (drained = runtime.drain(0)) => {
    let isOver = false
    void drained.then(() => {
      isOver = true
    })
    for (let turn = 0; turn < 50 && !isOver; turn++) await clock.settle()
    assert.ok(isOver, 'the drain is over')
  }
  const types = () => settled.map(([messageId, { type }]) => `${messageId} ${type}`)
  return { clock, answers, extended, settled, types, seen, runtime, start, send, drain }
}

test('leases are renewed every 10 s while turns run, all in one call, and not without a turn', async () => {
  const { clock, extended, start, send, drain } = setUp(untilAborted)
  await start()
  clock.advance(30_000)
  assert.deepEqual(extended, [])
  await send({ type: 'lease', lease: leaseNamed('a') })
  clock.advance(9999)
  assert.deepEqual(extended, [])
  clock.advance(1)
  await send({ type: 'lease', lease: leaseNamed('b') })
  clock.advance(10_000)
  assert.deepEqual(extended, [['a'], ['a', 'b']])
  await drain()
  // The limit of the drain itself.
  clock.advance(5000)
  assert.equal(clock.timers(), 0, 'a drained runtime leaves no timer')
})

test('a renewal stops a cancelled turn and one that another worker took over, and no other', async () => {
  const { clock, answers, types, start, drain } = setUp(untilAborted)
  await start('held', 'stopped', 'taken')
  answers.extend = async () => ['held', 'stop', 'stale']
  clock.advance(10_000)
  await clock.settle()
  assert.deepEqual(types(), ['stopped stopped'])
  answers.extend = async (keys) => keys.map(() => 'stop')
  clock.advance(10_000)
  await clock.settle()
  assert.deepEqual(types(), ['stopped stopped', 'held stopped'], 'the turn that was taken over settles nothing')
  await drain()
})

test('a failed renewal is logged and stops no turn', async () => {
  const { clock, answers, extended, types, seen, start, drain } = setUp(untilAborted)
  await start('a')
  answers.extend = async () => {
    throw away()
  }
  for (let count = 1; count <= 3; count++) {
    clock.advance(10_000)
    await clock.settle()
    assert.equal(extended.length, count)
  }
  assert.deepEqual([types(), seen.warned], [[], Array(3).fill('leases could not be renewed')])
  await drain()
})

test('the answer to an append stops a cancelled turn, drops one that was taken over, and lets the others run', async () => {
  const play: Play = async function* (turn, signal) {
    yield { type: 'status', text: 'working' }
    yield* untilAborted(turn, signal)
  }
  for (const [standing, expected] of [
    ['held', []],
    ['stop', ['a stopped']],
    ['stale', []],
  ] as const) {
    const { clock, answers, types, start, drain } = setUp(play)
    answers.append = async () => standing
    await start('a')
    clock.advance(50)
    await clock.settle()
    assert.deepEqual(types(), expected, standing)
    await drain()
    assert.deepEqual(types(), standing === 'held' ? ['a released'] : expected, standing)
  }
})

test('a stop directive cancels its turn and no other', async () => {
  const { types, start, send, drain } = setUp(untilAborted)
  await start('a', 'b')
  await send({ type: 'stop', key: leaseNamed('b') })
  assert.deepEqual(types(), ['b stopped'])
  await send({ type: 'stop', key: leaseNamed('unknown') })
  assert.deepEqual(types(), ['b stopped'])
  await drain()
})

test('AG-16 an answer directive with parts allows, and one without denies', async () => {
  const decisions: string[] = []
  const { seen, types, start, send, drain } = setUp(async function* (turn, signal) {
    for (const id of ['x', 'y']) decisions.push(await turn.ask({ id, tool: 'Bash', subject: 'ls' }, signal))
    yield DONE
  })
  await start('a')
  const key = leaseNamed('a')
  await send({ type: 'answer', key, askId: '1', parts: [{ text: 'yes' }] })
  assert.deepEqual([decisions, seen.asked], [['allowed'], ['1', '2']])
  await send({ type: 'answer', key, askId: '2', parts: undefined })
  assert.deepEqual([decisions, types()], [['allowed', 'denied'], ['a done']])
  await drain()
})

test('TW-1 a waiting directive pauses the stall timer of its turn until the wait is over', async () => {
  const { clock, types, start, send, drain } = setUp(untilAborted, { stallMs: 5000 })
  await start('a')
  await send({ type: 'waiting', key: leaseNamed('a'), waiting: true })
  clock.advance(9000)
  await clock.settle()
  assert.deepEqual(types(), [])
  await send({ type: 'waiting', key: leaseNamed('a'), waiting: false })
  clock.advance(5000)
  await clock.settle()
  assert.deepEqual(types(), ['a dead'])
  await drain()
})

test('an inbox that fails is asked again after a second, until the runtime drains', async () => {
  let calls = 0
  const { clock, answers, seen, types, start, send, drain } = setUp(async function* () {
    yield DONE
  })
  answers.onLeases = () => {
    calls += 1
    if (calls !== 2) throw away()
  }
  await start()
  clock.advance(999)
  await clock.settle()
  assert.deepEqual([calls, seen.warned], [1, ['could not take work from the inbox; trying again']])
  clock.advance(1)
  await clock.settle()
  assert.equal(calls, 2)
  await send({ type: 'lease', lease: leaseNamed('a') })
  assert.deepEqual(types(), ['a done'])
  await drain()
  assert.equal(calls, 2)
})

test('the checkpoints, the metrics and the end of each turn are reported before the settle', async () => {
  const reported: unknown[] = []
  const metrics = { count: (name: string, labels: object) => void reported.push([name, labels]) }
  const { settled, start, drain } = setUp(
    async function* () {
      yield { type: 'failed', error: new MoleculeError('exit', 'key hunter22', { details: { exitCode: 3 } }) }
    },
    {
      metrics: metrics as never,
      mask: (text) => text.replace('hunter22', '[hidden]'),
      onCheckpoint: (checkpoint) => void reported.push(checkpoint),
      onTurnEnd: (workspaceId, { type }) => void reported.push([workspaceId, type, settled.length]),
    },
  )
  await start('a')
  assert.deepEqual(reported, [
    'leased',
    'answered',
    ['molecule_turns_total', { outcome: 'dead' }],
    ['molecule_turn_failures_total', { code: 'exit' }],
    ['ws_1', 'dead', 0],
  ])
  const [, outcome] = settled[0] ?? []
  assert.equal(outcome?.type === 'dead' && outcome.failure.message, 'key [hidden]')
  await drain()
})

test('a drain lets turns run for its grace time, then stops and releases them, and closes the backends', async () => {
  for (const graceMs of [0, 1, 3000]) {
    const { clock, types, seen, runtime, start, drain } = setUp(untilAborted)
    await start('a')
    const drained = runtime.drain(graceMs)
    await clock.settle()
    if (graceMs > 0) {
      clock.advance(graceMs - 1)
      await clock.settle()
      assert.deepEqual(types(), [], `${graceMs} ms`)
      clock.advance(1)
    }
    await clock.settle()
    assert.deepEqual(types(), ['a released'], `${graceMs} ms`)
    await drain(drained)
    assert.equal(seen.closed, 1)
  }
})

test('a drain ends as soon as the last turn does', async () => {
  const gate = Promise.withResolvers<void>()
  const { clock, types, runtime, start, drain } = setUp(async function* () {
    await gate.promise
    yield DONE
  })
  await start('a')
  const drained = runtime.drain(60_000)
  await clock.settle()
  gate.resolve()
  await drain(drained)
  assert.deepEqual(types(), ['a done'])
})

test('a drain offers outcomes for 5 s to an inbox that is away, then drops them', async () => {
  const { clock, answers, types, runtime, start, drain } = setUp(untilAborted)
  answers.settle = async () => {
    throw away()
  }
  await start('a')
  let isOver = false
  const drained = runtime.drain(0).then(() => {
    isOver = true
    return []
  })
  await clock.settle()
  assert.equal(types().length, 1)
  for (const stepMs of [250, 500, 1000, 2000, 1249]) {
    clock.advance(stepMs)
    await clock.settle()
  }
  assert.deepEqual([types().length, isOver], [5, false])
  clock.advance(1)
  await clock.settle()
  await clock.settle()
  assert.equal(isOver, true)
  await drain(drained)
})

test('a drain waits for a turn that ends late, and for the inbox to release what was claimed', async () => {
  const gate = Promise.withResolvers<void>()
  const released = Promise.withResolvers<void>()
  const { clock, answers, seen, runtime, start, drain } = setUp(async function* () {
    await gate.promise
    yield DONE
  })
  answers.onEnd = () => released.promise
  await start('a')
  let isOver = false
  const drained = runtime.drain(0).then(() => {
    isOver = true
    return []
  })
  await clock.settle()
  clock.advance(5000)
  await clock.settle()
  released.resolve()
  await clock.settle()
  clock.advance(5000)
  await clock.settle()
  assert.deepEqual([isOver, seen.closed], [false, 0], 'its agent still runs')
  gate.resolve()
  await drain(drained)
  assert.equal(seen.closed, 1)
})
