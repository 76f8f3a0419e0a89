/**
 * The ancestry of a delegation. A message that a turn sends with the token of its conversation is a child of that turn's
 * message: it gets the parent's path and limits, its id and the id of the first message. The platform finds the parent
 * by the token, so an agent cannot leave the path out, and it holds for a sender that does not wait for its answer.
 * Without it two agents that delegate to each other would go on for ever.
 */
import { MoleculeError } from '../../errors.ts'
import type { Metadata } from '../../protocol/a2a.ts'
import {
  DELEGATION_KEY,
  type DelegationEnvelope,
  type DelegationLimits,
  narrower,
  readLimits,
} from '../../protocol/delegation.ts'
import { type Envelope, traceIn, withMessageMetadata } from '../../protocol/envelope.ts'
import { depthLeft, RELAY_PATH_KEY, relayPathOf } from '../../protocol/relay-path.ts'
import type { TraceContext } from '../../protocol/trace-context.ts'
import { type Store, sql, type Transaction } from '../../store/store.ts'
import { type Budget, budgetsOfMessage, leftOf } from '../budget/budget-rows.ts'
import type { DelegatingConversation, Letter } from '../reception.ts'
import { EXPIRY_MS, IS_RUNNING, type MessageState } from '../rows/message.ts'
import type { LeaseKey } from '../worker.ts'
import { readTree, refuseDelegation, roomInTree, type TreeRow, turnsMaxOf } from './tree.ts'

/** The rows of a message that belongs to a tree. */
export interface Ancestry {
  readonly rootId: string
  readonly parentId: string | null
  /** The attempt at the parent that sends it; null where no turn does. */
  readonly parentEpoch: number | null
  readonly envelope: DelegationEnvelope
  /** Why there is no room for it in the tree. A message that was admitted before needs none. */
  readonly refusal?: { readonly reason: string; readonly tree: readonly TreeRow[] }
}

/** The message whose turn delegates. */
export interface ParentMessage {
  readonly key: LeaseKey
  readonly rootId: string
  /** Its turn runs now. Otherwise a process outlived its turn. */
  readonly isRunning: boolean
  /** The worker of the running turn. */
  readonly worker: string | null
  readonly ended: 'canceled' | 'dead' | undefined
  readonly principal: string
  readonly nowMs: number
  readonly path: readonly string[]
  readonly limits: DelegationLimits
  readonly delegation: DelegationEnvelope | undefined
  readonly trace: TraceContext | undefined
}

interface ParentRow {
  id: string
  task_id: string
  root_id: string | null
  state: MessageState
  envelope: string
  delegation: string | null
  lease_epoch: number
  worker: string | null
  principal: string
  now: number
}

const PARENT = `select m.id, m.task_id, m.root_id, m.state, m.envelope, m.delegation, c.lease_epoch, c.worker, c.principal,
    now_ms() as now
  from messages m join conversations c on c.id = m.conversation_id where m.conversation_id = $1 and m.workspace_id = $2`

const ENDED_STATES: Readonly<Partial<Record<MessageState, ParentMessage['ended']>>> = {
  dead: 'dead',
  stopping: 'canceled',
  canceled: 'canceled',
}

/** Undefined where the conversation has no message any more. */
export function findParent(store: Store, parent: DelegatingConversation): Promise<ParentMessage | undefined> {
  return store.read(() => readParent(parent))
}

function* readParent(parent: DelegatingConversation): Transaction<ParentMessage | undefined> {
  const { conversationId, workspaceId } = parent
  const values = [conversationId, workspaceId]
  const [running] = yield* sql<ParentRow>(`${PARENT} and m.${IS_RUNNING}`, values)
  // A process that outlives its turn: the last message of its conversation is the nearest to its parent.
  const [row] = running ? [running] : yield* sql<ParentRow>(`${PARENT} order by m.n desc limit 1`, values)
  if (row === undefined) return undefined
  const metadata = metadataIn(row.envelope)
  return {
    key: { workspaceId, conversationId, messageId: row.id, taskId: row.task_id, epoch: row.lease_epoch },
    rootId: row.root_id ?? row.id,
    isRunning: running !== undefined,
    worker: row.worker,
    ended: ENDED_STATES[row.state],
    principal: row.principal,
    nowMs: row.now,
    path: relayPathOf(metadata),
    limits: readLimits(metadata),
    delegation: row.delegation === null ? undefined : (JSON.parse(row.delegation) as DelegationEnvelope),
    trace: traceIn(row.envelope),
  }
}

/** A search in the text is fast; most messages have neither, and an envelope may have 8 MiB. */
function metadataIn(envelope: string): Metadata | undefined {
  if (!envelope.includes(RELAY_PATH_KEY) && !envelope.includes(DELEGATION_KEY)) return undefined
  return (JSON.parse(envelope) as { params?: { message?: { metadata?: Metadata } } }).params?.message?.metadata
}

export interface DelegatedLetter {
  readonly letter: Letter
  readonly ancestry: Ancestry | undefined
}

/** The letter as a child of the message. A path that the sender gave is replaced; limits that it gave may narrow. */
export async function toChild(store: Store, letter: Letter, parent: ParentMessage): Promise<DelegatedLetter> {
  const { key, rootId, nowMs } = parent
  if (parent.ended !== undefined) {
    const how = parent.ended === 'dead' ? 'has failed' : 'was cancelled'
    throw new MoleculeError('forbidden', `the delegation is refused: the task that delegates ${how}`)
  }
  const tree = await store.read(() => readTree(rootId))
  const path = [...parent.path, key.workspaceId]
  const given = readLimits(letter.envelope.message.metadata)
  const turnsMax = parent.delegation?.turns_max ?? turnsMaxOf(parent.limits)
  const room = roomInTree(tree, {
    parentId: key.messageId,
    turnsMax,
    limits: parent.limits,
    continues: letter.envelope.message.taskId !== undefined,
  })
  const budgets = await readBudgets(store, parent)
  const deadline = narrower(parent.limits.deadline, given.deadline)
  const leftMs = deadline === undefined ? undefined : Date.parse(deadline) - nowMs
  const isLate = leftMs !== undefined && leftMs <= 0
  const refusal = room.refusal ?? (isLate ? `its deadline ${deadline} is over` : stoppedBudget(budgets))
  const above = parent.limits.depth_left === undefined ? undefined : parent.limits.depth_left - 1
  const envelope: DelegationEnvelope = {
    root_task: parent.delegation?.root_task ?? key.taskId,
    root_caller: parent.delegation?.root_caller ?? parent.principal,
    depth_left: Math.max(0, narrower(narrower(depthLeft(path), above), given.depth_left) ?? 0),
    turns_left: Math.max(0, narrower(room.turnsLeft, given.turns_left) ?? 0),
    turns_max: turnsMax,
    ...(deadline !== undefined && { deadline }),
    ...budgetLimits(budgets, given.max_cost_usd),
  }
  return {
    letter: {
      ...letter,
      envelope: withTraceOf(withTravelled(letter.envelope, path, envelope), parent.trace),
      ...(leftMs !== undefined && { expiresInMs: Math.min(leftMs, letter.expiresInMs ?? EXPIRY_MS) }),
    },
    ancestry: {
      rootId,
      parentId: key.messageId,
      parentEpoch: key.epoch,
      envelope,
      ...(refusal !== undefined && { refusal: { reason: refusal, tree } }),
    },
  }
}

/** The budgets that cover the parent, and so also its children. Most trees have none, and then nothing is read. */
async function readBudgets(store: Store, { key, limits, delegation }: ParentMessage): Promise<readonly Budget[]> {
  if (limits.max_cost_usd === undefined && delegation?.budgets === undefined) return []
  return await store.read(() => budgetsOfMessage(key.messageId))
}

const stoppedBudget = (budgets: readonly Budget[]): string | undefined =>
  budgets.some(({ state }) => state === 'stopped') ? 'its budget is spent, and the owner stopped it' : undefined

/** The money of a child: what the budgets above it have left, and the budget that its sender gave. Without money it waits. */
export function budgetLimits(budgets: readonly Budget[], given?: number): Partial<DelegationEnvelope> {
  const left = narrower(budgets.length === 0 ? undefined : Math.min(...budgets.map(leftOf)), given)
  return {
    ...(left !== undefined && { cost_left_usd: left }),
    ...(given !== undefined && { max_cost_usd: given }),
    ...(budgets.length > 0 && { budgets: budgets.map(({ id }) => id) }),
  }
}

/** A letter whose parent is not known any more keeps only the path. */
export const toOrphan = (letter: Letter, { workspaceId }: DelegatingConversation): DelegatedLetter => ({
  letter: { ...letter, envelope: withMessageMetadata(letter.envelope, { [RELAY_PATH_KEY]: [workspaceId] }) },
  ancestry: undefined,
})

/** A message without a trace of its own belongs to the trace of its parent: many agents do not pass it on. */
export const withTraceOf = (envelope: Envelope, trace: TraceContext | undefined): Envelope =>
  envelope.trace !== undefined || trace === undefined ? envelope : { ...envelope, trace }

/** The envelope with its path and its limits. */
export const withTravelled = (envelope: Envelope, path: readonly string[], delegation: DelegationEnvelope): Envelope =>
  withMessageMetadata(envelope, {
    ...(path.length > 0 && { [RELAY_PATH_KEY]: [...path] }),
    [DELEGATION_KEY]: { ...delegation },
  })

/** Throws `forbidden` with the tree when the tree has no room for this message. */
export function requireRoom({ refusal }: Ancestry): void {
  if (refusal !== undefined) throw refuseDelegation(refusal.reason, refusal.tree)
}
