/**
 * Runs one turn: brief, backend, events, outcome. Invariant: it ends in exactly one outcome, whatever the backend does:
 * a throw, a stream without an end, an abort.
 */
import type { BackendEvent, McpHttpServer, Turn } from '../backends/backend.ts'
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
} from '../inbox/worker.ts'
import type { Log } from '../log.ts'
import type { Artifact } from '../protocol/a2a.ts'
import type { Brief } from '../protocol/brief.ts'
import { partsWithOrigin } from '../protocol/chat/from-chat.ts'
import { silenceInstruction } from '../protocol/chat/may-be-silent.ts'
import { toRequest } from '../protocol/envelope.ts'
import { mergeArtifact } from '../protocol/merge-artifact.ts'
import { textOf } from '../protocol/part.ts'
import { traceVariables } from '../protocol/trace-context.ts'
import type { BackendPool } from './backend-pool.ts'
import type { HandlerHealth } from './handler-health.ts'
import { exhaustedOutcome, outcomeOfFailure, toFailure } from './retry-policy.ts'
import { createStallTimer, type StallTimer } from './stall-timer.ts'
import { createTurnAsks, type TurnAsks } from './turn-asks.ts'
import { createTurnLog, type TurnLog } from './turn-log.ts'
import { createTurnWaits, type TurnWaits } from './turn-waits.ts'

export interface TurnContext {
  readonly inbox: Inbox
  readonly clock: Clock
  readonly log: Log
  readonly brief: (lease: Lease) => Promise<Brief>
  /** The workspace's backend, built on first use and kept. Throws `bad_config`. */
  readonly take: BackendPool['take']
  /** Called with the standing of the lease after each call to the inbox. */
  readonly onStanding: (standing: LeaseStanding) => void
  /** Called once, when the backend starts. */
  readonly onBegun: (controls: TurnControls) => void
  /** On a bridge. */
  readonly handler?: Pick<HandlerHealth, 'began' | 'outcomeOf' | 'mayBeAtFault'> | undefined
  /** True from the begin of the drain. */
  readonly isShuttingDown: () => boolean
}

/** Takes what the inbox sends to a running turn: answers to its asks, the begin and the end of its waits. */
export type TurnControls = Pick<TurnAsks, 'deliverAnswer'> & Pick<TurnWaits, 'setWaiting'>

export interface TurnEnd {
  readonly outcome: Outcome
  readonly unsent: NumberedEvents
  /** `Backend.limits` after the turn; absent if the turn did not begin or its backend has none to tell. */
  readonly limits?: readonly string[]
}

const NOTHING_UNSENT: NumberedEvents = { from: 1, events: [] }

/** Runs the lease's message once. The signal stops the turn; the caller decides what that means for the message. */
export async function runTurn(lease: Lease, context: TurnContext, signal: AbortSignal): Promise<TurnEnd> {
  context.handler?.began(lease)
  let brief: Brief
  let taken: ReturnType<BackendPool['take']>
  try {
    brief = await context.brief(lease)
    if (brief.parked !== undefined) return { outcome: parkedOutcome(brief.parked), unsent: NOTHING_UNSENT }
    taken = context.take(lease.workspaceId, brief)
  } catch (error) {
    const reason = toMoleculeError(error, 'bad_config')
    const outcome = context.handler?.outcomeOf(lease, reason) ?? notBegunOutcome(reason)
    if (outcome.type === 'released') logReleased(context, lease, error)
    return { outcome, unsent: NOTHING_UNSENT }
  }
  const turnLog = openTurnLog(lease, context)
  const beganMs = context.clock.monotonicMs()
  const stall = createStallTimer(context.clock, taken.backend.stallMs)
  const stopped = stall.signal === undefined ? signal : AbortSignal.any([signal, stall.signal])
  const asks = createTurnAsks(lease, { ...context, stall })
  const waits = createTurnWaits(stall)
  context.onBegun({ deliverAnswer: asks.deliverAnswer, setWaiting: waits.setWaiting })
  const events = taken.backend.run(toTurn(lease, brief, { ask: asks.ask, onWait: waits.onWait }), stopped)
  const keep = async (note: { key: string; value: string }) => context.onStanding(await turnLog.note(note))
  const facts = await readEvents(events, { turnLog, stall, keep })
  taken.giveBack()
  const unsent = await turnLog.unsent()
  const limits = taken.backend.limits && { limits: taken.backend.limits() }
  const { end, usedTool } = facts
  const used = usageOfTurn(brief, facts.usage, context.clock.monotonicMs() - beganMs)
  if (end.type === 'failed') {
    const outcome = {
      ...outcomeOfFailure({
        lease,
        error: end.error,
        maxAttempts: brief.maxAttempts,
        usedTool,
        rateLimitPatienceMs: brief.rateLimitPatienceMs,
        handler: context.handler,
        isKept: brief.attemptsUnset,
        shuttingDown: context.isShuttingDown(),
      }),
      ...used,
    }
    if (outcome.type === 'released') logReleased(context, lease, end.error)
    const keepsArtifacts = outcome.type === 'dead' && facts.artifacts.length > 0
    return { outcome: keepsArtifacts ? { ...outcome, artifacts: facts.artifacts } : outcome, unsent, ...limits }
  }
  const { session, artifacts } = facts
  // Leaves out an unchanged session: writing it again would sync one more page before the reply goes out.
  const changedSession = session === undefined || session === brief.sessionToken ? {} : { session }
  const notice = brief.earlierConversation?.notice
  const noticed = notice === undefined ? {} : { notice }
  return { outcome: { ...end, artifacts, ...used, ...changedSession, ...noticed }, unsent, ...limits }
}

/** The outcome without brief or backend: a retryable error releases the message, any other error is final. */
function notBegunOutcome(error: MoleculeError): Outcome {
  const exhausted = exhaustedOutcome(error)
  if (exhausted !== undefined) return exhausted
  return error.retryable ? { type: 'released', interrupted: false } : { type: 'dead', failure: toFailure(error) }
}

/** A released message shows no failure, so the reason is only here. */
function logReleased({ log }: TurnContext, { workspaceId, messageId }: Lease, error: unknown): void {
  log.warn({ err: toMoleculeError(error), workspaceId, messageId }, 'a turn was given back; no attempt is counted')
}

/** The usage that the agent reported, with the duration. For a metered turn, at least the duration. */
function usageOfTurn(brief: Brief, usage: Usage | undefined, durationMs: number): { usage?: Usage } {
  return usage === undefined && brief.metered !== true ? {} : { usage: { ...usage, durationMs } }
}

/** The turn did not begin: its message goes back into the queue and comes again after `afterMs`. */
function parkedOutcome({ afterMs, reason, waitsFor }: NonNullable<Brief['parked']>): Outcome {
  const parked = { afterMs, said: { parts: [{ text: reason }] }, waitsFor }
  return { type: 'released', interrupted: false, parked }
}

function openTurnLog(lease: Lease, { inbox, clock, log, onStanding }: TurnContext): TurnLog {
  const onError = (error: unknown) =>
    log.warn(
      { err: toMoleculeError(error), messageId: lease.messageId },
      'events of a turn could not be stored and are kept',
    )
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

/** Reads the backend's events until its end. Later events are ignored. */
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

/** Prevents an agent from doing work twice after an interrupted attempt. */
const INTERRUPTED_LINE =
  'Note: an earlier attempt at this message was interrupted. Check what is already done before you do it again.'

function toPrompt({ interrupted }: Lease, { recalled, earlierConversation }: Brief, text: string): string {
  const earlier = earlierConversation?.text
  if (!interrupted && recalled === undefined && earlier === undefined) return text
  const before = [recalled, earlier, interrupted ? INTERRUPTED_LINE : undefined]
  return [...before.filter((part) => part !== undefined), text].join('\n\n')
}

const TOKEN_VARIABLE = 'MOLECULE_WORKSPACE_TOKEN'

/** The MCP server of the workspace, with the token of the conversation. */
function mcpServersOf({ hasMcp, env }: Brief, workspaceId: string): readonly McpHttpServer[] {
  const { MOLECULE_API_URL: apiUrl, [TOKEN_VARIABLE]: token, PATH: path } = env
  if (hasMcp !== true || apiUrl === undefined || token === undefined) return []
  const programEnv = { MOLECULE_API_URL: apiUrl, [TOKEN_VARIABLE]: token, ...(path !== undefined && { PATH: path }) }
  const name = 'molecule'
  const program = { name, command: 'molecule', args: ['mcp', '--workspace', workspaceId], env: programEnv }
  return [{ name, url: `${apiUrl}/workspaces/${workspaceId}/mcp`, tokenVariable: TOKEN_VARIABLE, token, program }]
}

function toTurn(lease: Lease, brief: Brief, during: Pick<Turn, 'ask' | 'onWait'>): Turn {
  const { workspaceId, taskId, contextId, idempotencyKey, sender, envelope } = lease
  const silence = silenceInstruction(envelope.message.metadata, sender)
  const callerId = sender.kind === 'agent' ? sender.id : ''
  const request = toRequest({ workspaceId, callerId, taskId, contextId, idempotencyKey, sender, envelope })
  return {
    id: leaseId(lease),
    messageId: lease.messageId,
    conversationId: lease.conversationId,
    request,
    prompt: toPrompt(lease, brief, textOf(partsWithOrigin(envelope.message, sender))),
    systemPrompt: [brief.systemPrompt, silence].filter((text) => text !== '').join('\n\n'),
    peers: brief.peers,
    recalled: brief.recalled,
    workingDir: brief.workingDir,
    mcpServers: mcpServersOf(brief, workspaceId),
    ...during,
    notes: brief.notes ?? {},
    env: envelope.trace === undefined ? brief.env : { ...brief.env, ...traceVariables(envelope.trace) },
    sessionToken: brief.sessionToken,
    history: brief.history,
    model: brief.model,
  }
}
