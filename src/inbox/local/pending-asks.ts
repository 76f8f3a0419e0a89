/**
 * The owners' answers to the permissions that running turns ask for (`src/views/needs/` lists them). An answer goes to the
 * turn that waits for it. The sweep denies asks that time out.
 */
import { MoleculeError } from '../../errors.ts'
import { allowByNewRule, answerPendingAsk, findStoredAsk, type StoredAsk } from '../commands/answer-ask.ts'
import type { OpenAsk } from '../commands/ask.ts'
import type { AskDecision, PendingAsks } from '../owners.ts'
import { type AskKey, parseAskId } from '../rows/ask.ts'
import { choiceOf } from '../rules/rule-pattern.ts'
import type { InboxContext } from './context.ts'
import { sendDirective } from './directives.ts'

export function createPendingAsks(context: InboxContext): PendingAsks {
  const { store } = context
  const findAsk = async (id: string): Promise<{ askKey: AskKey; stored: StoredAsk }> => {
    const askKey = parseAskId(id)
    const stored = askKey && (await store.read(() => findStoredAsk(askKey)))
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

function noRule({ subject }: StoredAsk, pattern: string | undefined): MoleculeError {
  const message =
    pattern === undefined || pattern === subject
      ? 'no rule can be made of this: the agent does not say exactly what it would do, or the text is too long; allow it once'
      : 'this pattern does not cover what the agent asks for, or covers too much; use a pattern that the pending ask shows'
  return new MoleculeError('invalid_request', message, { details: { path: 'pattern' } })
}

const unknownAsk = (id: string): MoleculeError =>
  new MoleculeError('not_found', `nothing with the id ${JSON.stringify(id.slice(0, 200))} waits for an answer`)
