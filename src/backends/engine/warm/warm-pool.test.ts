import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { createWarmPool, type PooledProcess, type WarmPoolOptions } from './warm-pool.ts'

interface Fake extends PooledProcess {
  readonly name: string
  die(): void
}

function setUp(options: Partial<WarmPoolOptions> = {}) {
  const clock = manualClock()
  const alive = new Set<Fake>()
  let most = 0
  const started: string[] = []
  const warm = createWarmPool<Fake>({ processesMax: 2, idleMs: 1000, clock, turnsPerProcessMax: 1, ...options })
  const launch = (name: string, fingerprint = 'same') => ({
    fingerprint,
    start: (): Fake => {
      const { promise: ended, resolve } = Promise.withResolvers<void>()
      const die = () => {
        alive.delete(fake)
        resolve()
      }
      const fake: Fake = {
        name,
        ended,
        die,
        async stop() {
          // A process still counts while it stops.
          await clock.settle()
          die()
        },
      }
      alive.add(fake)
      started.push(name)
      most = Math.max(most, alive.size)
      return fake
    },
  })
  const never = new AbortController().signal
  const take = (key: string, fingerprint?: string, signal = never) => warm.take(key, launch(key, fingerprint), signal)
  const names = () => [...alive].map((fake) => fake.name)
  return { clock, warm, take, started, names, most: () => most }
}

test('AG-1 a conversation keeps its agent, and another conversation gets another agent', async () => {
  const { take, started } = setUp()
  const first = await take('a')
  assert.equal(first.isFresh, true)
  first.giveBack()
  const again = await take('a')
  assert.deepEqual([again.isFresh, again.agent], [false, first.agent])
  await take('b')
  assert.deepEqual(started, ['a', 'b'])
})

test('the least recently used idle agent stops for a new one, and the limit is never passed', async () => {
  const { take, started, names, most } = setUp()
  for (const key of ['a', 'b', 'a', 'c']) (await take(key)).giveBack()
  assert.deepEqual(started, ['a', 'b', 'c'])
  assert.deepEqual(names(), ['a', 'c'])
  assert.equal(most(), 2)
})

test('twenty conversations share four places, in order, with at most four processes alive', async () => {
  const { take, clock, most } = setUp({ processesMax: 4 })
  const served: number[] = []
  const turn = async (n: number) => {
    const warmAgent = await take(`c${n}`)
    served.push(n)
    await clock.settle()
    warmAgent.giveBack()
  }
  await Promise.all(Array.from({ length: 20 }, (_, n) => turn(n)))
  assert.deepEqual(
    served,
    Array.from({ length: 20 }, (_, n) => n),
  )
  assert.equal(most(), 4)
})

test('two turns of one conversation run one after the other', async () => {
  const { take, clock } = setUp()
  const first = await take('a')
  let second = false
  const waiting = take('a').then((warmAgent) => {
    second = true
    return warmAgent
  })
  await clock.settle()
  assert.equal(second, false)
  first.giveBack()
  assert.equal((await waiting).agent, first.agent)
})

test('a waiting turn can be cancelled, and the next one takes its place', async () => {
  const { take, clock, warm } = setUp({ processesMax: 1 })
  const first = await take('a')
  const cancel = new AbortController()
  const waiting = take('b', 'same', cancel.signal)
  const behind = take('c')
  await clock.settle()
  cancel.abort()
  await assert.rejects(waiting, { code: 'canceled' })
  first.giveBack()
  assert.equal((await behind).agent.name, 'c')
  assert.equal(warm.size, 1)
})

test('an idle agent stops after idleMs, and each use restarts that time', async () => {
  const { take, clock, warm, started } = setUp()
  const use = async () => (await take('a')).giveBack()
  await use()
  clock.advance(900)
  await use()
  clock.advance(900)
  await clock.settle()
  assert.equal(warm.size, 1)
  clock.advance(200)
  for (let n = 0; n < 3; n += 1) await clock.settle()
  assert.equal(warm.size, 0)
  await use()
  assert.deepEqual(started, ['a', 'a'])
})

test('an agent that died, or that has another fingerprint, is replaced', async () => {
  const { take, started, clock } = setUp()
  const first = await take('a')
  first.agent.die()
  first.giveBack()
  await clock.settle()
  const second = await take('a')
  assert.notEqual(second.agent, first.agent)
  second.giveBack()
  const other = await take('a', 'another model')
  assert.equal(other.isFresh, true)
  assert.equal(started.length, 3)
})

test('a discarded agent is gone before the next turn of its conversation starts', async () => {
  const { take, names } = setUp()
  const first = await take('a')
  const next = take('a')
  await first.discard()
  const second = await next
  assert.notEqual(second.agent, first.agent)
  assert.deepEqual(names(), ['a'])
})

test('a turn that waits for a person gives up its place and takes one again', async () => {
  const { take, clock } = setUp({ processesMax: 1 })
  const signal = new AbortController().signal
  const asking = await take('a')
  const answer = Promise.withResolvers<string>()
  let answered = ''
  const suspended = asking.suspendDuring(() => answer.promise, signal).then((value) => (answered = value))
  const other = await take('b')
  answer.resolve('yes')
  await clock.settle()
  assert.equal(answered, '', 'the place is taken by another turn')
  other.giveBack()
  assert.equal(await suspended, 'yes')
})

test('a turn whose person has answered takes its place before the turns that have not started', async () => {
  const { take, clock } = setUp({ processesMax: 1 })
  const asking = await take('a')
  const answer = Promise.withResolvers<string>()
  const order: string[] = []
  const suspended = asking
    .suspendDuring(() => answer.promise, new AbortController().signal)
    .then(() => {
      order.push('answered')
      asking.giveBack()
    })
  const other = await take('b')
  const waiting = take('c').then((agent) => {
    order.push('not started')
    agent.giveBack()
  })
  await clock.settle()
  answer.resolve('yes')
  await clock.settle()
  assert.deepEqual(order, [])
  other.giveBack()
  await Promise.all([suspended, waiting])
  assert.deepEqual(order, ['answered', 'not started'])
})

test('a process for many sessions is shared, and replaced without ending its running turns', async () => {
  const { take, started, names, clock } = setUp({ turnsPerProcessMax: 100 })
  const [first, second] = await Promise.all([take('all'), take('all')])
  assert.equal(first.agent, second.agent)
  const changed = await take('all', 'another')
  assert.notEqual(changed.agent, first.agent)
  first.giveBack()
  await clock.settle()
  assert.equal(names().length, 2)
  second.giveBack()
  for (let n = 0; n < 3; n += 1) await clock.settle()
  assert.equal(names().length, 1)
  assert.equal(started.length, 2)
})

test('close stops all agents, also those in use, and later turns get none', async () => {
  const { take, warm, names } = setUp()
  await take('a')
  ;(await take('b')).giveBack()
  const waiting = take('c')
  await Promise.all([warm.close(), warm.close(), assert.rejects(waiting, { code: 'canceled' })])
  assert.deepEqual(names(), [])
  await assert.rejects(take('d'), { code: 'canceled' })
})
