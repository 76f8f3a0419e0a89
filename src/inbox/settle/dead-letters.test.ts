/** Dead letters: the list page by page, and what a replay or a discard writes, row by row. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { letterTo, SENDER } from '../../../test/fakes/letters.ts'
import { openInboxRows, START_MS } from '../../../test/harness/inbox-rows.ts'
import { MoleculeError } from '../../errors.ts'
import type { Value } from '../../store/store.ts'

const HOUR_MS = 3600_000
const isMissing = (id: string) => (error: unknown) =>
  error instanceof MoleculeError && error.code === 'not_found' && error.message === `there is no dead letter ${id}`

async function openDeadLetters(t: TestContext) {
  const rows = openInboxRows(t)
  for (const id of ['w', 'other']) await rows.workspace(id)
  const dead = (id: string, row: Readonly<Record<string, Value>> = {}) => rows.message(id, { state: 'dead', ...row })
  /** Messages that no list of `w` shows. */
  const hidden = async (settledMs: number, prefix: string) => {
    const at = { settled_at: settledMs }
    await dead(`${prefix}-foreign`, { ...at, workspace_id: 'other' })
    await dead(`${prefix}-replayed`, { ...at, replayed_as: 'x' })
    await dead(`${prefix}-discarded`, { ...at, discarded_at: START_MS })
    await rows.message(`${prefix}-done`, { ...at, state: 'done' })
  }
  const { deadLetters } = rows.local
  const pages = async () => {
    const found: string[][] = []
    for (let after: string | undefined, more = true; more; ) {
      const page = await deadLetters.list('w', after)
      found.push(page.rows.map(({ id }) => id))
      after = page.next
      more = after !== undefined && found.length < 9
    }
    return found
  }
  return { ...rows, deadLetters, dead, hidden, pages }
}

test('PL-23 dead letters are listed with the newest first, 200 on a page, each once', async (t) => {
  const { dead, hidden, pages } = await openDeadLetters(t)
  await hidden(START_MS - 9, '0-old')
  await hidden(START_MS, 'm-000')
  await dead('newest', { settled_at: START_MS + 1 })
  const same = Array.from({ length: 201 }, (_, index) => `m-${String(index).padStart(3, '0')}`)
  await Promise.all(same.map((id) => dead(id)))
  await dead('z-oldest', { settled_at: START_MS - 1 })
  same.reverse()
  assert.deepEqual(await pages(), [
    ['newest', ...same.slice(0, 199)],
    [...same.slice(199), 'z-oldest'],
  ])
})

test('PL-23 a page of dead letters ends at 1 MiB', async (t) => {
  const { dead, pages } = await openDeadLetters(t)
  const envelope = JSON.stringify(letterTo('w', { text: 'x'.repeat(600_000) }).envelope.raw)
  await dead('newest', { envelope, settled_at: START_MS + 1 })
  await dead('a', { envelope })
  await dead('b', { envelope })
  assert.deepEqual(await pages(), [['newest'], ['b'], ['a']])
})

test('IN-4 a workspace without dead letters has an empty list and no next page', async (t) => {
  const { deadLetters, hidden } = await openDeadLetters(t)
  await hidden(START_MS, 'x')
  assert.deepEqual(await deadLetters.list('w'), { rows: [] })
})

test('IN-4 a dead letter shows its sender, its message, its counters, and why it failed', async (t) => {
  const { deadLetters, dead, write } = await openDeadLetters(t)
  await dead('m', { failures: 3, losses: 2 })
  await dead('plain', { settled_at: START_MS - 1 })
  const status = { parts: [{ text: 'The agent stopped.' }, { text: 'more' }], code: 'exit', detail: 'exit 1' }
  await write(function* () {
    yield [{ text: `update tasks set status_message = $1 where id = 'm'`, values: [JSON.stringify(status)] }]
  })
  const letterOf = (id: string) => ({
    id,
    taskId: id,
    contextId: `context-c-${id}`,
    principal: 'people',
    sender: SENDER,
    message: letterTo('w', { messageId: id, text: `text of ${id}` }).envelope.message,
  })
  assert.deepEqual((await deadLetters.list('w')).rows, [
    {
      ...letterOf('m'),
      code: 'exit',
      reason: 'The agent stopped.',
      detail: 'exit 1',
      failures: 3,
      losses: 2,
      atMs: START_MS,
    },
    { ...letterOf('plain'), code: 'internal', reason: '', failures: 0, losses: 0, atMs: START_MS - 1 },
  ])
})

/** The message that a replay makes. */
const copyOf = (id: string, row: Readonly<Record<string, Value>> = {}) => ({
  workspace_id: 'w',
  conversation_id: `c-${id}`,
  task_id: 'id-1',
  n: 2,
  dedupe: id,
  content_hash: '',
  idempotency_key: `key-${id}`,
  sender: JSON.stringify(SENDER),
  replay_of: id,
  state: 'queued',
  failures: 0,
  losses: 0,
  interrupted: 0,
  session_retried: 0,
  suspended: 0,
  asked: 0,
  appended: 0,
  begun: 0,
  parks: 0,
  admitted_at: START_MS + 10,
  ready_at: START_MS + 10,
  expires_at: START_MS + 10 + 24 * HOUR_MS,
  ...row,
})

async function openReplay(t: TestContext) {
  const rows = await openDeadLetters(t)
  await rows.bystanders()
  await rows.plant('budgets', { id: 'w-dead', workspace_id: 'w', limit_usd: 9, state: 'spent' })
  rows.clock.advance(10)
  let taskId = ''
  const replayed = async (id: string) => {
    const changed = await rows.changes(async () => (taskId = await rows.deadLetters.replay('w', id)))
    const { envelope, ...copy } = changed['messages id-1'] as Record<string, unknown>
    assert.equal(envelope, JSON.stringify(letterTo('w', { messageId: id, text: `text of ${id}` }).envelope.raw))
    const { dedupe, ...old } = changed[`messages ${id}`] as Record<string, unknown>
    assert.notEqual(dedupe, id, 'the key of the sender moves to the replay')
    return { ...changed, 'messages id-1': copy, [`messages ${id}`]: old }
  }
  return { ...rows, replayed, taskId: () => taskId }
}

const event = (id: string) => ({
  task_id: id,
  message_id: id,
  at_ms: START_MS + 10,
  delta: 0,
  items: [{ t: 'status', state: 'TASK_STATE_SUBMITTED' }],
})
const taskOf = (id: string) => ({
  workspace_id: 'w',
  conversation_id: `c-${id}`,
  context_id: `context-c-${id}`,
  principal: 'people',
  state: 'TASK_STATE_SUBMITTED',
  created_at: START_MS + 10,
  updated_at: START_MS + 10,
})

test('IN-4 a replay is a new task behind the conversation, with the reply address and the budget of its message', async (t) => {
  const { dead, replayed, plant, hints, taskId, deadLetters, select } = await openReplay(t)
  const replyTo = JSON.stringify({ door: 'chat', channel: 'general' })
  await dead('m', { reply_to: replyTo })
  await plant('budgets', { id: 'm', workspace_id: 'w', root_id: 'm', task_id: 'm', limit_usd: 2.5, state: 'spent' })
  assert.deepEqual(await replayed('m'), {
    'workspace_load w': { waiting: 1, seq: 1 },
    'conversations c-m': { last_n: 2, ready_at: START_MS + 10 },
    'tasks id-1': taskOf('m'),
    'messages m': { replayed_as: 'id-1' },
    'messages id-1': copyOf('m', { reply_to: replyTo }),
    'events w 1': event('id-1'),
    'budgets id-1': { workspace_id: 'w', root_id: 'id-1', task_id: 'id-1', limit_usd: 2.5, state: 'open' },
  })
  assert.deepEqual(hints(), ['w'])
  assert.equal(await deadLetters.replay('w', 'm'), taskId(), 'a second replay is the same')
  const [row] = await select(`select length(dedupe) as bytes from messages where id = 'm'`)
  assert.deepEqual({ ...row }, { bytes: 16 })
})

test('TW-3 the replay of a delegation stays below a parent that goes on, and is a tree of its own below one that failed', async (t) => {
  const { dead, replayed } = await openReplay(t)
  const child = { root_id: 'root', parent_epoch: 3, delegation: '{"hop":1}' }
  for (const [parent, expected] of [
    ['w-leased', { parent_id: 'w-leased', ...child, child_open: 1 }] as const,
    ['w-stopping', {}] as const,
    ['w-dead', {}] as const,
    ['w-canceled', {}] as const,
  ]) {
    await dead(`m-${parent}`, { parent_id: parent, ...child, child_open: 0 })
    assert.deepEqual((await replayed(`m-${parent}`))['messages id-1'], copyOf(`m-${parent}`, expected))
  }
})

test('IN-2 a replay waits behind the running turn, and behind an older waiting message, of its conversation', async (t) => {
  const { dead, message, replayed } = await openReplay(t)
  await message('running', { state: 'leased' })
  await message('waiting', { ready_at: START_MS + 5 })
  for (const place of ['running', 'waiting']) {
    await dead(`m-${place}`, { conversation_id: `c-${place}`, n: 0 })
    assert.deepEqual((await replayed(`m-${place}`))[`conversations c-${place}`], { last_n: 2 })
  }
})

test('IN-4 a worker that waits gets the replayed message', async (t) => {
  const { dead, deadLetters, finishWork, local, select } = await openReplay(t)
  await dead('m')
  const stop = new AbortController()
  const worker = { id: 'host.9', workspaces: ['w'] }
  const directives = local.inbox.leases(worker, stop.signal)[Symbol.asyncIterator]()
  const next = directives.next()
  await finishWork()
  const taskId = await deadLetters.replay('w', 'm')
  await finishWork()
  const [row] = await select('select state from messages where id = $1', taskId)
  assert.equal(row?.['state'], 'leased')
  stop.abort()
  await next
})

test('IN-4 only a dead letter of the workspace can be replayed or discarded', async (t) => {
  const { deadLetters, dead, bystanders, changes } = await openDeadLetters(t)
  await bystanders()
  await dead('m')
  const refused = await changes(async () => {
    for (const id of ['w-done', 'w-queued', 'other-dead', 'none']) {
      await assert.rejects(deadLetters.replay('w', id), isMissing(id))
      await assert.rejects(deadLetters.discard('w', id), isMissing(id))
    }
  })
  assert.deepEqual(refused, {})
})

test('IN-4 a discarded dead letter leaves the list once, with a note in the log', async (t) => {
  const { deadLetters, dead, bystanders, changes, hints } = await openDeadLetters(t)
  await bystanders()
  await dead('m')
  assert.deepEqual(await changes(() => deadLetters.discard('w', 'm')), {
    'workspace_load w': { seq: 1 },
    'messages m': { discarded_at: START_MS },
    'events w 1': {
      at_ms: START_MS,
      delta: 0,
      items: [{ t: 'note', type: 'discarded', text: 'the dead letter m was discarded', by: 'owner' }],
    },
  })
  assert.deepEqual(hints(), ['w'])
  assert.deepEqual(await changes(() => deadLetters.discard('w', 'm')), {})
})
