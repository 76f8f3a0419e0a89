import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { countingContext } from '../../../test/fakes/inbox-context.ts'
import { type LetterOptions, letterTo } from '../../../test/fakes/letters.ts'
import { soon } from '../../../test/fakes/manual-clock.ts'
import { NOON_MS, openStoredRows } from '../../../test/fakes/stored-rows.ts'
import type { Checkpoint, Directive, Letter } from '../inbox.ts'
import type { TaskResult } from '../settle/task-state.ts'
import { createReception, type ReceptionOptions } from './reception.ts'

const WORKER = { id: 'here.1', workspaces: 'hosted' as const }
const NEVER = new AbortController().signal
const MINUTE_MS = 60_000

async function openReception(t: TestContext) {
  const rows = await openStoredRows(t)
  const counting = countingContext(rows)
  await rows.add({
    workspaces: [{ id: 'ws_1' }],
    workspace_load: [{ workspace_id: 'ws_1', slots: 5 }],
  })
  const checkpoints: Checkpoint[] = []
  const changed: unknown[] = []
  const sent: { worker: string; type: Directive['type'] }[] = []
  const looked: string[] = []
  const context: typeof counting = {
    ...counting,
    onCheckpoint: (checkpoint) => checkpoints.push(checkpoint),
    changed(workspaceId, taskId, result) {
      changed.push([workspaceId, taskId])
      counting.changed(workspaceId, taskId, result)
    },
  }
  const options: ReceptionOptions = {
    sendDirective: (worker, { type }) => sent.push({ worker, type }),
    look: () => looked.push('queue'),
    delegations: {} as ReceptionOptions['delegations'],
    children: { lookAfter: async () => void looked.push('children') },
  }
  const reception = createReception(context, options)
  const letter = (given: LetterOptions = {}): Letter => letterTo('ws_1', given)
  const setTask = (id: string, values: string) => rows.sql(`update tasks set ${values} where id = $1`, id)
  return { ...rows, context, reception, letter, setTask, checkpoints, changed, sent, looked }
}

/** Waits some turns of the event loop for a write, and one more for what follows it. */
async function settleUntil(clock: { settle(): Promise<void> }, happened: () => boolean): Promise<void> {
  for (let turns = 0; turns < 100 && !happened(); turns++) await clock.settle()
  await clock.settle()
}

/** The value of a promise that must be settled by now; 'waits' for one that is not. */
async function settledValue<T>(promise: Promise<T>, clock: { settle(): Promise<void> }): Promise<T | 'waits'> {
  await clock.settle()
  await clock.settle()
  return await Promise.race([promise, Promise.resolve('waits' as const)])
}

test('IN-1 an admitted message is announced once, and goes to a worker that waits; a duplicate is not announced', async (t) => {
  const { reception, letter, context, checkpoints, changed, sent } = await openReception(t)
  context.workerQueues.open(WORKER)
  const given = letter()
  const { taskId, duplicate } = await reception.admit(given)
  assert.equal(duplicate, false)
  assert.deepEqual([checkpoints, changed], [['admitted'], [['ws_1', taskId]]])
  assert.deepEqual(sent, [{ worker: 'here.1', type: 'lease' }])
  assert.deepEqual(await reception.admit(given), {
    taskId,
    contextId: (await reception.task(taskId))?.contextId,
    duplicate: true,
  })
  assert.deepEqual([checkpoints.length, changed.length, sent.length], [2, 1, 1])
})

test('TW-3 a message that the platform admits into a tree is announced, and goes to a worker that waits', async (t) => {
  const { reception, letter, context, checkpoints, changed, sent, add, sql } = await openReception(t)
  context.workerQueues.open(WORKER)
  await add({ tasks: [{ id: 'r' }], messages: [{ id: 'r', conversation_id: 'cr', settled_at: NOON_MS }] })
  const envelope = { root_task: 'r', root_caller: 'people', turns_max: 50 }
  await reception.admitInTree(letter(), { parentId: null, rootId: 'r', parentEpoch: null, envelope })
  const [child] = await sql(`select id from messages where root_id = 'r'`)
  assert.deepEqual([checkpoints, changed], [['admitted'], [['ws_1', child?.['id']]]])
  assert.deepEqual(sent, [{ worker: 'here.1', type: 'lease' }])
})

test('PL-23 other callers run after the commit of a large message, and not after that of a small one', async (t) => {
  const opened = await openReception(t)
  let ranBetween: boolean | undefined
  let hasRun = false
  const { store } = opened.context
  const context = {
    ...opened.context,
    store: {
      ...store,
      write: <T>(...given: Parameters<typeof store.write<T>>) =>
        store.write(...given).then((value) => {
          hasRun = false
          setImmediate(() => {
            hasRun = true
          })
          return value
        }),
    },
    onCheckpoint: () => {
      ranBetween = hasRun
    },
  }
  const reception = createReception(context, {} as ReceptionOptions)
  await reception.admit({ ...opened.letter(), bytes: 256 * 1024 })
  assert.equal(ranBetween, false)
  await reception.admit({ ...opened.letter(), bytes: 256 * 1024 + 1 })
  assert.equal(ranBetween, true)
})

test('IN-7 a caller whose message a worker took gets the result without reading the store', async (t) => {
  const { reception, letter, context, clock, checkpoints, changed, sent } = await openReception(t)
  context.workerQueues.open(WORKER)
  const admitted: unknown[] = []
  const onAdmitted = async (each: unknown) => void admitted.push(each)
  const task = reception.send(letter({ messageId: 'sent' }), { maxMs: MINUTE_MS, onAdmitted }, NEVER)
  await settleUntil(clock, () => sent.length > 0)
  const [[, taskId] = []] = changed as [string, string][]
  assert.deepEqual([checkpoints, sent.length, admitted.length, context.watching()], [['admitted'], 1, 1, 1])
  const result: TaskResult = {
    state: 'TASK_STATE_COMPLETED',
    atMs: NOON_MS,
    reply: { parts: [{ text: 'hello' }], artifacts: [] },
  }
  context.watchers.changed(taskId ?? '', result)
  const { status, artifacts, history } = await soon(task)
  assert.deepEqual(status, { state: 'TASK_STATE_COMPLETED', timestamp: new Date(NOON_MS).toISOString() })
  assert.deepEqual(artifacts, [{ artifactId: `reply-${taskId}`, parts: [{ text: 'hello' }] }])
  assert.equal(history?.[0]?.messageId, 'sent')
  assert.deepEqual([context.reads(), context.watching()], [0, 0])
})

test('IN-7 a caller whose message a worker took reads the task after a change without a result', async (t) => {
  const { reception, letter, context, clock, changed, sent, setTask } = await openReception(t)
  context.workerQueues.open(WORKER)
  const sending = reception.send(letter(), { maxMs: MINUTE_MS }, NEVER)
  await settleUntil(clock, () => sent.length > 0)
  const [[, taskId = ''] = []] = changed as [string, string][]
  await setTask(taskId, `state = 'TASK_STATE_COMPLETED'`)
  // Another process settled it.
  context.watchers.changedElsewhere()
  assert.equal((await soon(sending)).status.state, 'TASK_STATE_COMPLETED')
})

test('IN-7 a caller whose message waits in the queue reads the task again after each change', async (t) => {
  const { reception, letter, context, clock, changed, setTask } = await openReception(t)
  const sending = reception.send(letter(), { maxMs: MINUTE_MS }, NEVER)
  await settleUntil(clock, () => changed.length > 0)
  const [[, taskId = ''] = []] = changed as [string, string][]
  assert.equal(await settledValue(sending, clock), 'waits')
  await setTask(taskId, `state = 'TASK_STATE_WORKING'`)
  context.watchers.changed(taskId)
  assert.equal(await settledValue(sending, clock), 'waits')
  await setTask(taskId, `state = 'TASK_STATE_INPUT_REQUIRED'`)
  context.watchers.changed(taskId)
  assert.equal((await soon(sending)).status.state, 'TASK_STATE_INPUT_REQUIRED')
  assert.equal(context.watching(), 0)
})

test('IN-7 a wait ends with the result, at its time, on abort, or when the task is gone', async (t) => {
  const { reception, context, clock, add, setTask, sql } = await openReception(t)
  await add({ tasks: [{ id: 't1', state: 'TASK_STATE_WORKING' }, { id: 't2' }] })
  const stateOf = async (promise: Promise<{ status: { state: string } } | undefined>) => {
    const value = await settledValue(promise, clock)
    return value === 'waits' || value === undefined ? value : value.status.state
  }
  assert.equal(await stateOf(reception.waitForResult('t2', MINUTE_MS, NEVER)), 'TASK_STATE_COMPLETED')
  assert.equal(await stateOf(reception.waitForResult('t9', MINUTE_MS, NEVER)), undefined)
  const timed = reception.waitForResult('t1', 3000, NEVER)
  clock.advance(2999)
  context.watchers.changed('t1')
  assert.equal(await stateOf(timed), 'waits')
  clock.advance(1)
  assert.equal(await stateOf(timed), 'TASK_STATE_WORKING')
  assert.equal(await stateOf(reception.waitForResult('t1', 0, NEVER)), 'TASK_STATE_WORKING')
  // A missed wake-up delays a reader by 5 s.
  const missed = reception.waitForResult('t1', MINUTE_MS, NEVER)
  assert.equal(await stateOf(missed), 'waits')
  await setTask('t1', `state = 'TASK_STATE_FAILED'`)
  clock.advance(4999)
  assert.equal(await stateOf(missed), 'waits')
  clock.advance(1)
  assert.equal(await stateOf(missed), 'TASK_STATE_FAILED')
  await setTask('t1', `state = 'TASK_STATE_WORKING'`)
  const gone = reception.waitForResult('t1', MINUTE_MS, NEVER)
  assert.equal(await stateOf(gone), 'waits')
  await sql(`delete from tasks where id = 't1'`)
  context.watchers.changed('t1')
  assert.equal(await stateOf(gone), undefined)
  assert.equal(context.watching(), 0)
})

test('IN-7 a wait ends on abort with the task as it is', async (t) => {
  const { reception, context, clock, add } = await openReception(t)
  await add({ tasks: [{ id: 't1', state: 'TASK_STATE_WORKING' }] })
  const stop = new AbortController()
  const aborted = reception.waitForResult('t1', MINUTE_MS, stop.signal)
  assert.equal(await settledValue(aborted, clock), 'waits')
  stop.abort()
  assert.equal((await soon(aborted))?.status.state, 'TASK_STATE_WORKING')
  assert.equal(context.watching(), 0)
})

test('IN-7 PL-2 a caller of a paused workspace is answered at once with the reason, unless a turn of its task runs', async (t) => {
  const { reception, context, clock, add, sql, setTask } = await openReception(t)
  await sql('update workspace_load set paused = 1')
  await add({
    tasks: [{ id: 't1', state: 'TASK_STATE_WORKING' }],
    messages: [
      { id: 't1', state: 'queued' },
      { id: 'm2', n: 2, task_id: 't1', state: 'queued' },
      { id: 'x1', conversation_id: 'c2', state: 'leased' },
    ],
  })
  const said = async () => {
    const task = await settledValue(reception.waitForResult('t1', MINUTE_MS, NEVER), clock)
    return task === 'waits' ? task : task?.status.message?.parts[0]?.text
  }
  assert.equal(await said(), 'waiting: the workspace is paused')
  await setTask('t1', `status_message = '{"parts":[{"text":"it broke, next try soon"}]}'`)
  assert.equal(await said(), 'it broke, next try soon')
  for (const id of ['t1', 'm2']) {
    await sql(`update messages set state = 'leased' where id = $1`, id)
    assert.equal(await said(), 'waits', id)
    await sql(`update messages set state = 'queued' where id = $1`, id)
  }
  await sql('update workspace_load set paused = 0')
  assert.equal(await said(), 'waits')
  assert.equal(context.watching(), 3)
})

test('IN-8 a cancel tells readers, the worker, the queue and the children, and gives the task back', async (t) => {
  const { reception, letter, context, changed, looked } = await openReception(t)
  const queue = context.workerQueues.open(WORKER)
  const { taskId } = await reception.admit(letter())
  changed.length = 0
  assert.equal((await reception.cancel(taskId)).status.state, 'TASK_STATE_CANCELED')
  assert.deepEqual([changed, looked], [[['ws_1', taskId]], ['queue', 'children']])
  const [stop] = queue.clear()
  assert.deepEqual([stop?.type, stop?.type === 'stop' && stop.key.taskId], ['stop', taskId])
  await assert.rejects(reception.cancel('t9'), { code: 'not_found' })
})
