import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import type { Inbox, LeaseKey, LeaseStanding, NumberedEvents, TurnEvent } from '../inbox/worker.ts'
import { createTurnLog } from './turn-log.ts'

const KEY: LeaseKey = { workspaceId: 'w', conversationId: 'c', taskId: 't', messageId: 'm', epoch: 1 }
const text = (delta: string): TurnEvent => ({ type: 'text', delta })
const tool = (subject?: string): TurnEvent => ({
  type: 'tool',
  name: 'bash',
  state: 'started',
  ...(subject !== undefined && { subject }),
})

/** A turn log on an inbox whose appends wait until the test answers them. */
function setUp() {
  const clock = manualClock()
  const calls: { readonly key: LeaseKey; readonly given: NumberedEvents }[] = []
  const open: PromiseWithResolvers<LeaseStanding>[] = []
  const reported: string[] = []
  const inbox = {
    append(key: LeaseKey, given: NumberedEvents) {
      const answer = Promise.withResolvers<LeaseStanding>()
      calls.push({ key, given })
      open.push(answer)
      return answer.promise
    },
  } as Pick<Inbox, 'append'> as Inbox
  const turnLog = createTurnLog({
    inbox,
    key: KEY,
    clock,
    onStanding: (standing) => reported.push(standing),
    onError: (error) => reported.push(String(error)),
  })
  /** Answers the oldest open append. */
  const answer = async (error?: string) => {
    if (error === undefined) open.shift()?.resolve('held')
    else open.shift()?.reject(error)
    await clock.settle()
  }
  const sent = () => calls.map(({ given }) => given)
  return { clock, calls, sent, reported, turnLog, answer }
}

test('deltas are merged for 50 ms, counted from the first one after the last append', async () => {
  const { clock, calls, sent, turnLog, answer } = setUp()
  turnLog.add(text('a'))
  clock.advance(49)
  turnLog.add(text('b'))
  assert.deepEqual(calls, [])
  clock.advance(1)
  assert.deepEqual(calls, [{ key: KEY, given: { from: 1, events: [text('ab')] } }])
  await answer()
  clock.advance(30)
  turnLog.add(text('c'))
  clock.advance(49)
  assert.equal(calls.length, 1)
  clock.advance(1)
  assert.deepEqual(sent().slice(1), [{ from: 2, events: [text('c')] }])
})

test('8192 characters go at once, each time; one less waits', async () => {
  const { clock, calls, turnLog, answer } = setUp()
  for (const count of [1, 2]) {
    turnLog.add(text('x'.repeat(8191)))
    assert.equal(calls.length, count - 1)
    turnLog.add(text('x'))
    assert.equal(calls.length, count)
    await answer()
  }
  turnLog.add(text('y'))
  assert.equal(calls.length, 2)
  clock.advance(50)
  assert.equal(calls.length, 3)
})

test('an append that goes at once leaves no timer that would cut the next merge short', async () => {
  const { clock, calls, turnLog, answer } = setUp()
  turnLog.add(text('a'))
  clock.advance(10)
  turnLog.add(text('x'.repeat(8192)))
  await answer()
  clock.advance(30)
  turnLog.add(text('b'))
  clock.advance(49)
  assert.equal(calls.length, 1)
  clock.advance(1)
  assert.equal(calls.length, 2)
})

test('one append at a time: what comes meanwhile goes after it, in order and with the next numbers', async () => {
  const { clock, calls, sent, turnLog, answer } = setUp()
  turnLog.add(text('one'))
  turnLog.add(tool())
  turnLog.add(text('two'))
  clock.advance(50)
  turnLog.add(text('x'.repeat(9000)))
  turnLog.add(tool())
  clock.advance(500)
  assert.deepEqual(sent(), [{ from: 1, events: [text('one'), tool(), text('two')] }])
  await answer()
  clock.advance(50)
  assert.deepEqual(sent().slice(1), [{ from: 4, events: [text('x'.repeat(9000)), tool()] }])
  await answer()
  clock.advance(500)
  assert.equal(calls.length, 2)
})

test('after a failed append the kept events go before the new ones', async () => {
  const { clock, sent, reported, turnLog, answer } = setUp()
  turnLog.add(tool('first'))
  clock.advance(50)
  turnLog.add(tool('second'))
  await answer('away')
  clock.advance(50)
  assert.deepEqual(sent().slice(1), [{ from: 1, events: [tool('first'), tool('second')] }])
  await answer()
  assert.deepEqual(reported, ['away', 'held'])
})

test('the end of a turn waits for the append in flight; what it could not store goes with the settle', async () => {
  const { clock, calls, turnLog, answer } = setUp()
  turnLog.add(tool('first'))
  clock.advance(50)
  turnLog.add(text('in the reply'))
  let unsent: NumberedEvents | undefined
  const ended = turnLog.unsent().then((events) => {
    unsent = events
  })
  await clock.settle()
  assert.equal(unsent, undefined)
  await answer('away')
  await ended
  assert.deepEqual(unsent, { from: 1, events: [tool('first')] })
  clock.advance(500)
  await clock.settle()
  assert.equal(calls.length, 1, 'nothing is appended after the end')
})

test('what the append in flight stored is not sent again with the settle', async () => {
  const { clock, turnLog, answer } = setUp()
  turnLog.add(tool('first'))
  clock.advance(50)
  const unsent = turnLog.unsent()
  await answer()
  assert.deepEqual(await unsent, { from: 2, events: [] })
})

test('a piece of text without characters is no event; any other text is one', async () => {
  const { clock, calls, sent, turnLog } = setUp()
  turnLog.add(text(''))
  clock.advance(500)
  assert.deepEqual(calls, [])
  turnLog.add(text('~'))
  clock.advance(50)
  assert.deepEqual(sent(), [{ from: 1, events: [text('~')] }])
})

test('the subject of a tool is cut after 500 characters, and a note goes at once', async () => {
  const { clock, sent, turnLog, answer } = setUp()
  turnLog.add(tool(`a${'x'.repeat(499)}`))
  turnLog.add(tool(`a${'x'.repeat(500)}`))
  clock.advance(50)
  await answer()
  const noted = turnLog.note({ key: 'k', value: 'v' })
  await answer()
  assert.equal(await noted, 'held')
  assert.deepEqual(sent(), [
    { from: 1, events: [tool(`a${'x'.repeat(499)}`), tool(`a${'x'.repeat(499)}...`)] },
    { from: 3, events: [], notes: { k: 'v' } },
  ])
})
