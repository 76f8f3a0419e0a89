/** Bridges: workers on other machines, which poll for work and may lose any answer. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { BridgeCall } from '../../../../src/inbox/bridges.ts'
import { BRIDGES_MAX } from '../../../../src/inbox/local/bridges.ts'
import { TURN_BYTES_MAX } from '../../../../src/inbox/local/turn-bytes.ts'
import { type Directive, type Lease, type LeaseKey, leaseId } from '../../../../src/inbox/worker.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { done, hasCode, type InboxHarness } from '../harness.ts'

const never = new AbortController().signal
/** Of calls whose wait the test sees begin: no other timer has this time. */
const WAIT_MS = 10_007
const started = { from: 1, events: [{ type: 'status', text: 'started' } as const] }

export const bridgeCall = (workspaceId: string, more: Partial<BridgeCall> = {}): BridgeCall => ({
  workspaceId,
  bridge: 'laptop',
  leasesMax: 1,
  holding: [],
  waitMs: 10_000,
  ...more,
})

export function onlyLease(directives: readonly Directive[]): Lease {
  assert.deepEqual(
    directives.map(({ type }) => type),
    ['lease'],
  )
  return (directives[0] as { lease: Lease }).lease
}

export function bridgeTests(harness: InboxHarness): void {
  const call = bridgeCall
  const poll = (given: BridgeCall, signal = never) => harness.local.bridges.lease(given, signal)
  const leased = async (given: BridgeCall) => onlyLease(await poll(given))
  const settle = (key: LeaseKey, text: string, host = 'there') =>
    harness.local.bridges.settle(key, { outcome: done(text), host })

  test('CN-8 admission answers a waiting call at once; a call that finds nothing ends empty', async () => {
    const id = await harness.workspace()
    assert.deepEqual(await poll(call(id, { waitMs: 0 })), [])
    const waits = harness.waitBegins(WAIT_MS)
    const waiting = leased(call(id, { waitMs: WAIT_MS }))
    await waits
    const { taskId } = await harness.local.reception.admit(letterTo(id))
    const lease = await waiting
    assert.equal(lease.taskId, taskId)
    assert.equal(await settle(lease, 'hello'), 'settled')
    assert.equal(await harness.state(taskId), 'TASK_STATE_COMPLETED')
    assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
  })

  test('CN-7 a bridge gets no more leases than its capacity; further messages go to another bridge or wait', async () => {
    const id = await harness.workspace(3)
    for (let messages = 0; messages < 3; messages++) await harness.local.reception.admit(letterTo(id))
    const first = await leased(call(id))
    const full = poll(call(id, { holding: [leaseId(first)], waitMs: 100 }))
    const second = await leased(call(id, { bridge: 'desktop' }))
    assert.notEqual(second.messageId, first.messageId)
    assert.deepEqual(await full, [])
    const waits = harness.waitBegins(WAIT_MS)
    const next = leased(call(id, { holding: [leaseId(first)], waitMs: WAIT_MS }))
    await waits
    await settle(first, 'done')
    const third = await next
    assert.equal(new Set([first, second, third].map(({ messageId }) => messageId)).size, 3)
    for (const lease of [second, third]) await settle(lease, 'done')
    assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
  })

  test('CN-5 a lease whose answer was lost comes again with the next call and costs no loss', async () => {
    const id = await harness.workspace()
    await harness.local.reception.admit(letterTo(id))
    const lost = await leased(call(id))
    const again = await leased(call(id))
    assert.deepEqual(
      [again.messageId, again.epoch, again.losses, again.interrupted],
      [lost.messageId, lost.epoch + 1, 0, false],
    )
    assert.equal(await settle(lost, 'stale'), 'stale')
    await settle(again, 'done')
  })

  test('CN-4 an append begins a turn too, as bridges of earlier versions do it', async () => {
    const id = await harness.workspace()
    await harness.local.reception.admit(letterTo(id))
    const lost = await leased(call(id))
    assert.equal(await harness.local.bridges.append(lost, started), 'held')
    const again = await leased(call(id))
    assert.deepEqual([again.losses, again.interrupted], [1, true])
    await settle(again, 'done')
  })

  test('CN-4 a bridge that vanishes before it begins costs the message nothing; after it, one loss', async () => {
    const id = await harness.workspace()
    await harness.local.reception.admit(letterTo(id))
    const unbegun = await leased(call(id))
    const begun = await leased(call(id))
    assert.deepEqual([begun.epoch, begun.losses, begun.interrupted], [unbegun.epoch + 1, 0, false])
    assert.equal(await harness.local.bridges.begin(begun, 'started on laptop'), 'held')
    const again = await leased(call(id))
    assert.deepEqual([again.losses, again.interrupted], [1, true])
    const unbegunAgain = await leased(call(id))
    assert.deepEqual([unbegunAgain.losses, unbegunAgain.interrupted], [1, true], 'a new claim has not begun')
    await settle(unbegunAgain, 'done')
  })

  test('CN-4 begin is idempotent, and a stale, cancelled or foreign lease learns that it must not begin', async () => {
    const id = await harness.workspace()
    const { taskId } = await harness.local.reception.admit(letterTo(id))
    const lost = await leased(call(id))
    const lease = await leased(call(id))
    const { bridges } = harness.local
    assert.equal(await bridges.begin(lost, 'started on laptop'), 'stale')
    assert.equal(await bridges.begin({ ...lease, workspaceId: await harness.workspace() }), 'stale')
    for (let attempt = 0; attempt < 2; attempt++) assert.equal(await bridges.begin(lease, 'started on laptop'), 'held')
    const entries = await harness.activity(id)
    const texts = entries.filter(({ type }) => type === 'progress').map(({ text }) => text)
    assert.deepEqual(texts, ['started on laptop'])
    // The text of `begin` takes no number: events start at 1.
    await bridges.append(lease, { from: 1, events: [{ type: 'tool', name: 'bash', state: 'started' }] })
    const after = await harness.activity(id)
    assert.equal(after.filter(({ type }) => type === 'tool').length, 1)
    await harness.local.reception.cancel(taskId)
    assert.equal(await bridges.begin(lease, 'started on laptop'), 'stop')
    await bridges.settle(lease, { outcome: { type: 'stopped' }, host: 'there' })
    assert.equal(await bridges.begin(lease), 'stale')
  })

  test('CN-5 a bridge keeps its leases when the platform restarts', async () => {
    const id = await harness.workspace()
    await harness.local.reception.admit(letterTo(id))
    const lease = await leased(call(id))
    const node = harness.newInbox()
    try {
      const holding = [leaseId(lease)]
      assert.deepEqual(await node.bridges.lease(call(id, { holding, waitMs: 0 }), never), [])
      assert.deepEqual(await node.bridges.extend([lease]), ['held'])
      assert.equal(await node.bridges.settle(lease, { outcome: done('after'), host: 'there' }), 'settled')
    } finally {
      node.close()
    }
  })

  test('CN-5 a second call of a bridge ends the first, and a caller that disconnects leaves nothing leased', async () => {
    const [id, other] = [await harness.workspace(), await harness.workspace()]
    const connected = () => [id, other].map((each) => harness.local.bridges.isConnected(each))
    const first = poll(call(id))
    const gone = new AbortController()
    const second = poll(call(id), gone.signal)
    assert.deepEqual(await first, [])
    assert.deepEqual(connected(), [true, false])
    gone.abort()
    assert.deepEqual(await second, [])
    assert.deepEqual(connected(), [false, false])
    const { taskId } = await harness.local.reception.admit(letterTo(id))
    assert.equal(await harness.state(taskId), 'TASK_STATE_SUBMITTED')
    await settle(await leased(call(id)), 'done')
  })

  test('IN-3 a key reaches its message only with its own task, conversation, workspace and epoch', async () => {
    const [own, other] = [await harness.workspace(2), await harness.workspace()]
    for (const id of [own, own, other]) await harness.local.reception.admit(letterTo(id))
    const { taskId, ...lease } = await leased(call(other))
    const key = { ...lease, taskId }
    const { conversationId, messageId } = await leased(call(own))
    const { bridges } = harness.local
    const question = { id: 'q', kind: 'question', parts: [{ text: 'may I?' }] } as const
    for (const wrong of [
      { workspaceId: own },
      { conversationId },
      { taskId: messageId },
      { messageId },
      { epoch: 2 },
    ]) {
      const stolen = { ...key, ...wrong }
      const answers = [
        await bridges.begin(stolen),
        await bridges.append(stolen, started),
        await bridges.suspend(stolen),
        await bridges.resume(stolen),
        await bridges.ask(stolen, question),
        await settle(stolen, 'forged'),
        ...(await bridges.extend([stolen])),
      ]
      assert.deepEqual(new Set(answers), new Set(['stale']), JSON.stringify(wrong))
    }
    assert.equal(await harness.state(taskId), 'TASK_STATE_WORKING')
    assert.deepEqual(await bridges.extend([key]), ['held'])
    await settle(key, 'done')
  })

  test('PL-12 RE-9 a bridge may not report on a turn that the platform runs itself', async () => {
    const id = await harness.workspace()
    const { taskId } = await harness.local.reception.admit(letterTo(id))
    await harness.withWorker(id, async (worker) => {
      const lease = await worker.lease()
      const { bridges, inbox } = harness.local
      const question = { id: 'q', kind: 'question', parts: [{ text: 'Your password?' }] } as const
      for (const forged of [
        () => settle(lease, 'forged'),
        () => bridges.begin(lease, 'forged'),
        () => bridges.append(lease, started),
        () => bridges.extend([lease]),
        () => bridges.suspend(lease),
        () => bridges.resume(lease),
        () => bridges.ask(lease, question),
      ])
        await assert.rejects(forged, hasCode('forbidden'))
      assert.equal(await harness.state(taskId), 'TASK_STATE_WORKING')
      assert.equal(await inbox.settle(lease, done('true')), 'settled')
    })
    const task = await harness.local.reception.task(taskId)
    assert.deepEqual(task?.artifacts?.at(-1)?.parts, [{ text: 'true' }])
  })

  test('RE-3 RE-9 a turn of a bridge that stores more than its limit fails, and its bridge loses the lease', async () => {
    const id = await harness.workspace()
    const { taskId } = await harness.local.reception.admit(letterTo(id))
    const lease = await leased(call(id))
    const { bridges } = harness.local
    const chunk = { type: 'status', text: 'x'.repeat(64 * 1024) } as const
    const events = Array.from({ length: 32 }, () => chunk)
    let standing: unknown = 'held'
    let calls = 0
    while (standing === 'held' && calls < 100) {
      standing = await bridges.append(lease, { from: calls * events.length + 1, events })
      calls++
    }
    assert.deepEqual(
      [standing, calls > 1, calls * events.length * chunk.text.length <= 2 * TURN_BYTES_MAX],
      [...['stale', true, true]],
    )
    const task = await harness.local.reception.task(taskId)
    assert.equal(task?.status.state, 'TASK_STATE_FAILED')
    assert.match(JSON.stringify(task?.status), /more than 64 MiB/)
    assert.equal(await settle(lease, 'late'), 'stale')
    const next = await harness.local.reception.admit(letterTo(id))
    assert.equal(await settle(await leased(call(id)), 'next'), 'settled')
    assert.equal(await harness.state(next.taskId), 'TASK_STATE_COMPLETED')
  })

  test('RT-5 the session of a bridge is kept for its own host', async () => {
    const id = await harness.workspace()
    await harness.local.reception.admit(letterTo(id))
    const lease = await leased(call(id))
    const outcome = { ...done('x'), session: 'token' } as const
    await harness.local.bridges.settle(lease, { outcome, host: 'laptop:exec' })
    const [row] = await harness.sql('select host, token from sessions where conversation_id = $1', lease.conversationId)
    assert.deepEqual({ ...row }, { host: 'laptop:exec', token: 'token' })
  })

  test('CN-7 the number of waiting bridges of a workspace is limited, and one more is refused with a time to retry', async () => {
    const id = await harness.workspace()
    const leave = new AbortController()
    const names = Array.from({ length: BRIDGES_MAX }, (_, index) => `bridge-${index}`)
    const waiting = names.map((bridge) => poll(call(id, { bridge }), leave.signal))
    await assert.rejects(poll(call(id, { bridge: 'one-more' })), {
      code: 'too_many_requests',
      retryable: true,
      details: { retryAfterMs: 10_000 },
    })
    assert.deepEqual(await poll(call(await harness.workspace(), { waitMs: 0 })), [])
    leave.abort()
    await Promise.all(waiting)
  })
}
