/**
 * Answers of owners to the permissions that running turns ask for (listed by `views/pending-asks.ts`).
 * An answer is bound to exactly one ask, counts once, and goes to the turn that waits for it. "Always allow" also makes
 * a rule (`rules.ts`). The sweep denies asks that time out.
 */
import { MoleculeError } from '../../errors.ts'
import { sql, type Transaction, together } from '../../store/store.ts'
import { closeAsk, findOpenAsk, findOpenAsksFor, type OpenAsk } from '../commands/ask.ts'
import type { Answerer, AskDecision, PendingAsks, Rule, RuleChoice } from '../owners.ts'
import { type AskKey, type AskState, askStateOf, parseAskId } from '../rows/ask.ts'
import { lockWorkspace } from '../rows/lock-workspace.ts'
import { recordChange } from '../rows/log.ts'
import { choiceOf, coversUse } from '../rules/rule-pattern.ts'
import { answererOfRule, findRule, insertRule } from '../rules/rules.ts'
import type { InboxContext } from './context.ts'
import { sendDirective } from './directives.ts'

export function createPendingAsks(context: InboxContext): PendingAsks {
  const { store } = context
  const findAsk = async (id: string): Promise<{ askKey: AskKey; stored: StoredAsk }> => {
    const askKey = parseAskId(id)
    const stored = askKey && (await store.read(() => findStored(askKey)))
    if (askKey === undefined || stored === undefined) throw unknownAsk(id)
    return { askKey, stored }
  }
  const sendAnswer = ({ id, key, worker }: OpenAsk, decision: AskDecision) => {
    context.changed(key.workspaceId, key.taskId)
    const parts = decision === 'allowed' ? [] : undefined
    sendDirective(context, { worker, directive: { type: 'answer', key, askId: id, parts } })
  }
  return {
    async answer(id, decision, answerer) {
      const { askKey, stored } = await findAsk(id)
      const { workspaceId } = stored
      const open = await store.write(() => answerPendingAsk(askKey, { workspaceId, decision, answerer }), workspaceId)
      if (open !== undefined) sendAnswer(open, decision)
    },
    async allowAlways(id, answerer, pattern) {
      const { askKey, stored } = await findAsk(id)
      const choice = choiceOf(stored, pattern ?? stored.subject)
      if (choice === undefined) throw noRule(stored, pattern)
      const { workspaceId } = stored
      const { rule, allowed } = await store.write(
        () => allowByNewRule(askKey, { workspaceId, choice, answerer }),
        workspaceId,
      )
      for (const open of allowed) sendAnswer(open, 'allowed')
      return rule
    },
  }
}

const BY_KEY = 'from asks where message_id = $1 and epoch = $2 and id = $3 and tool is not null'

interface StoredAsk {
  readonly workspaceId: string
  readonly tool: string
  readonly subject: string
}

function* findStored({ messageId, epoch, id }: AskKey): Transaction<StoredAsk | undefined> {
  const [row] = yield* sql<{ workspace_id: string; tool: string; subject: string }>(
    `select workspace_id, tool, subject ${BY_KEY}`,
    [messageId, epoch, id],
  )
  return row && { workspaceId: row.workspace_id, tool: row.tool, subject: row.subject }
}

/** The ask that this call answered; undefined when the same decision was made before. */
function* answerPendingAsk(
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
function* allowByNewRule(
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

function noRule({ subject }: StoredAsk, pattern: string | undefined): MoleculeError {
  const message =
    pattern === undefined || pattern === subject
      ? 'no rule can be made of this: the agent does not say exactly what it would do, or the text is too long; allow it once'
      : 'this pattern does not cover what the agent asks for, or covers too much; use a pattern that the pending ask shows'
  return new MoleculeError('invalid_request', message, { details: { path: 'pattern' } })
}

const REFUSALS: Readonly<Partial<Record<AskState, string>>> = {
  answered: 'this was allowed already',
  denied: 'this was denied already, or not answered in time',
}

const unknownAsk = (id: string): MoleculeError =>
  new MoleculeError('not_found', `nothing with the id ${JSON.stringify(id.slice(0, 200))} waits for an answer`)
