/** Questions of running turns: which message answers which question, and what happens to an answer when the turn ends. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { letterTo } from '../../../test/fakes/letters.ts'
import { done, keyOf, leasesIn, openInboxOnClock } from '../../../test/harness/inbox-on-clock.ts'
import type { Lease } from '../inbox.ts'

const failure = { code: 'exit', message: 'it broke' }
const retry = { type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: false } as const

async function openAsking(t: TestContext, turns: number) {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace({ slots: 9 })
  const worker = inbox.worker([id])
  const leases: Lease[] = []
  for (let count = 0; count < turns; count++) {
    await inbox.local.reception.admit(letterTo(id))
    const lease = await worker.lease()
    leases.push(lease)
    await inbox.local.inbox.ask(lease, { kind: 'question', id: 'q', parts: [{ text: `question ${count}` }] })
  }
  const asks = async () => {
    const rows = await inbox.sql('select message_id, state, answer_message_id from asks order by asked_at, message_id')
    return leases.map(({ messageId }) => {
      const { state, answer_message_id: answer } = rows.find((row) => row['message_id'] === messageId) ?? {}
      return [state, answer]
    })
  }
  const states = () => Promise.all(leases.map(({ taskId }) => inbox.state(taskId)))
  const reply = (lease: Lease, text: string, messageId: string) =>
    inbox.local.reception.admit({ ...letterTo(id, { taskId: lease.taskId, text, messageId }), id: messageId })
  return { inbox, id, worker, leases: leases as [Lease, Lease, Lease], asks, states, reply }
}

test('the next message of a task answers its question: it goes to that turn, and the other questions stay open', async (t) => {
  const { inbox, id, worker, leases, asks, states, reply } = await openAsking(t, 3)
  const [first, second] = leases
  assert.deepEqual(await inbox.load(id), { running: 0, waiting: 0, suspended: 3 })
  const letter = { ...letterTo(id, { taskId: second.taskId, text: 'seven' }), id: '01ANSWER000000000000000000' }
  const admitted = { taskId: second.taskId, contextId: second.contextId, duplicate: false }
  assert.deepEqual(await inbox.local.reception.admit(letter), admitted)
  const answer = { type: 'answer', key: keyOf(second), askId: 'q', parts: [{ text: 'seven' }] }
  assert.deepEqual(await worker.take(), [answer])
  assert.deepEqual(await asks(), [
    ['open', null],
    ['answered', letter.id],
    ['open', null],
  ])
  assert.deepEqual(await states(), ['TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_WORKING', 'TASK_STATE_INPUT_REQUIRED'])
  assert.deepEqual(await inbox.load(id), { running: 1, waiting: 0, suspended: 2 })
  // The sweep repeats it with its text until the turn settles.
  await inbox.pass(5000)
  assert.deepEqual(await worker.take(), [answer])
  // The same message again attaches; a further one waits behind the turn.
  assert.deepEqual(await inbox.local.reception.admit(letter), { ...admitted, duplicate: true })
  await reply(second, 'and eight', '01BEHIND000000000000000000')
  assert.deepEqual(await worker.take(), [])
  await inbox.local.inbox.settle(second, done('thanks'))
  const [behind] = leasesIn(await worker.take())
  assert.equal(behind?.messageId, '01BEHIND000000000000000000')
  // Its answer is used up, and the asks of the other turns are as they were.
  assert.deepEqual(await asks(), [
    ['open', null],
    ['answered', letter.id],
    ['open', null],
  ])
  const [row] = await inbox.sql('select state, settled_at is null as open from messages where id = $1', letter.id)
  assert.deepEqual({ ...row }, { state: 'answer', open: 0 })
  assert.equal(first.messageId === second.messageId, false)
})

test('when a turn with an answer runs again, its answer waits behind the new attempt; other answers stay used', async (t) => {
  const { inbox, id, worker, leases, asks, reply } = await openAsking(t, 3)
  const [first, second, third] = leases
  await reply(first, 'one', '01ONE000000000000000000000')
  await reply(second, 'two', '01TWO000000000000000000000')
  await worker.take()
  await inbox.local.inbox.settle(second, retry)
  const again = await worker.lease()
  assert.equal(again.messageId, second.messageId)
  assert.deepEqual(await asks(), [
    ['answered', '01ONE000000000000000000000'],
    ['void', '01TWO000000000000000000000'],
    ['open', null],
  ])
  assert.deepEqual(await inbox.load(id), { running: 2, waiting: 1, suspended: 1 })
  await inbox.local.inbox.settle(again, done('no question this time'))
  const [behind] = leasesIn(await worker.take())
  assert.equal(behind?.messageId, '01TWO000000000000000000000')
  // The turn that settles ends its open ask, and no other one.
  await inbox.local.inbox.settle(third, done('never mind'))
  assert.deepEqual(await asks(), [
    ['answered', '01ONE000000000000000000000'],
    ['void', '01TWO000000000000000000000'],
    ['void', null],
  ])
  const messages = await inbox.sql(`select id from messages where state = 'answer'`)
  assert.deepEqual(
    messages.map((row) => row['id']),
    ['01ONE000000000000000000000'],
  )
})
