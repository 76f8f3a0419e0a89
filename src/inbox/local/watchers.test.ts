import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock, soon } from '../../../test/fakes/manual-clock.ts'
import type { TaskResult } from '../rows/task.ts'
import { createWatchers, listenForChanges } from './watchers.ts'

const RESULT: TaskResult = { state: 'TASK_STATE_COMPLETED', reply: { parts: [], artifacts: [] }, atMs: 1 }

test('a watcher is called for its own id with the result, and a watcher of all with every id', () => {
  const watchers = createWatchers()
  const calls: unknown[] = []
  watchers.watch('t1', (result) => calls.push(['t1', result]))
  watchers.watch('t2', (result) => calls.push(['t2', result]))
  const stopAll = watchers.watchAll((id) => calls.push(['all', id]))
  const take = () => calls.splice(0)
  watchers.changed('t1', RESULT)
  assert.deepEqual(take(), [
    ['t1', RESULT],
    ['all', 't1'],
  ])
  watchers.changed('t3')
  assert.deepEqual(take(), [['all', 't3']])
  watchers.changedElsewhere()
  assert.deepEqual(take(), [
    ['t1', undefined],
    ['t2', undefined],
    ['all', undefined],
  ])
  stopAll()
  watchers.changed('t2')
  watchers.changedElsewhere()
  assert.deepEqual(take(), [
    ['t2', undefined],
    ['t1', undefined],
    ['t2', undefined],
  ])
})

test('a watcher that stops is not called again, and the others of its id are, also if it stops twice', () => {
  const watchers = createWatchers()
  const calls: number[] = []
  const stops = [1, 2, 3].map((n) => watchers.watch('t1', () => calls.push(n)))
  const called = () => {
    watchers.changed('t1')
    return calls.splice(0)
  }
  stops[0]?.()
  assert.deepEqual(called(), [2, 3])
  stops[1]?.()
  assert.deepEqual(called(), [3])
  stops[2]?.()
  assert.deepEqual(called(), [])
  watchers.watch('t1', () => calls.push(4))
  stops[2]?.()
  assert.deepEqual(called(), [4])
})

test('a listener waits for a change, its time or an abort, and a change between two waits is not lost', async () => {
  const clock = manualClock()
  const watchers = createWatchers()
  const listener = listenForChanges({ clock, watchers }, 't1')
  const abort = new AbortController()
  let ended = 0
  const next = async (maxMs: number) => {
    const result = await listener.next(maxMs, abort.signal)
    ended += 1
    return result
  }
  const first = next(100)
  clock.advance(99)
  watchers.changed('t2')
  await clock.settle()
  assert.equal(ended, 0)
  clock.advance(1)
  assert.equal(await soon(first), undefined)
  watchers.changed('t1', RESULT)
  assert.equal(await soon(next(100)), RESULT)
  const second = next(100)
  await clock.settle()
  assert.equal(ended, 2)
  watchers.changed('t1')
  assert.equal(await soon(second), undefined)
  const third = next(100)
  await clock.settle()
  assert.equal(ended, 3)
  abort.abort()
  assert.equal(await soon(third), undefined)
  listener.stop()
  watchers.changed('t1', RESULT)
  assert.equal(await soon(next(100)), undefined)
})
