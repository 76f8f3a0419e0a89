/**
 * One run of the model test: the real nodes, the model, and the rows as they were last read. Every step ends with
 * `conclude`: it waits until nothing is in progress, tells the model of new leases, and compares the two.
 */
import assert from 'node:assert/strict'
import { workspaceId } from '../../../src/ids.ts'
import { restoreEnvelope } from '../../../src/protocol/envelope.ts'
import { readReply } from '../../../src/protocol/stored-reply.ts'
import { type Store, sql } from '../../../src/store/store.ts'
import {
  createModel,
  current,
  type HeldLease,
  type InboxModel,
  isRunning,
  type ModelMessage,
  type ModelTask,
  nameOf,
  nameOfMessage,
  recordLease,
} from './model.ts'
import { type NodeCluster, openNodeCluster, type ReceivedDirective, type TestNode } from './node-cluster.ts'
import { checkProgress, checkRows, readRows, type StoredRows, wipe } from './rows.ts'

export interface ModelRun {
  readonly store: Store
  readonly cluster: NodeCluster
  readonly model: InboxModel
  readonly followers: Follower[]
  rows: StoredRows
}

/** A reader that started at some moment and follows until the task has a result or its node dies. */
export interface Follower {
  readonly task: ModelTask
  readonly node: TestNode
  readonly seqs: number[]
  readonly stop: AbortController
  readonly ended: Promise<void>
}

/** Two workspaces, because a change in one must not touch the other. */
const SLOTS = [1, 2]

export async function openModelRun(stores: readonly Store[]): Promise<ModelRun> {
  const store = stores[0] as Store
  await wipe(store)
  const workspaces = SLOTS.map((slots) => ({ id: workspaceId(), slots }))
  await store.write(function* () {
    for (const { id, slots } of workspaces) {
      yield* sql('insert into workspace_load (workspace_id, hosted, slots) values ($1, 0, $2)', [id, slots])
    }
  })
  const ids = workspaces.map(({ id }) => id)
  const cluster = await openNodeCluster(stores, ids)
  for (const node of cluster.nodes) cluster.join(node)
  await cluster.quiet()
  return { store, cluster, model: createModel(workspaces), followers: [], rows: await readRows(store) }
}

export async function closeModelRun({ cluster, followers }: ModelRun): Promise<void> {
  for (const { stop } of followers) stop.abort()
  await Promise.all(followers.map(({ ended }) => ended))
  await cluster.close()
}

/** Ends a step. */
export async function conclude(modelRun: ModelRun): Promise<void> {
  const { cluster, model, store } = modelRun
  await cluster.quiet()
  for (const received of cluster.receive()) applyDirective(model, received)
  const rows = await readRows(store)
  checkRows(rows)
  checkProgress(modelRun.rows, rows)
  compare(model, rows)
  checkSlots(model, rows)
  modelRun.rows = rows
}

function applyDirective(model: InboxModel, { worker, directive }: ReceivedDirective): void {
  if (directive.type === 'lease') {
    recordLease(model, directive.lease, worker)
    return
  }
  const held = model.leases.find(
    ({ lease: { messageId, epoch } }) => messageId === directive.key.messageId && epoch === directive.key.epoch,
  )
  assert.equal(held?.worker, worker, `${worker} gets directives only for turns that it holds`)
  const { message } = held
  if (directive.type === 'stop') {
    assert.ok(message.task.state === 'TASK_STATE_CANCELED')
    message.stopReceived = true
    return
  }
  assert.equal(directive.type, 'answer', 'no turn of the model delegates')
  if (directive.type !== 'answer') return
  const question = message.asks.find(({ id }) => id === directive.askId)
  if (question === undefined) return
  assert.notEqual(question.state, 'open', 'an answered ask is not open')
  assert.deepEqual(directive.parts, question.answer?.letter.envelope.message.parts)
  question.delivered = true
}

/** After its own sweep a worker has every directive for its turns, also those that another node stored. */
export function checkDirectivesReceived(model: InboxModel, worker: string | undefined): void {
  for (const { message, worker: holder } of current(model)) {
    if (holder !== worker) continue
    assert.ok(message.state !== 'stopping' || message.stopReceived, `${worker} got no stop for ${message.name}`)
    if (message.state !== 'leased') continue
    const received = message.asks.every(({ state, delivered }) => state === 'open' || delivered)
    assert.ok(received, `${worker} got no answer to its question of ${message.name}`)
  }
}

const flag = (value: boolean) => (value ? 1 : 0)

function compare(model: InboxModel, rows: StoredRows): void {
  const counts = countItems(rows)
  const seen = rows.messages.map((row) => ({
    name: nameOf(row.workspace_id, row.principal, nameOfMessage(restoreEnvelope(row.envelope).message)),
    task: row.task_id,
    state: row.state,
    begun: isRunning({ state: row.state } as ModelMessage) ? row.begun : 0,
    suspended: isRunning({ state: row.state } as ModelMessage) ? row.suspended : 0,
    counted: [row.failures, row.losses, row.interrupted],
    reply: row.reply === null ? null : readReply(row.reply, row.id).parts[0]?.text,
    events: counts.get(`${row.id} turn`) ?? 0,
    replies: counts.get(`${row.id} reply`) ?? 0,
    late: flag(counts.has(`${row.id} late`)),
  }))
  const expected = [...model.messages.values()].map((message) => ({
    name: message.name,
    task: message.task.id,
    state: message.state,
    begun: flag(isRunning(message) && message.begun),
    suspended: flag(message.suspended),
    counted: [message.failures, message.losses, flag(message.interrupted)],
    reply: message.reply,
    events: message.events,
    replies: flag(message.reply !== null),
    late: flag(message.late > 0),
  }))
  assert.deepEqual(seen.sort(byName), expected.sort(byName), 'every message is as in the model, and there is no other')
  const states = (tasks: Iterable<{ id: string; state: string }>) =>
    new Map([...tasks].map(({ id, state }) => [id, state]))
  assert.deepEqual(states(rows.tasks), states(model.tasks.values()), 'every task is as in the model')
  const held = rows.conversations.filter(({ worker }) => worker !== null).map(holding)
  assert.deepEqual(
    held.sort(),
    current(model).map(holdingOf).sort(),
    'the stored leases are those that workers received',
  )
}

const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1)
const holding = ({ id, worker, lease_epoch }: StoredRows['conversations'][number]) => `${worker} ${id} ${lease_epoch}`
const holdingOf = ({ worker, lease: given }: HeldLease) => `${worker} ${given.conversationId} ${given.epoch}`

/** The number of log items of each kind, by message. */
function countItems({ events }: StoredRows): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { message_id: messageId, items } of events) {
    for (const { t } of JSON.parse(items) as { t: string }[]) {
      counts.set(`${messageId} ${t}`, (counts.get(`${messageId} ${t}`) ?? 0) + 1)
    }
  }
  return counts
}

/** A lease needs a free slot; only a turn whose wait has ended may go over the limit. */
function checkSlots({ workspaces }: InboxModel, { loads }: StoredRows): void {
  for (const workspace of workspaces) {
    const load = loads.find(({ workspace_id }) => workspace_id === workspace.id)
    if (workspace.leased > 0) {
      assert.ok((load?.running ?? 0) <= workspace.slots + workspace.regained, 'a lease was made without a free slot')
    }
    workspace.leased = 0
    workspace.regained = 0
  }
}
