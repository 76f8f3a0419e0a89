/**
 * An owner answers a permission ask. The answer is bound to exactly one ask and counts once; its turn goes on. "Always allow"
 * also makes a rule, which allows the other open asks that it covers.
 */
import { MoleculeError } from '../../errors.ts'
import { sql, type Transaction, together } from '../../store/store.ts'
import type { Answerer, AskDecision, Rule, RuleChoice } from '../owners.ts'
import { type AskKey, type AskState, askStateOf } from '../rows/ask.ts'
import { lockWorkspace } from '../rows/lock-workspace.ts'
import { recordChange } from '../rows/log.ts'
import { coversUse } from '../rules/rule-pattern.ts'
import { answererOfRule, findRule, insertRule } from '../rules/rules.ts'
import { closeAsk, findOpenAsk, findOpenAsksFor, type OpenAsk } from './ask.ts'

const BY_KEY = 'from asks where message_id = $1 and epoch = $2 and id = $3 and tool is not null'

export interface StoredAsk {
  readonly workspaceId: string
  readonly tool: string
  readonly subject: string
}

/** A permission ask in any state. */
export function* findStoredAsk({ messageId, epoch, id }: AskKey): Transaction<StoredAsk | undefined> {
  const [row] = yield* sql<{ workspace_id: string; tool: string; subject: string }>(
    `select workspace_id, tool, subject ${BY_KEY}`,
    [messageId, epoch, id],
  )
  return row && { workspaceId: row.workspace_id, tool: row.tool, subject: row.subject }
}

/** The ask that this call answered; undefined when the same decision was made before. */
export function* answerPendingAsk(
  askKey: AskKey,
  { workspaceId, decision, answerer }: { workspaceId: string; decision: AskDecision; answerer: Answerer },
): Transaction<OpenAsk | undefined> {
  yield* together([lockWorkspace(workspaceId)])
  const open = yield* findOpenAsk(askKey)
  if (open !== undefined && (yield* closeAsk(open, { decision, answerer }))) return open
  const { messageId, epoch, id } = askKey
  const [row] = yield* sql<{ state: AskState }>(`select state ${BY_KEY}`, [messageId, epoch, id])
  if (row?.state === askStateOf(decision)) return undefined
  throw new MoleculeError(
    'unsupported_operation',
    REFUSALS[row?.state ?? 'void'] ?? 'no turn waits for this answer any more',
  )
}

/** Allows the ask, makes the rule, and allows the other open asks that the rule covers. */
export function* allowByNewRule(
  askKey: AskKey,
  { workspaceId, choice, answerer }: { workspaceId: string; choice: RuleChoice; answerer: Answerer },
): Transaction<{ rule: Rule; allowed: readonly OpenAsk[] }> {
  const open = yield* answerPendingAsk(askKey, { workspaceId, decision: 'allowed', answerer })
  const known = yield* findRule(workspaceId, choice)
  if (known === undefined && open === undefined) {
    throw new MoleculeError('unsupported_operation', 'this was allowed already, and no rule was made of it')
  }
  if (known !== undefined) return { rule: known, allowed: open === undefined ? [] : [open] }
  const rule = yield* insertRule(workspaceId, choice, answerer)
  const { tool, pattern } = rule
  const { taskId, messageId } = open?.key ?? {}
  const entry = { ...(taskId && { taskId }), ...(messageId && { messageId }) }
  const items = [{ t: 'rule', change: 'made', tool, pattern, answerer } as const]
  yield* together(recordChange({ workspaceId, entries: [{ ...entry, items }] }))
  const allowed = open === undefined ? [] : [open]
  for (const other of yield* findOpenAsksFor(workspaceId, tool)) {
    if (!coversUse(rule, { tool, subject: other.subject ?? '' })) continue
    if (yield* closeAsk(other, { decision: 'allowed', answerer: answererOfRule(rule), rule })) allowed.push(other)
  }
  return { rule, allowed }
}

const REFUSALS: Readonly<Partial<Record<AskState, string>>> = {
  answered: 'this was allowed already',
  denied: 'this was denied already, or not answered in time',
}
