/** Readers that follow the log of one task. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { countingContext } from '../../../test/fakes/inbox-context.ts'
import { soon } from '../../../test/fakes/manual-clock.ts'
import { openStoredRows } from '../../../test/fakes/stored-rows.ts'
import { createReception, type ReceptionOptions } from './reception.ts'

async function openFollow(t: TestContext) {
  const rows = await openStoredRows(t)
  const context = countingContext(rows)
  await rows.add({ tasks: [{ id: 't1', state: 'TASK_STATE_WORKING' }], messages: [{ id: 't1' }] })
  const reception = createReception(context, {} as ReceptionOptions)
  const stop = new AbortController()
  const follow = (options: { afterSeq: number; untilFinal?: boolean }) => {
    const entries = reception.follow('t1', options, stop.signal)[Symbol.asyncIterator]()
    return async () => {
      const { done, value } = await entries.next()
      return done ? 'end' : value.seq
    }
  }
  const events = (...seqs: number[]) =>
    rows.add({ events: seqs.map((seq) => ({ seq, task_id: 't1', message_id: 't1', items: '[]' })) })
  const change = async (state: string) => {
    await rows.sql('update tasks set state = $1', state)
    context.watchers.changed('t1')
  }
  return { ...rows, context, reception, stop, follow, events, change }
}

test('IN-5 a follower gets each entry after its cursor once, waits for the next one, and ends with the task', async (t) => {
  const { context, clock, follow, events, change } = await openFollow(t)
  await events(1, 2, 3)
  const next = follow({ afterSeq: 1 })
  assert.deepEqual([await soon(next()), await soon(next())], [2, 3])
  const later = next()
  await clock.settle()
  await events(4, 5, 6)
  context.watchers.changed('t1')
  assert.deepEqual([await soon(later), await soon(next()), await soon(next())], [4, 5, 6])
  const missed = next()
  await clock.settle()
  await events(7)
  const before = context.reads()
  clock.advance(4999)
  await clock.settle()
  assert.equal(context.reads(), before)
  clock.advance(1)
  assert.equal(await soon(missed), 7)
  const ended = next()
  await clock.settle()
  assert.equal(context.watching(), 1)
  await events(8)
  await change('TASK_STATE_COMPLETED')
  assert.deepEqual([await soon(ended), await soon(next())], [8, 'end'])
  assert.equal(context.watching(), 0)
})

test('IN-5 a follower of a task that has ended gets all its entries, also those of the next page', async (t) => {
  const { follow, add, change } = await openFollow(t)
  const items = JSON.stringify([{ t: 'note', type: 'x', text: 'x'.repeat(200 * 1024), by: 'x' }])
  await add({ events: [1, 2, 3].map((seq) => ({ seq, task_id: 't1', message_id: 't1', items })) })
  await change('TASK_STATE_COMPLETED')
  const next = follow({ afterSeq: 0 })
  assert.deepEqual([await soon(next()), await soon(next()), await soon(next()), await soon(next())], [1, 2, 3, 'end'])
})

test('PL-5 a follower ends when the task waits for its caller, unless it follows until the end', async (t) => {
  const { clock, follow, events, change, context } = await openFollow(t)
  await events(1)
  await change('TASK_STATE_INPUT_REQUIRED')
  const short = follow({ afterSeq: 0 })
  assert.deepEqual([await soon(short()), await soon(short())], [1, 'end'])
  const long = follow({ afterSeq: 0, untilFinal: true })
  assert.equal(await soon(long()), 1)
  const ended = long()
  await clock.settle()
  assert.equal(context.watching(), 1)
  await change('TASK_STATE_FAILED')
  assert.equal(await soon(ended), 'end')
})

test('IN-5 a follower ends on abort, and fails for a task that is not there', async (t) => {
  const { context, clock, reception, follow, stop } = await openFollow(t)
  const ended = follow({ afterSeq: 0 })()
  await clock.settle()
  stop.abort()
  assert.equal(await soon(ended), 'end')
  assert.equal(context.watching(), 0)
  const gone = reception.follow('t9', { afterSeq: 0 }, new AbortController().signal)[Symbol.asyncIterator]()
  await assert.rejects(gone.next(), { code: 'not_found', message: 'there is no task t9' })
  assert.equal(context.watching(), 0)
})
