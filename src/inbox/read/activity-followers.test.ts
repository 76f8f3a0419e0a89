/** Followers of a log: pages that they share, rows in order, and waits that end. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { countingContext } from '../../../test/fakes/inbox-context.ts'
import { soon } from '../../../test/fakes/manual-clock.ts'
import { openStoredRows, replyOf } from '../../../test/fakes/stored-rows.ts'
import { createActivity } from './activity.ts'

async function openFollowers(t: TestContext) {
  const rows = await openStoredRows(t)
  const context = countingContext(rows)
  await rows.add({ workspace_load: [{ workspace_id: 'ws_1' }, { workspace_id: 'ws_2' }] })
  const activity = createActivity(context)
  const events = (seqs: readonly number[], more: object = {}) =>
    rows.add({ events: seqs.map((seq) => ({ seq, items: '[{"t":"reset"}]', ...more })) })
  const page = async (afterSeq: number) => (await activity.page('ws_1', afterSeq))?.map(({ seq }) => seq)
  return { ...rows, context, activity, events, page }
}

/** A signal that fails a follower which looks at it again and again instead of waiting. */
function limitedSignal(): AbortSignal & { stop(): void } {
  const { signal } = new AbortController()
  let looks = 0
  let isAborted = false
  const aborted = () => {
    looks += 1
    assert.ok(looks < 100, 'it does not wait')
    return isAborted
  }
  const stop = () => {
    isAborted = true
    signal.dispatchEvent(new Event('abort'))
  }
  return Object.assign(Object.defineProperty(signal, 'aborted', { get: aborted }), { stop })
}

const numbers = (length: number) => Array.from({ length }, (_, index) => index + 1)

test('PL-7 a page for followers has 256 rows of its workspace, deltas too; a deleted workspace has none', async (t) => {
  const { events, page, sql, clock } = await openFollowers(t)
  await events(numbers(258), { delta: 1 })
  await events([1, 2, 300], { workspace_id: 'ws_2' })
  assert.deepEqual(await page(0), numbers(256))
  assert.deepEqual(await page(256), [257, 258])
  assert.deepEqual(await page(257), [258])
  assert.deepEqual(await page(258), [])
  await clock.settle()
  await sql(`delete from workspace_load where workspace_id = 'ws_1'`)
  assert.deepEqual([await page(257), await page(258)], [[258], undefined])
})

test('PL-7 a page for followers ends before the reply that would make it larger than 256 KiB', async (t) => {
  const { add, events, page } = await openFollowers(t)
  const items = '[{"t":"reply"}]'
  const ids = ['m1', 'm2', 'm3']
  await add({ messages: ids.map((id, n) => ({ id, n, reply: replyOf('x'.repeat(120_000)) })) })
  for (const [index, id] of ids.entries()) await events([index + 1], { message_id: id, items })
  assert.deepEqual([await page(0), await page(2)], [[1, 2], [3]])
})

test('PL-7 readers at the same place share a page until the log changes, or for this turn of the event loop', async (t) => {
  const { activity, context, clock } = await openFollowers(t)
  const first = activity.page('ws_1', 0)
  assert.equal(activity.page('ws_1', 0), first)
  assert.notEqual(activity.page('ws_1', 1), first)
  assert.notEqual(activity.page('ws_2', 0), first)
  assert.equal(context.reads(), 3)
  context.watchers.changed('ws_1')
  const second = activity.page('ws_1', 0)
  assert.notEqual(second, first)
  await clock.settle()
  const third = activity.page('ws_1', 0)
  assert.notEqual(third, second)
  await clock.settle()
  assert.notEqual(activity.page('ws_1', 0), third)
  await Promise.all([first, second, third])
})

test('PL-7 a follower gets each row once and then waits: for a change, or for 5 s without one', async (t) => {
  const { activity, context, events, clock } = await openFollowers(t)
  await events([1, 2, 3])
  const signal = limitedSignal()
  const rows = activity.follow('ws_1', 1, signal)[Symbol.asyncIterator]()
  const next = async () => (await soon(rows.next())).value?.seq
  assert.deepEqual([await next(), await next()], [2, 3])
  const later = rows.next()
  await clock.settle()
  await events([4])
  context.watchers.changed('ws_1')
  assert.equal((await soon(later)).value?.seq, 4)
  const missed = rows.next()
  await clock.settle()
  await events([5, 6])
  const before = context.reads()
  clock.advance(4999)
  await clock.settle()
  assert.equal(context.reads(), before)
  clock.advance(1)
  assert.deepEqual([(await soon(missed)).value?.seq, await next()], [5, 6])
  const ended = rows.next()
  await clock.settle()
  assert.equal(context.watching(), 1)
  signal.stop()
  assert.equal((await soon(ended)).done, true)
  assert.equal(context.watching(), 0)
})

test('PL-7 a follower at the end of the log waits for the next row', async (t) => {
  const { activity, context, events, clock } = await openFollowers(t)
  await events([1])
  const signal = limitedSignal()
  const rows = activity.follow('ws_1', 1, signal)[Symbol.asyncIterator]()
  const next = rows.next()
  await clock.settle()
  await events([2])
  context.watchers.changed('ws_1')
  assert.equal((await soon(next)).value?.seq, 2)
  const ended = rows.next()
  await clock.settle()
  signal.stop()
  assert.equal((await soon(ended)).done, true)
})

test('PL-7 a follower ends with its workspace, and reads nothing after its signal', async (t) => {
  const { activity, context, sql } = await openFollowers(t)
  const ended = activity.follow('ws_1', 0, AbortSignal.abort())[Symbol.asyncIterator]()
  assert.deepEqual([(await soon(ended.next())).done, context.reads()], [true, 0])
  await sql(`delete from workspace_load where workspace_id = 'ws_1'`)
  const gone = activity.follow('ws_1', 0, new AbortController().signal)[Symbol.asyncIterator]()
  assert.equal((await soon(gone.next())).done, true)
  assert.equal(context.watching(), 0)
})
