/**
 * The result of a delegation as a letter to the conversation of its parent. It belongs to the same tree, so agents that
 * answer results with new delegations reach the limits of the tree. It takes the place of the parent: it has the
 * parent's own parent, path and limits, and its answer goes where the parent's answer went.
 */
import { type Metadata, type Part, type TaskState, taskStateText } from '../../protocol/a2a.ts'
import { type DelegationEnvelope, readLimits } from '../../protocol/delegation.ts'
import { delegationFailureText } from '../../protocol/delegation-failure.ts'
import { envelopeOf, restoreEnvelope } from '../../protocol/envelope.ts'
import { textOf } from '../../protocol/part.ts'
import { relayPathOf } from '../../protocol/relay-path.ts'
import { DAMAGED, readReplyIfWhole } from '../../protocol/stored-reply.ts'
import { sql, type Transaction } from '../../store/store.ts'
import { truncate } from '../../truncate.ts'
import { budgetsOfMessage } from '../budget/budget-rows.ts'
import type { Letter } from '../reception.ts'
import { type StatusMessage, withoutDetail } from '../rows/status-message.ts'
import { type Ancestry, budgetLimits, withTraceOf, withTravelled } from './ancestry.ts'
import { readTree, turnsBelow, turnsMaxOf } from './tree.ts'
import { workspaceName } from './workspace-name.ts'

/** Names the task in the metadata of the message. */
const RESULT_KEY = 'molecule_result_of'
/** A longer task is cut in the result: the agent wrote it itself. */
const TASK_CHARACTERS_MAX = 300

interface ChildRow {
  task_id: string
  workspace_id: string
  workspace_name: string | null
  state: TaskState
  status_message: string | null
  reply: string | null
  envelope: string
}

interface ParentRow {
  id: string
  task_id: string
  workspace_id: string
  parent_id: string | null
  root_id: string | null
  parent_epoch: number | null
  delegation: string | null
  envelope: string
  reply_to: string | null
  principal: string
  context_id: string
}

const CHILD = `select m.task_id, m.workspace_id, ${workspaceName('m.workspace_id')} as workspace_name, t.state, t.status_message,
    m.reply, m.envelope from messages m join tasks t on t.id = m.task_id where m.id = $1`

const PARENT = `select p.id, p.task_id, p.workspace_id, p.parent_id, p.root_id, p.parent_epoch, p.delegation, p.envelope, p.reply_to,
    c.principal, c.context_id
  from messages m join messages p on p.id = m.parent_id join conversations c on c.id = p.conversation_id where m.id = $1`

/** Undefined where the parent is not kept any more. */
export function* readResult(childId: string): Transaction<{ letter: Letter; ancestry: Ancestry } | undefined> {
  const [child] = yield* sql<ChildRow>(CHILD, [childId])
  const [parent] = yield* sql<ParentRow>(PARENT, [childId])
  if (child === undefined || parent === undefined) return undefined
  const key = `result-${childId}`
  const { message, trace } = restoreEnvelope(parent.envelope)
  const { metadata } = message
  const delegation = yield* remainingLimits(parent, metadata)
  const letter: Letter = {
    workspaceId: parent.workspace_id,
    principal: parent.principal,
    sender: { kind: 'agent', id: child.workspace_id, name: nameOf(child), door: 'delegation' },
    envelope: withTraceOf(
      withTravelled(resultEnvelope(child, { key, contextId: parent.context_id }), relayPathOf(metadata), delegation),
      trace,
    ),
    idempotencyKey: key,
    ...(parent.reply_to !== null && { replyTo: JSON.parse(parent.reply_to) }),
  }
  const ancestry = {
    rootId: parent.root_id ?? parent.id,
    parentId: parent.parent_id,
    parentEpoch: parent.parent_epoch,
    envelope: delegation,
  }
  return { letter, ancestry }
}

/**
 * The limits of the parent, less the turns that its children have caused: a result must not renew them. A budget that
 * came with the parent stays that one budget, and the result is one more message that it covers.
 */
function* remainingLimits(parent: ParentRow, metadata: Metadata | undefined): Transaction<DelegationEnvelope> {
  const { max_cost_usd: budget, cost_left_usd: left, ...limits } = readLimits(metadata)
  const hasBudget = budget !== undefined || left !== undefined
  const money = hasBudget ? budgetLimits(yield* budgetsOfMessage(parent.id)) : {}
  if (parent.delegation === null) {
    const { turns_left: _ofTheTree, ...others } = limits
    const root = { root_task: parent.task_id, root_caller: parent.principal }
    return { ...others, ...root, turns_max: turnsMaxOf(limits), ...money }
  }
  const { max_cost_usd: _own, ...stored } = JSON.parse(parent.delegation) as DelegationEnvelope
  if (stored.turns_left === undefined) return { ...stored, ...money }
  const used = turnsBelow(yield* readTree(parent.root_id ?? parent.id), parent.id)
  return { ...stored, turns_left: Math.max(0, stored.turns_left - used), ...money }
}

const nameOf = ({ workspace_name: name, workspace_id: id }: ChildRow): string => name ?? id

function resultEnvelope(child: ChildRow, { key, contextId }: { key: string; contextId: string }) {
  const { task_id: taskId, workspace_id: workspaceId, state } = child
  const metadata = { [RESULT_KEY]: { task_id: taskId, workspace_id: workspaceId, state } }
  return envelopeOf({ messageId: key, contextId, parts: resultParts(child), metadata })
}

function resultParts(child: ChildRow): Part[] {
  const { task_id: taskId, state } = child
  const asked = textOf(restoreEnvelope(child.envelope).message.parts)
  const about = [
    `The task ${taskId} that you gave to ${nameOf(child)} is ${taskStateText(state)}.`,
    `Your task was: ${truncate(asked, TASK_CHARACTERS_MAX)}`,
  ]
  if (state === 'TASK_STATE_COMPLETED') {
    const reply = child.reply === null ? undefined : readReplyIfWhole(child.reply, taskId)
    if (child.reply !== null && reply === undefined)
      return [{ text: [...about, `Its answer is lost: ${DAMAGED}.`].join('\n') }]
    const answer = [...(reply?.parts ?? []), ...(reply?.artifacts ?? []).flatMap(({ parts }) => parts)]
    return [{ text: `${[...about, 'Its answer:'].join('\n')}\n\n` }, ...answer]
  }
  if (state === 'TASK_STATE_INPUT_REQUIRED' || state === 'TASK_STATE_AUTH_REQUIRED') {
    return [{ text: [...about, `It asks: ${statusText(child)}`].join('\n') }]
  }
  const reason = statusText(child) || taskStateText(state)
  return [{ text: [...about, delegationFailureText({ workspace: nameOf(child), reason, taskId })].join('\n') }]
}

function statusText({ status_message: stored }: ChildRow): string {
  if (stored === null) return ''
  const { parts } = withoutDetail(JSON.parse(stored) as StatusMessage)
  return textOf(parts)
}
