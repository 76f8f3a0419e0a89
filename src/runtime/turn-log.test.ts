import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import type { Inbox, LeaseKey, LeaseStanding, NumberedEvents } from '../inbox/inbox.ts'
import { createTurnLog } from './turn-log.ts'

const KEY: LeaseKey = { workspaceId: 'w', conversationId: 'c', taskId: 't', messageId: 'm', epoch: 1 }

function setUp(answers: (LeaseStanding | Error)[] = []) {
  const clock = manualClock()
  const appended: NumberedEvents[] = []
  const reported: (LeaseStanding | string)[] = []
  const inbox = {
    async append(_key: LeaseKey, events: NumberedEvents) {
      appended.push(events)
      const answer = answers.shift() ?? 'held'
      if (answer instanceof Error) throw answer
      return answer
    },
  } as Pick<Inbox, 'append'> as Inbox
  const turnLog = createTurnLog({
    inbox,
    key: KEY,
    clock,
    onStanding: (standing) => reported.push(standing),
    onError: (error) => reported.push((error as Error).message),
  })
  return { clock, appended, reported, turnLog }
}
const text = (delta: string) => ({ type: 'text', delta }) as const

test('deltas within the merge window become one event, and a shorter turn appends nothing', async () => {
  const { clock, appended, turnLog } = setUp()
  for (const delta of ['a', 'b', 'c']) turnLog.add(text(delta))
  assert.deepEqual(appended, [])
  clock.advance(60)
  assert.deepEqual(appended, [{ from: 1, events: [text('abc')] }])
  turnLog.add(text('d'))
  turnLog.add({ type: 'tool', name: 'bash', state: 'started' })
  const unsent = await turnLog.unsent()
  assert.deepEqual(unsent, { from: 2, events: [{ type: 'tool', name: 'bash', state: 'started' }] })
  clock.advance(1000)
  assert.equal(appended.length, 1)
})

test('a large text does not wait for the merge window', () => {
  const { appended, turnLog } = setUp()
  turnLog.add(text('x'.repeat(8192)))
  assert.equal(appended.length, 1)
})

test('a failed append is repeated with the same numbers and loses nothing', async () => {
  const { clock, appended, reported, turnLog } = setUp([new Error('away')])
  turnLog.add(text('one'))
  clock.advance(60)
  await clock.settle()
  clock.advance(60)
  await clock.settle()
  assert.deepEqual(appended, [
    { from: 1, events: [text('one')] },
    { from: 1, events: [text('one')] },
  ])
  assert.deepEqual(reported, ['away', 'held'])
  assert.deepEqual(await turnLog.unsent(), { from: 2, events: [] })
})

test('the standing of the lease is passed on', async () => {
  const { clock, reported, turnLog } = setUp(['stop'])
  turnLog.add(text('x'))
  clock.advance(60)
  await turnLog.unsent()
  assert.deepEqual(reported, ['stop'])
})
