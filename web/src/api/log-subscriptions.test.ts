import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLogSubscriptions, type SentSubscription } from './log-subscriptions.ts'

function openSubscriptions() {
  const sent: SentSubscription[] = []
  const logs = createLogSubscriptions((message) => sent.push(message))
  const follow = (workspaceId: string, after: number) => {
    const seen: (number | 'gap')[] = []
    const onEvents = (events: readonly { readonly seq: number }[]) => seen.push(...events.map(({ seq }) => seq))
    const stop = logs.follow(workspaceId, after, { onEvents, onGap: () => seen.push('gap') })
    return { seen, stop }
  }
  const confirm = (workspace: string, seq: number) => logs.take({ type: 'subscribed', workspace, seq })
  const row = (workspace: string, seq: number) =>
    logs.take({ type: 'events', workspace, seq, events: [{ seq, at: '', type: 'note' }] })
  return { logs, follow, confirm, row, take: () => sent.splice(0) }
}

test('PL-7 each follower of a log gets every event after its number, once, over one subscription', () => {
  const { follow, confirm, row, take } = openSubscriptions()
  const first = follow('a', 5)
  assert.deepEqual(take(), [{ subscribe: { a: 5 } }])
  confirm('a', 5)
  row('a', 6)
  const later = follow('a', 7)
  assert.deepEqual(take(), [], 'the subscription is already there')
  row('a', 7)
  row('a', 8)
  const earlier = follow('a', 4)
  assert.deepEqual(take(), [{ subscribe: { a: 4 } }])
  row('a', 9)
  confirm('a', 4)
  for (const seq of [5, 6, 7, 8, 9]) row('a', seq)
  assert.deepEqual(
    [first.seen, later.seen, earlier.seen],
    [
      [6, 7, 8, 9],
      [8, 9],
      [5, 6, 7, 8, 9],
    ],
  )
})

test('PL-7 a log without followers is unsubscribed, and its late events reach no one', () => {
  const { follow, confirm, row, take } = openSubscriptions()
  const [one, other] = [follow('a', 0), follow('a', 0)]
  confirm('a', 0)
  one.stop()
  one.stop()
  row('a', 1)
  assert.deepEqual([take(), one.seen, other.seen], [[{ subscribe: { a: 0 } }], [], [1]])
  other.stop()
  const again = follow('a', 0)
  assert.deepEqual(take(), [{ subscribe: {}, unsubscribe: ['a'] }, { subscribe: { a: 0 } }])
  row('a', 2)
  confirm('a', 0)
  row('a', 1)
  row('a', 2)
  assert.deepEqual([other.seen, again.seen], [[1], [1, 2]])
})

test('PL-7 after a reconnect each log goes on after the last number that was seen', () => {
  const { logs, follow, confirm, row } = openSubscriptions()
  const [a, b] = [follow('a', 1), follow('b', 7)]
  confirm('a', 1)
  row('a', 2)
  assert.deepEqual(logs.all(), { a: 2, b: 7 })
  confirm('a', 2)
  confirm('b', 7)
  row('a', 3)
  row('b', 8)
  assert.deepEqual([a.seen, b.seen], [[2, 3], [8]])
})

test('PL-7 a log whose rows were pruned goes on from now, and tells the gap once', () => {
  const { logs, follow, confirm, row, take } = openSubscriptions()
  const [old, fresh] = [follow('a', 3), follow('a', 40)]
  take()
  logs.take({ type: 'error', workspace: 'a', status: 410 })
  assert.deepEqual(take(), [{ subscribe: { a: null } }])
  confirm('a', 40)
  row('a', 41)
  assert.deepEqual([old.seen, fresh.seen], [['gap', 41], [41]])
  logs.take({ type: 'error', workspace: 'a', status: 404 })
  logs.take({ type: 'error', status: 400 })
  logs.take({ type: 'ended', workspace: 'a' })
  assert.deepEqual(take(), [])
})
