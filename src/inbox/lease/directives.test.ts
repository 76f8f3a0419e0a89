/** Stops and answers that are stored for running turns, and the leases of one worker. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { keyOf, openInboxRows, START_MS, WORKER } from '../../../test/harness/inbox-rows.ts'
import type { Value } from '../../store/store.ts'
import type { LeaseKey } from '../inbox.ts'
import { findDirectives, type WorkerDirective } from './directives.ts'
import { findLeasesOf } from './lease-rows.ts'

async function openTurns(t: TestContext) {
  const rows = openInboxRows(t)
  await rows.workspace('w')
  await rows.message('first', { state: 'done', lease_epoch: 7 })
  const ask = (messageId: string, row: Readonly<Record<string, Value>>) =>
    rows.plant('asks', {
      message_id: messageId,
      workspace_id: 'w',
      task_id: messageId,
      epoch: 1,
      question: '[]',
      id: 'ask',
      asked_at: START_MS,
      expires_at: START_MS,
      ...row,
    })
  return { ...rows, ask, find: () => rows.write(findDirectives) }
}

const idOf = ({ directive }: WorkerDirective) => (directive as { key: LeaseKey }).key.messageId

test('IN-8 a turn that is cancelled is found with its worker, and no other turn', async (t) => {
  const { bystanders, message, ask, find } = await openTurns(t)
  await bystanders()
  await message('m', { state: 'stopping', worker: 'far.1', asked: 1 })
  await ask('m', { state: 'answered' })
  const stop = (id: string, workspaceId = 'w') => ({ type: 'stop', key: keyOf(id, { workspaceId }) })
  const found = (await find()).sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1))
  assert.deepEqual(found, [
    { worker: 'far.1', directive: stop('m') },
    { worker: WORKER, directive: stop('other-stopping', 'other') },
    { worker: WORKER, directive: stop('w-stopping') },
  ])
})

test('IN-9 the answers to a running turn are found: the parts of a message, a permission, and a denial', async (t) => {
  const { message, ask, find } = await openTurns(t)
  const turn = (id: string, row: Readonly<Record<string, Value>> = {}) =>
    message(id, { state: 'leased', asked: 1, worker: `worker-of-${id}`, ...row })
  await turn('question')
  await message('reply', { task_id: 'question', conversation_id: 'c-question', n: 2, state: 'answer' })
  await ask('question', { state: 'answered', answer_message_id: 'reply' })
  await turn('permission')
  await ask('permission', { state: 'answered' })
  await turn('denied')
  await ask('denied', { state: 'denied' })
  await turn('open')
  await ask('open', { state: 'open' })
  await turn('earlier', { lease_epoch: 2 })
  await ask('earlier', { state: 'answered' })
  await turn('unmarked', { asked: 0 })
  await ask('unmarked', { state: 'answered' })
  await turn('ended', { state: 'done' })
  await ask('ended', { state: 'answered' })
  const answer = (id: string, parts: unknown) => ({
    worker: `worker-of-${id}`,
    directive: { type: 'answer', key: keyOf(id), askId: 'ask', parts },
  })
  const found = (await find()).sort((a, b) => (a.worker < b.worker ? -1 : 1))
  assert.deepEqual(found, [
    answer('denied', undefined),
    answer('permission', []),
    answer('question', [{ text: 'text of reply' }]),
  ])
})

test('one sweep sends at most 200 stops', async (t) => {
  const { message, find } = await openTurns(t)
  const ids = Array.from({ length: 201 }, (_, index) => `m${index}`)
  await Promise.all(ids.map((id) => message(id, { state: 'stopping' })))
  assert.equal((await find()).length, 200)
})

test('IN-3 the leases of a worker are found, those that end first before the others', async (t) => {
  const { bystanders, message, write } = await openTurns(t)
  await bystanders()
  const of = { state: 'leased', worker: 'far.1' }
  await message('late', { ...of, lease_until: START_MS + 9, lease_epoch: 3 })
  await message('soon', { ...of, state: 'stopping', lease_until: START_MS + 1 })
  await message('settled', { state: 'done' })
  await write(function* () {
    yield [{ text: `update conversations set worker = 'far.1' where id = 'c-settled'`, values: [] }]
  })
  assert.deepEqual(await write(() => findLeasesOf('far.1')), [keyOf('soon'), keyOf('late', { epoch: 3 })])
})

test('IN-3 all leases of a worker with more than a hundred are found', async (t) => {
  const { message, write } = await openTurns(t)
  const ids = Array.from({ length: 101 }, (_, index) => `m${index}`)
  await Promise.all(ids.map((id) => message(id, { state: 'leased', worker: 'far.1' })))
  assert.equal((await write(() => findLeasesOf('far.1'))).length, 101)
})
