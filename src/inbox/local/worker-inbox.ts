/** The worker side of the local inbox: `Inbox` for workers of this process. Bridges use it too, for their workers elsewhere. */
import type { Transaction } from '../../store/store.ts'
import { append, begin, extend } from '../commands/append.ts'
import { type AskOutput, ask } from '../commands/ask.ts'
import { maskAsk, maskEvents } from '../commands/mask-turn.ts'
import { resume, suspend } from '../commands/suspend.ts'
import {
  type Directive,
  type Inbox,
  type LeaseKey,
  type LeaseStanding,
  leaseId,
  type RenewedStanding,
  type Worker,
} from '../worker.ts'
import type { InboxContext } from './context.ts'
import { accepting, fillQueue, letGo, releaseLease, sendDirective, sendNext, settleTurn } from './directives.ts'

export function createWorkerInbox(context: InboxContext): Inbox {
  const { store, keepSession } = context
  return {
    leases: (worker, signal) => takeDirectives(context, worker, signal),
    begin: (key, text) => report(context, key, () => begin(key, text)),
    extend: (keys) =>
      Promise.all(
        keys.map(async (key) => letGoIfStale(context, key, await store.write(() => extend(key), key.workspaceId))),
      ),
    append: (key, events) => report(context, key, () => append(key, maskEvents(events))),
    settle: (key, outcome, unsent) => settleTurn(context, key, { outcome, unsent, keepSession }),
    suspend: (key) => suspendTurn(context, key, () => suspend(key, accepting(context, key))),
    resume: (key) => store.write(() => resume(key), key.workspaceId),
    ask: (key, question) => suspendTurn(context, key, () => ask(key, maskAsk(question), accepting(context, key))),
  }
}

async function* takeDirectives(context: InboxContext, worker: Worker, signal: AbortSignal): AsyncIterable<Directive> {
  const { workerQueues } = context
  const queue = workerQueues.open(worker)
  try {
    await fillQueue(context, queue)
    for (let directive = await queue.take(signal); directive; directive = await queue.take(signal)) yield directive
  } finally {
    workerQueues.close(queue)
    for (const directive of queue.clear()) if (directive.type === 'lease') releaseLease(context, directive.lease)
  }
}

async function report(
  context: InboxContext,
  key: LeaseKey,
  transaction: () => Transaction<LeaseStanding>,
): Promise<LeaseStanding> {
  const standing = letGoIfStale(context, key, await context.store.write(transaction, key.workspaceId))
  context.changed(key.workspaceId, key.taskId)
  return standing
}

/** A stale lease is no longer held here, and its worker may never settle it. */
function letGoIfStale<S extends RenewedStanding>(context: InboxContext, key: LeaseKey, standing: S): S {
  if (standing === 'stale') letGo(context, key)
  return standing
}

async function suspendTurn(
  context: InboxContext,
  key: LeaseKey,
  transaction: () => Transaction<AskOutput>,
): Promise<AskOutput['answer']> {
  const { answer, next, answered } = await context.store.write(transaction, key.workspaceId)
  // A waiting turn takes none of its worker's capacity; the lease that got its slot does.
  if (answer === 'held' && answered === undefined) context.workerQueues.forget(leaseId(key))
  context.changed(key.workspaceId, key.taskId)
  sendNext(context, next)
  if (answered !== undefined) sendDirective(context, answered)
  return answer
}
