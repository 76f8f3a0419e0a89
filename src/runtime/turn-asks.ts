/**
 * The questions of one turn to a person: put through the inbox one after another, because a turn waits as a whole, and
 * answered by a directive. While one is open the stall clock stands still and the turn holds no slot. Whatever keeps a
 * question from being put or answered is a denial, never a wait without end.
 */
import type { Decision, PermissionRequest, Turn } from '../backends/backend.ts'
import type { Clock } from '../clock.ts'
import { toMoleculeError } from '../errors.ts'
import type { Inbox, Lease, LeaseStanding } from '../inbox/inbox.ts'
import type { Log } from '../log.ts'
import { abortableOr, sleep } from '../wait.ts'
import type { StallTimer } from './stall-timer.ts'

const RETRY_MS = 1000
/** What a person can be expected to judge; beyond it the answer would be bound to something nobody has read. */
const SUBJECT_CHARACTERS_MAX = 256 * 1024

export interface TurnAsks {
  readonly ask: Turn['ask']
  /** What the inbox handed out for this turn; an answer that came before, or to nothing asked, is passed over. */
  deliverAnswer(askId: string, decision: Decision): void
}

export interface TurnAskContext {
  readonly inbox: Inbox
  readonly clock: Clock
  readonly log: Log
  readonly stall: StallTimer
  readonly onStanding: (standing: LeaseStanding) => void
}

export function createTurnAsks(lease: Lease, context: TurnAskContext): TurnAsks {
  const answers = new Map<string, PromiseWithResolvers<Decision>>()
  const names = new Map<string, string>()
  let last: Promise<unknown> = Promise.resolve()
  /** Ours, because the agent's own may be of any length: the n-th question of the turn. */
  const nameOf = (id: string) => {
    const name = names.get(id) ?? String(names.size + 1)
    names.set(id, name)
    return name
  }
  const askOne = async (request: PermissionRequest, signal: AbortSignal): Promise<Decision> => {
    if (signal.aborted) return 'denied'
    const id = nameOf(request.id)
    const answer = answers.get(id) ?? Promise.withResolvers<Decision>()
    answers.set(id, answer)
    const resume = context.stall.pause()
    try {
      if (!(await storeAsk({ lease, id, request }, context, signal))) return 'denied'
      return await abortableOr(answer.promise, signal, 'denied')
    } finally {
      resume()
    }
  }
  return {
    ask(request, signal) {
      if (request.subject.length > SUBJECT_CHARACTERS_MAX) {
        context.log.warn({ messageId: lease.messageId, tool: request.tool }, 'too long to be asked about: denied')
        return Promise.resolve('denied')
      }
      const asked = last.then(() => askOne(request, signal))
      last = asked.catch(() => undefined)
      return asked
    },
    deliverAnswer: (askId, decision) => answers.get(askId)?.resolve(decision),
  }
}

/** True once the question is durable and the turn waits; an inbox that is away is asked again. */
async function storeAsk(
  { lease, id, request }: { lease: Lease; id: string; request: PermissionRequest },
  context: TurnAskContext,
  signal: AbortSignal,
): Promise<boolean> {
  const { tool, subject } = request
  // Whoever sent the task is told that it waits; what exactly would be done is for the owners.
  const parts = [{ text: `waiting for permission to use ${tool}` }]
  while (!signal.aborted) {
    try {
      const standing = await context.inbox.ask(lease, { id, parts, permission: { tool, subject } })
      if (standing === 'held') return true
      if (standing !== 'refused') context.onStanding(standing)
      else context.log.warn({ messageId: lease.messageId, tool }, 'too many turns wait already: denied')
      return false
    } catch (thrown) {
      const error = toMoleculeError(thrown)
      context.log.warn({ err: error, messageId: lease.messageId, tool }, 'a permission could not be asked for yet')
      if (!error.retryable) return false
      await sleep(context.clock, RETRY_MS, signal)
    }
  }
  return false
}
