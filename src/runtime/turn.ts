/**
 * One turn: brief, backend, events, outcome. It always ends in exactly one outcome for the inbox, whatever the
 * backend does: a throw, a stream without an end and a cancelled signal all have theirs.
 */
import type { BackendEvent, Turn } from '../backends/backend.ts'
import type { Clock } from '../clock.ts'
import { MoleculeError, toMoleculeError } from '../errors.ts'
import {
  type Inbox,
  type Lease,
  type LeaseStanding,
  leaseId,
  type NumberedEvents,
  type Outcome,
  type Usage,
} from '../inbox/inbox.ts'
import type { Log } from '../log.ts'
import type { Artifact } from '../protocol/a2a.ts'
import type { Brief } from '../protocol/brief.ts'
import { toRequest } from '../protocol/envelope.ts'
import { mergeArtifact } from '../protocol/merge-artifact.ts'
import { joinText } from '../protocol/request.ts'
import type { BackendPool } from './backend-pool.ts'
import { outcomeOfFailure, toFailure } from './retry-policy.ts'
import { createStallTimer, type StallTimer } from './stall-timer.ts'
import { createTurnAsks, type TurnAsks } from './turn-asks.ts'
import { createTurnLog, type TurnLog } from './turn-log.ts'

export interface TurnContext {
  readonly inbox: Inbox
  readonly clock: Clock
  readonly log: Log
  readonly brief: (lease: Lease) => Promise<Brief>
  /** The workspace's backend, built on first use and kept; throws `bad_config`. */
  readonly take: BackendPool['take']
  /** Told how the lease stands whenever the inbox says so. */
  readonly onStanding: (standing: LeaseStanding) => void
  /** Told once who hears the answers to the turn's questions. */
  readonly onAnswerReceiver: (deliverAnswer: TurnAsks['deliverAnswer']) => void
}

export interface TurnEnd {
  readonly outcome: Outcome
  readonly unsent: NumberedEvents
}

const NOTHING_UNSENT: NumberedEvents = { from: 1, events: [] }

/** Runs the lease's message once. The signal ends it: what that means for the message is the caller's to say. */
export async function runTurn(lease: Lease, context: TurnContext, signal: AbortSignal): Promise<TurnEnd> {
  let brief: Brief
  let taken: ReturnType<BackendPool['take']>
  try {
    brief = await context.brief(lease)
    if (brief.parked !== undefined) return { outcome: parkedOutcome(brief.parked), unsent: NOTHING_UNSENT }
    taken = context.take(lease.workspaceId, brief)
  } catch (error) {
    return { outcome: notBegunOutcome(toMoleculeError(error, 'bad_config')), unsent: NOTHING_UNSENT }
  }
  const turnLog = openTurnLog(lease, context)
  const beganMs = context.clock.monotonicMs()
  const stall = createStallTimer(context.clock, taken.backend.stallMs)
  const stopped = stall.signal === undefined ? signal : AbortSignal.any([signal, stall.signal])
  const asks = createTurnAsks(lease, { ...context, stall })
  context.onAnswerReceiver(asks.deliverAnswer)
  const events = taken.backend.run(toTurn(lease, brief, asks.ask), stopped)
  const keep = async (note: { key: string; value: string }) => context.onStanding(await turnLog.note(note))
  const facts = await readEvents(events, { turnLog, stall, keep })
  taken.giveBack()
  const unsent = await turnLog.unsent()
  const { end, usedTool } = facts
  const used = usageOfTurn(brief, facts.usage, context.clock.monotonicMs() - beganMs)
  if (end.type === 'failed') {
    const outcome = {
      ...outcomeOfFailure({ lease, error: end.error, maxAttempts: brief.maxAttempts, usedTool }),
      ...used,
    }
    const keeps = outcome.type === 'dead' && facts.artifacts.length > 0
    return { outcome: keeps ? { ...outcome, artifacts: facts.artifacts } : outcome, unsent }
  }
  const { session, artifacts } = facts
  // What is stored already is not written again: it would be a page more to sync before the answer goes out.
  const kept = session === undefined || session === brief.sessionToken ? {} : { session }
  return { outcome: { ...end, artifacts, ...used, ...kept }, unsent }
}

/** Without brief or backend there is no turn: a store that is away gives the message back, anything else is final. */
function notBegunOutcome(error: MoleculeError): Outcome {
  return error.retryable ? { type: 'released', interrupted: false } : { type: 'dead', failure: toFailure(error) }
}

/** For a turn that is paid for, its time at least; for another only what it said by itself. */
function usageOfTurn(brief: Brief, usage: Usage | undefined, durationMs: number): { usage?: Usage } {
  return usage === undefined && brief.metered !== true ? {} : { usage: { ...usage, durationMs } }
}

/** Nothing was begun: the message goes back, to be looked at again when there is room. */
function parkedOutcome({ afterMs, reason }: NonNullable<Brief['parked']>): Outcome {
  return { type: 'released', interrupted: false, parked: { afterMs, said: { parts: [{ text: reason }] } } }
}

function openTurnLog(lease: Lease, { inbox, clock, log, onStanding }: TurnContext): TurnLog {
  const onError = (error: unknown) =>
    log.warn({ err: toMoleculeError(error), messageId: lease.messageId }, 'events of a turn could not be stored yet')
  return createTurnLog({ inbox, key: lease, clock, onStanding, onError })
}

type EndEvent = BackendEvent & { type: 'done' | 'failed' }

interface TurnFacts {
  end: EndEvent | undefined
  session?: string
  usage?: Usage
  usedTool: boolean
  artifacts: Artifact[]
}

/** Listens to the backend until its one end; what comes after the end is not listened to. */
async function readEvents(
  events: AsyncIterable<BackendEvent>,
  {
    turnLog,
    stall,
    keep,
  }: { turnLog: TurnLog; stall: StallTimer; keep: (note: { key: string; value: string }) => Promise<void> },
): Promise<TurnFacts & { end: EndEvent }> {
  const facts: TurnFacts = { end: undefined, usedTool: false, artifacts: [] }
  try {
    for await (const event of events) {
      stall.reset()
      if (event.type === 'done' || event.type === 'failed') {
        facts.end = event
        break
      }
      recordEvent(facts, event)
      if (event.type === 'note') await keep(event)
      if (event.type === 'text' || event.type === 'tool' || event.type === 'artifact' || event.type === 'status') {
        turnLog.add(event)
      }
    }
  } catch (error) {
    facts.end = { type: 'failed', error: toMoleculeError(error) }
  }
  stall.end()
  const end = facts.end ?? { type: 'failed', error: noEndError() }
  return { ...facts, end: end.type === 'failed' && stall.error !== undefined ? { ...end, error: stall.error } : end }
}

const noEndError = () => new MoleculeError('no_end', 'the agent stopped without an answer', { retryable: true })

function recordEvent(facts: TurnFacts, event: BackendEvent): void {
  if (event.type === 'session') facts.session = event.token
  if (event.type === 'tool') facts.usedTool = true
  if (event.type === 'artifact') facts.artifacts = mergeArtifact(facts.artifacts, event)
  if (event.type === 'usage') {
    const { type: _, ...usage } = event
    facts.usage = usage
  }
}

/** For a model agent whose earlier attempt broke off: it must look before it does things again. */
const INTERRUPTED_LINE =
  'Note: an earlier attempt at this message was interrupted. Check what is already done before you do it again.'

function toTurn(lease: Lease, brief: Brief, ask: Turn['ask']): Turn {
  const { workspaceId, taskId, contextId, idempotencyKey, sender, envelope } = lease
  const callerId = sender.kind === 'agent' ? sender.id : ''
  const request = toRequest({ workspaceId, callerId, taskId, contextId, idempotencyKey, sender, envelope })
  const text = joinText(request.parts)
  return {
    id: leaseId(lease),
    messageId: lease.messageId,
    conversationId: lease.conversationId,
    request,
    prompt: lease.interrupted ? `${INTERRUPTED_LINE}\n\n${text}` : text,
    systemPrompt: brief.systemPrompt,
    workingDir: brief.workingDir,
    mcpServers: [],
    ask,
    notes: brief.notes ?? {},
    // As OpenTelemetry's own tools look for it in a child.
    env: envelope.traceparent === undefined ? brief.env : { ...brief.env, TRACEPARENT: envelope.traceparent },
    ...(brief.sessionToken !== undefined && { sessionToken: brief.sessionToken }),
    ...(brief.history !== undefined && { history: brief.history }),
    ...(brief.model !== undefined && { model: brief.model }),
  }
}
