/**
 * The asks of one turn: stored in the inbox one after another, because a turn waits as a whole, and answered by a
 * directive. While an ask is open, the stall timer is paused and the turn gives up its slot.
 * Invariant: an ask that cannot be stored or answered is denied; no turn waits for ever.
 */
import type { Decision, PermissionRequest, Turn } from '../backends/backend.ts'
import type { Clock } from '../clock.ts'
import { toMoleculeError } from '../errors.ts'
import type { Inbox, Lease, LeaseStanding } from '../inbox/worker.ts'
import type { Log } from '../log.ts'
import { abortableOr, sleep } from '../wait.ts'
import type { StallTimer } from './stall-timer.ts'

const RETRY_MS = 1000
/** A longer subject is denied, because a person would decide about a text that they have not read. */
const SUBJECT_CHARACTERS_MAX = 256 * 1024

export interface TurnAsks {
  readonly ask: Turn['ask']
  /** Takes an answer directive for this turn. A repeated answer, or one to an unknown ask, is ignored. */
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
  const askIds = new Map<string, string>()
  let last: Promise<unknown> = Promise.resolve()
  /** Our own id, the number of the ask in its turn, because the agent's id may have any length. */
  const askIdOf = (requestId: string) => {
    const id = askIds.get(requestId) ?? String(askIds.size + 1)
    askIds.set(requestId, id)
    return id
  }
  const askOne = async (request: PermissionRequest, signal: AbortSignal): Promise<Decision> => {
    if (signal.aborted) return 'denied'
    const id = askIdOf(request.id)
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
        context.log.warn(
          { messageId: lease.messageId, tool: request.tool },
          'denied a permission: its subject is too long to be shown',
        )
        return Promise.resolve('denied')
      }
      const asked = last.then(() => askOne(request, signal))
      last = asked.catch(() => undefined)
      return asked
    },
    deliverAnswer: (askId, decision) => answers.get(askId)?.resolve(decision),
  }
}

/** Resolves to true once the ask is durable and the turn is suspended. Retries while the inbox cannot be reached. */
async function storeAsk(
  { lease, id, request }: { lease: Lease; id: string; request: PermissionRequest },
  context: TurnAskContext,
  signal: AbortSignal,
): Promise<boolean> {
  const { tool, subject } = request
  // The sender of the task sees only that it waits; the owners see the subject.
  const parts = [{ text: `waiting for permission to use ${tool}` }]
  while (!signal.aborted) {
    try {
      const standing = await context.inbox.ask(lease, { kind: 'permission', id, parts, tool, subject })
      if (standing === 'held') return true
      if (standing !== 'refused') context.onStanding(standing)
      else
        context.log.warn(
          { messageId: lease.messageId, tool },
          'denied a permission: too many turns already wait for one',
        )
      return false
    } catch (thrown) {
      const error = toMoleculeError(thrown)
      context.log.warn({ err: error, messageId: lease.messageId, tool }, 'could not ask for a permission')
      if (!error.retryable) return false
      await sleep(context.clock, RETRY_MS, signal)
    }
  }
  return false
}
