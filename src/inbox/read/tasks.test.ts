import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { envelopeOf, NOON_MS, openStoredRows, replyOf } from '../../../test/fakes/stored-rows.ts'
import type { TaskView } from '../inbox.ts'
import { readTexts } from './task-messages.ts'
import { readArtifact, readSnapshot, readTask } from './tasks.ts'

const MIB = 1024 * 1024
const timestamp = new Date(NOON_MS).toISOString()

async function openTasks(t: TestContext) {
  const rows = await openStoredRows(t)
  const { store } = rows
  return {
    ...rows,
    read: (id: string, view: TaskView = {}) => store.read(() => readTask(id, view)),
    snapshot: (id: string, view: TaskView = {}) => store.read(() => readSnapshot(id, view)),
    artifact: (id: string, artifactId: string, view: TaskView = {}) =>
      store.read(() => readArtifact(id, artifactId, view)),
  }
}

const history = (taskId: string, messageId: string) => ({
  messageId,
  role: 'ROLE_USER',
  parts: [{ text: `text of ${messageId}` }],
  taskId,
  contextId: 'c1',
})
const artifact = (artifactId: string, text: string) => ({ artifactId, parts: [{ text }] })
const message = (id: string, n: number, more: object = {}) => ({
  id,
  n,
  task_id: 't1',
  envelope: envelopeOf(`text of ${id}`, id),
  ...more,
})
const completed = { id: 't1', contextId: 'c1', status: { state: 'TASK_STATE_COMPLETED', timestamp } }

test('PL-5 a task has its messages in order, and the last version of each artifact at the place of the first', async (t) => {
  const { add, read } = await openTasks(t)
  const reply = (text: string, ...given: object[]) =>
    JSON.stringify({ parts: text === '' ? [] : [{ text }], artifacts: given })
  await add({
    tasks: [{ id: 't1' }, { id: 't2' }, { id: 't3' }],
    messages: [
      message('t1', 1, { reply: reply('one', artifact('a1', 'old')) }),
      message('m2', 2, { reply: reply('', artifact('a1', 'new')) }),
      message('t2', 3, { task_id: 't2', reply: reply('', artifact('a1', 'of another')) }),
    ],
  })
  const artifacts = [artifact('a1', 'new'), artifact('reply-t1', 'one')]
  assert.deepEqual(await read('t1'), { ...completed, artifacts, history: [history('t1', 't1'), history('t1', 'm2')] })
  assert.deepEqual(await read('t1', { historyLength: 5, artifacts: true }), {
    ...completed,
    artifacts,
    history: [history('t1', 't1'), history('t1', 'm2')],
  })
  assert.deepEqual(await read('t1', { historyLength: 1, artifacts: false }), {
    ...completed,
    history: [history('t1', 'm2')],
  })
  assert.deepEqual(await read('t1', { historyLength: 0 }), { ...completed, artifacts })
  const single = { ...completed, id: 't2', artifacts: [artifact('a1', 'of another')] }
  assert.deepEqual(await read('t2'), { ...single, history: [history('t2', 't2')] })
  assert.deepEqual(await read('t3'), { ...completed, id: 't3' })
  assert.equal(await read('t9'), undefined)
})

test('PL-5 two versions of one artifact are one', async (t) => {
  const { add, read } = await openTasks(t)
  const reply = (text: string) => JSON.stringify({ parts: [], artifacts: [artifact('a1', text)] })
  await add({
    tasks: [{ id: 't1' }],
    messages: [message('t1', 1, { reply: reply('1') }), message('m2', 2, { reply: reply('2') })],
  })
  assert.deepEqual((await read('t1'))?.artifacts, [artifact('a1', '2')])
})

test('PL-12 a view shows the tasks of its workspace, of its principal and of those below', async (t) => {
  const { add, read } = await openTasks(t)
  await add({ tasks: [{ id: 't1', principal: 'ws:A/c1' }] })
  const seen = async (view: TaskView) => (await read('t1', view)) !== undefined
  for (const view of [{}, { workspaceId: 'ws_1' }, { principal: 'ws:A' }, { principal: 'ws:A/c1' }]) {
    assert.equal(await seen(view), true, JSON.stringify(view))
  }
  for (const view of [{ workspaceId: 'ws_2' }, { principal: 'ws:A/c' }, { principal: 'ws' }, { principal: 'people' }]) {
    assert.equal(await seen(view), false, JSON.stringify(view))
  }
})

test('PL-5 a task that waits says why; any other status is the stored one, with its detail for the owner', async (t) => {
  const { add, read } = await openTasks(t)
  const failed = JSON.stringify({ parts: [{ text: 'it broke' }], code: 'exit', detail: 'stderr' })
  await add({
    workspace_load: [{ workspace_id: 'ws_1' }],
    conversations: [{ id: 'c1' }],
    tasks: [
      { id: 't1', state: 'TASK_STATE_SUBMITTED' },
      { id: 't2', state: 'TASK_STATE_SUBMITTED', status_message: failed },
      { id: 't3', state: 'TASK_STATE_WORKING' },
    ],
  })
  const said = async (id: string, view: TaskView = {}) => (await read(id, view))?.status.message
  const agent = { taskId: 't1', contextId: 'c1', role: 'ROLE_AGENT' }
  assert.deepEqual(await said('t1'), {
    messageId: 't1.status',
    ...agent,
    parts: [{ text: 'waiting for a worker' }],
    metadata: { code: 'waiting' },
  })
  const stored = {
    messageId: 't2.status',
    ...agent,
    taskId: 't2',
    parts: [{ text: 'it broke' }],
    metadata: { code: 'exit' },
  }
  assert.deepEqual(await said('t2'), stored)
  assert.deepEqual(await said('t2', { detail: true }), { ...stored, parts: [{ text: 'it broke\nstderr' }] })
  assert.equal(await said('t3'), undefined)
})

test('RE-3 a task shows 8 MiB of its newest messages, at least one, and says how many it leaves out', async (t) => {
  const { add, read, sql } = await openTasks(t)
  const sized = (bytes: number) => envelopeOf('x'.repeat(bytes - envelopeOf('').length))
  await add({
    tasks: [{ id: 't1' }],
    messages: [
      message('t1', 1, { envelope: sized(200) }),
      message('m2', 2, { envelope: sized(4 * MIB) }),
      message('m3', 3, { envelope: sized(3 * MIB), reply: replyOf('x'.repeat(MIB - replyOf('').length)) }),
    ],
  })
  const shown = async () => {
    const task = await read('t1')
    return [task?.history?.length, task?.metadata]
  }
  assert.deepEqual(await shown(), [2, { omitted_messages: 1 }])
  await sql('update messages set envelope = $1 where n = 3', sized(3 * MIB - 200))
  assert.deepEqual(await shown(), [3, undefined])
  await sql('update messages set envelope = $1 where n = 3', sized(9 * MIB))
  assert.deepEqual(await shown(), [1, { omitted_messages: 2 }])
})

test('RE-3 a task reads its 10,000 newest messages', async (t) => {
  const { add, read, sql } = await openTasks(t)
  await add({ tasks: [{ id: 't1' }], messages: [message('t1', 1)] })
  await sql(
    `insert into messages (id, workspace_id, conversation_id, task_id, n, dedupe, content_hash, idempotency_key, envelope,
       sender, state, admitted_at, ready_at, expires_at, reply)
     with recursive k (n) as (select 2 union all select n + 1 from k where n < 10001)
     select 'm' || n, 'ws_1', 'c1', 't1', n, 'x' || n, '', '', replace($1, 'sent', 'm' || n), '', 'done', 0, 0, 0,
       case when n = 5000 then $2 end from k`,
    ...[envelopeOf('hello'), replyOf('old')],
  )
  const task = await read('t1', { historyLength: 1 })
  assert.deepEqual(
    [task?.history?.map(({ messageId }) => messageId), task?.artifacts],
    [['m10001'], [artifact('reply-m5000', 'old')]],
  )
})

test('IN-5 a snapshot has the replies so far and the place in the log from which a reader follows', async (t) => {
  const { add, snapshot, sql } = await openTasks(t)
  const event = (seq: number, delta: string, more: object = {}) => ({
    seq,
    task_id: 't1',
    message_id: 't1',
    items: JSON.stringify([{ t: 'turn', event: { type: 'text', delta } }]),
    ...more,
  })
  await add({ tasks: [{ id: 't1', state: 'TASK_STATE_WORKING' }], messages: [message('t1', 1)] })
  const task = { ...completed, status: { state: 'TASK_STATE_WORKING', timestamp }, history: [history('t1', 't1')] }
  assert.deepEqual(await snapshot('t1'), { task, seq: 0, firstSeq: 0 })
  await add({ events: [event(9, 'of another', { task_id: 't2' }), event(3, 'he')] })
  assert.deepEqual(await snapshot('t1'), { task, seq: 3, firstSeq: 3 })
  await add({ events: [event(4, 'llo')] })
  const reply = artifact('reply-t1', 'hello')
  assert.deepEqual(await snapshot('t1'), { task: { ...task, artifacts: [reply] }, seq: 4, firstSeq: 3 })
  assert.equal(await snapshot('t1', { workspaceId: 'ws_2' }), undefined)
  await sql(`update tasks set state = 'TASK_STATE_COMPLETED'`)
  assert.deepEqual(await snapshot('t1'), { task: { ...completed, history: task.history }, seq: 4, firstSeq: 3 })
  await sql(`update tasks set state = 'TASK_STATE_WORKING'`)
  await sql(`update events set items = '[{"t":"reset"}]'`)
  assert.deepEqual(await snapshot('t1'), { task, seq: 4, firstSeq: 3 })
})

test('IN-5 a snapshot joins replies of up to 1 MiB; a larger log is followed from its start', async (t) => {
  const { add, snapshot } = await openTasks(t)
  const items = (delta: string) => JSON.stringify([{ t: 'turn', event: { type: 'text', delta } }])
  const quarter = items('x'.repeat(MIB / 4 - items('').length))
  await add({
    tasks: [{ id: 't1', state: 'TASK_STATE_WORKING' }],
    messages: [message('t1', 1)],
    events: [3, 4, 5, 6].map((seq) => ({ seq, task_id: 't1', message_id: 't1', items: quarter })),
  })
  const { task, ...place } = (await snapshot('t1')) ?? assert.fail('no snapshot')
  assert.deepEqual([task.artifacts?.length, place], [1, { seq: 6, firstSeq: 3 }])
  await add({ events: [{ seq: 7, task_id: 't1', message_id: 't1', items: items('x') }] })
  const { task: large, ...start } = (await snapshot('t1')) ?? assert.fail('no snapshot')
  assert.deepEqual([large.artifacts, start], [undefined, { seq: 2, lastSeq: 7, firstSeq: 3 }])
})

test('PL-5 one artifact is read in its newest version, from the replies of its own task only', async (t) => {
  const { add, artifact: readOne } = await openTasks(t)
  const reply = (text: string, ...artifacts: object[]) => JSON.stringify({ parts: [{ text }], artifacts })
  await add({
    tasks: [{ id: 't1' }, { id: 't2' }],
    messages: [
      message('t1', 1, { reply: reply('one', artifact('a1', '1'), artifact('a0', '0')) }),
      message('m2', 2, { reply: reply('two', artifact('a1', '2'), artifact('a1', '3')) }),
      message('m3', 3, { reply: reply('it says "a1" and a1') }),
      message('m4', 4),
      message('t2', 5, { task_id: 't2', reply: reply('five', artifact('a1', '5'), artifact('a5', '5')) }),
    ],
  })
  assert.deepEqual(await readOne('t1', 'a1'), artifact('a1', '3'))
  assert.deepEqual(await readOne('t1', 'a0'), artifact('a0', '0'))
  assert.deepEqual(await readOne('t1', 'reply-t1'), artifact('reply-t1', 'one'))
  assert.deepEqual(await readOne('t1', 'reply-m2'), artifact('reply-m2', 'two'))
  for (const [id, artifactId] of [
    ['t1', 'a5'],
    ['t1', 'reply-m4'],
    ['t1', 'reply-t2'],
    ['t9', 'a1'],
  ] as const) {
    assert.equal(await readOne(id, artifactId), undefined, artifactId)
  }
  assert.equal(await readOne('t1', 'a1', { workspaceId: 'ws_2' }), undefined)
})

test('the first words of messages are one line of up to 120 characters; a deleted message has none', async (t) => {
  const { add, store } = await openTasks(t)
  const parts = [{ text: ' paint\n\n' }, { data: 1 }, { text: 'it ' }]
  await add({
    messages: [
      { id: 'm1', envelope: envelopeOf(parts) },
      { id: 'm2', n: 2, envelope: envelopeOf('x'.repeat(120)) },
      { id: 'm3', n: 3, envelope: envelopeOf('x'.repeat(121)) },
    ],
  })
  assert.deepEqual(
    [...(await store.read(() => readTexts(['m3', 'm1', 'm9', 'm2'])))],
    [
      ['m3', `${'x'.repeat(119)}…`],
      ['m1', 'paint it'],
      ['m2', 'x'.repeat(120)],
    ],
  )
})
