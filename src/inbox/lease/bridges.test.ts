/** Bridges: how many calls wait, what a call gets and gives back, and whose leases its keys may touch. */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { type TestContext, test } from 'node:test'
import { letterTo } from '../../../test/fakes/letters.ts'
import { keyOf, openInboxRows, START_MS } from '../../../test/harness/inbox-rows.ts'
import { MoleculeError } from '../../errors.ts'
import type { Value } from '../../store/store.ts'
import { type BridgeCall, type Directive, leaseId, type Outcome } from '../inbox.ts'

const WAIT_MS = 1000
const BRIDGE = 'bridge.w.laptop'
const DONE: Outcome = { type: 'done', finality: 'completed', parts: [{ text: 'hello' }], artifacts: [] }
const ready = { ready_at: START_MS }
const own = { state: 'leased', worker: BRIDGE }

async function openBridges(t: TestContext, load: Readonly<Record<string, Value>> = {}) {
  const rows = openInboxRows(t)
  await rows.workspace('w', { slots: 5, running: 1, waiting: 1, ...load })
  await rows.workspace('other', { slots: 5 })
  const { bridges } = rows.local
  const stop = new AbortController()
  t.after(async () => {
    stop.abort()
    await rows.finishWork()
  })
  /** A call that waits; `answer` is what it has got, after its time if need be. */
  const poll = async (call: Partial<BridgeCall> = {}, signal = stop.signal) => {
    const given = { workspaceId: 'w', bridge: 'laptop', leasesMax: 1, holding: [], waitMs: WAIT_MS, ...call }
    let ended: readonly Directive[] | Error | undefined
    const wait = async () => {
      ended = await bridges.lease(given, signal).catch((error: Error) => error)
    }
    void wait()
    await rows.finishWork()
    return {
      ended: () => ended,
      async answer() {
        await rows.finishWork()
        rows.clock.advance(WAIT_MS)
        await rows.finishWork()
        if (!Array.isArray(ended)) throw ended ?? new Error('the call has not ended')
        return named(ended)
      },
    }
  }
  const stateOf = async (id: string) => {
    const [row] = await rows.select('select state from messages where id = $1', id)
    return row?.['state']
  }
  const admit = async () => (await rows.local.reception.admit(letterTo('w'))).taskId
  return { ...rows, bridges, poll, stateOf, admit }
}

/** `lease m`, `stop m` */
const named = (directives: readonly Directive[]) =>
  directives.map((each) => `${each.type} ${each.type === 'lease' ? each.lease.messageId : each.key.messageId}`)

test('CN-8 a call gets the work that is ready, all at once up to its capacity, or what comes while it waits', async (t) => {
  const { poll, message, admit } = await openBridges(t)
  await message('a', ready)
  await message('b', ready)
  await message('c', ready)
  const two = await poll({ leasesMax: 2 })
  assert.deepEqual(named(two.ended() as Directive[]), ['lease a', 'lease b'])
  const third = await poll({ bridge: 'desktop' })
  assert.deepEqual(named(third.ended() as Directive[]), ['lease c'])
  const fourth = await poll({ bridge: 'tablet' })
  assert.equal(fourth.ended(), undefined)
  const taskId = await admit()
  assert.deepEqual(await fourth.answer(), [`lease ${taskId}`])
})

test('CN-8 a call that finds nothing ends empty after its time, and leaves no listener', async (t) => {
  const { poll } = await openBridges(t)
  const { signal } = new AbortController()
  const call = await poll({}, signal)
  assert.equal(call.ended(), undefined)
  assert.deepEqual(await call.answer(), [])
  assert.equal(getEventListeners(signal, 'abort').length, 0)
})

test('CN-5 a bridge is connected while its call waits; a second call of it ends the first', async (t) => {
  const { poll, bridges } = await openBridges(t)
  assert.equal(bridges.isConnected('w'), false)
  const first = await poll()
  assert.deepEqual([bridges.isConnected('w'), bridges.isConnected('other')], [true, false])
  const second = await poll()
  assert.deepEqual([first.ended(), second.ended()], [[], undefined])
  assert.deepEqual(await second.answer(), [])
  assert.equal(bridges.isConnected('w'), false)
})

test('CN-5 the call of a caller that has gone gets nothing and leaves nothing leased', async (t) => {
  const { poll, message, stateOf } = await openBridges(t)
  await message('m', ready)
  const gone = new AbortController()
  gone.abort()
  const call = await poll({}, gone.signal)
  assert.deepEqual([call.ended(), await stateOf('m')], [[], 'queued'])
})

test('CN-5 a lease that is claimed for a caller that goes meanwhile is released', async (t) => {
  const { bridges, message, select, finishWork } = await openBridges(t)
  await message('m', ready)
  const stop = new AbortController()
  const call = { workspaceId: 'w', bridge: 'laptop', leasesMax: 1, holding: [], waitMs: WAIT_MS }
  const polled = bridges.lease(call, stop.signal)
  // The claim waits for its commit now.
  for (let step = 0; step < 30; step++) await Promise.resolve()
  stop.abort()
  assert.deepEqual(await polled, [])
  await finishWork()
  const [row] = await select(
    `select m.state, c.lease_epoch as epoch, c.worker from messages m join conversations c on c.id = m.conversation_id`,
  )
  assert.deepEqual({ ...row }, { state: 'queued', epoch: 2, worker: null })
})

test('CN-5 a lease that another worker takes over while the call of its bridge begins stays with that worker', async (t) => {
  const { poll, message, write, changes } = await openBridges(t)
  await message('other', { state: 'done' })
  await message('m', own)
  const changed = await changes(async () => {
    const taken = write(function* () {
      yield [{ text: `update conversations set lease_epoch = 2, worker = 'far.1' where id = 'c-m'`, values: [] }]
    })
    await poll()
    await taken
  })
  assert.deepEqual(changed, { 'conversations c-m': { lease_epoch: 2, worker: 'far.1' } })
})

test('CN-7 sixty-four bridges of a workspace may wait; one more gets a time to retry', async (t) => {
  const { poll } = await openBridges(t)
  for (let count = 0; count < 63; count++) await poll({ bridge: `b${count}` })
  await poll({ workspaceId: 'other' })
  const last = await poll({ bridge: 'last' })
  assert.equal(last.ended(), undefined)
  const refused = (await poll({ bridge: 'more' })).ended()
  assert.ok(refused instanceof MoleculeError)
  assert.deepEqual(
    [refused.code, refused.message, refused.retryable, refused.details],
    ['too_many_requests', '64 bridges wait for work of this workspace already', true, { retryAfterMs: 10_000 }],
  )
  const elsewhere = await poll({ workspaceId: 'other', bridge: 'more' })
  assert.equal(elsewhere.ended(), undefined)
})

test('CN-7 a held lease takes a place; it is free when the lease is settled or its turn waits', async (t) => {
  for (const end of ['settle', 'suspend'] as const) {
    const { poll, message, bridges, admit, stateOf } = await openBridges(t)
    await message('m', own)
    const call = await poll({ holding: [leaseId(keyOf('m'))] })
    const waiting = await admit()
    assert.equal(await stateOf(waiting), 'queued', 'the bridge is full')
    if (end === 'settle') await bridges.settle(keyOf('m'), { outcome: DONE, host: 'there' })
    else assert.equal(await bridges.suspend(keyOf('m')), 'held')
    assert.deepEqual(await call.answer(), [`lease ${waiting}`], end)
  }
})

test('CN-7 a place is free for a later message too, after a settle with nothing in the queue', async (t) => {
  const { poll, message, bridges, admit } = await openBridges(t, { waiting: 0 })
  await message('m', own)
  const call = await poll({ holding: [leaseId(keyOf('m'))] })
  await bridges.settle(keyOf('m'), { outcome: DONE, host: 'there' })
  const taskId = await admit()
  assert.deepEqual(await call.answer(), [`lease ${taskId}`])
})

test('CN-7 a turn that may not wait, and one that must stop, keep their place', async (t) => {
  for (const [load, row, answer] of [
    [{ suspended: 8 }, {}, 'refused'],
    [{}, { state: 'stopping' }, 'stop'],
  ] as const) {
    const { poll, message, bridges, admit, stateOf } = await openBridges(t, { waiting: 0, ...load })
    await message('m', { ...own, ...row })
    const call = await poll({ holding: [leaseId(keyOf('m'))] })
    assert.equal(await bridges.suspend(keyOf('m')), answer)
    const taskId = await admit()
    assert.deepEqual([await stateOf(taskId), await call.answer()], ['queued', []])
  }
})

test('CN-7 a lease that was taken over takes no place, once the bridge has learned of it', async (t) => {
  const { poll, message, bridges, admit, write } = await openBridges(t, { waiting: 0 })
  await message('m', own)
  const call = await poll({ holding: [leaseId(keyOf('m'))] })
  await write(function* () {
    yield [{ text: `update conversations set lease_epoch = 2, worker = 'far.1' where id = 'c-m'`, values: [] }]
  })
  assert.deepEqual(await bridges.extend([keyOf('m')]), ['stale'])
  const taskId = await admit()
  assert.deepEqual(await call.answer(), [`lease ${taskId}`])
})

test('CN-7 a lease that is settled while the call of its bridge begins takes no place', async (t) => {
  const { poll, message, bridges } = await openBridges(t, { running: 2, waiting: 0 })
  await message('settled', own)
  await message('lost', { ...own, ...ready, begun: 0 })
  const settling = bridges.settle(keyOf('settled'), { outcome: DONE, host: 'there' })
  const call = await poll({ holding: [leaseId(keyOf('settled'))] })
  assert.equal(await settling, 'settled')
  assert.deepEqual(await call.answer(), ['lease lost'])
})

test('CN-5 a stored lease that the bridge does not name is freed at once; those of others stay', async (t) => {
  const { poll, message, changes, hints } = await openBridges(t, { running: 4, paused: 1 })
  await message('first', { state: 'done', lease_epoch: 7 })
  await message('held', own)
  await message('lost', { ...own, losses: 1 })
  await message('foreign', { state: 'leased', worker: 'bridge.w.desktop' })
  await message('elsewhere', { ...own, workspace_id: 'other', worker: 'bridge.other.laptop' })
  hints()
  assert.deepEqual(await changes(() => poll({ holding: [leaseId(keyOf('held'))] })), {
    'workspace_load w': { running: 3, waiting: 2 },
    'conversations c-lost': { worker: null, lease_until: null, ready_at: START_MS + 60_000 },
    'messages lost': { state: 'queued', losses: 2, interrupted: 1 },
  })
  assert.deepEqual(hints(), ['w'])
})

test('CN-7 a lease that the bridge names and that has ended takes no place', async (t) => {
  const { poll, admit, message } = await openBridges(t, { waiting: 0 })
  await message('m', { state: 'done' })
  const call = await poll({ holding: ['gone.1', leaseId(keyOf('m'))] })
  const taskId = await admit()
  assert.deepEqual(await call.answer(), [`lease ${taskId}`])
})

test('CN-5 a lease that a bridge holds is no lost lease', async (t) => {
  const { poll, message, clock, finishWork, stateOf } = await openBridges(t)
  await message('m', own)
  await poll({ holding: [leaseId(keyOf('m'))], waitMs: 60_000 })
  for (let sweeps = 0; sweeps < 3; sweeps++) {
    clock.advance(5000)
    await finishWork()
  }
  assert.equal(await stateOf('m'), 'leased')
})

test('a key reaches the message only with its own task, conversation and workspace', async (t) => {
  const { bridges, message, changes } = await openBridges(t)
  await message('m', own)
  await message('x', { ...own, workspace_id: 'other' })
  const key = keyOf('m')
  const wrong = [
    { ...key, messageId: 'x' },
    { ...key, taskId: 'x' },
    { ...key, conversationId: 'c-x' },
    { ...key, workspaceId: 'other' },
    keyOf('none'),
  ]
  const ask = { id: 'a', kind: 'question', parts: [] } as const
  const events = { from: 1, events: [{ type: 'text', delta: 'x' } as const] }
  const answers: unknown[] = []
  const changed = await changes(async () => {
    for (const each of wrong) {
      answers.push(await bridges.begin(each), await bridges.append(each, events), await bridges.suspend(each))
      answers.push(await bridges.resume(each), await bridges.ask(each, ask))
      answers.push(await bridges.settle(each, { outcome: DONE, host: 'there' }), ...(await bridges.extend([each])))
    }
  })
  assert.deepEqual([new Set(answers), changed], [new Set(['stale']), {}])
  assert.deepEqual(await bridges.extend([key, wrong[0] ?? key]), ['held', 'stale'])
})
