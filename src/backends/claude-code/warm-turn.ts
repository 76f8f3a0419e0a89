/**
 * One turn on a warm claude: one process per conversation, with stream-json in both directions. Writes the message,
 * turns its output into events, and ends with its `result`. A cancelled turn is interrupted by claude's own request, so
 * that process and memory stay. If claude does not answer in time, the process is ended and the next one resumes.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'
import type { ProcessResult, RunningProcess } from '../../process/processes.ts'
import { abortableOr } from '../../wait.ts'
import type { Turn } from '../backend.ts'
import { usageEvents } from '../engine/reply-builder.ts'
import { type EndEvent, type TurnStream, turnCanceled } from '../engine/turn-engine.ts'
import type { WarmAgent } from '../engine/warm/warm-pool.ts'
import type { AgentProcess, WarmTurnResult } from '../engine/warm/warm-turn.ts'
import { type ClaudeOutcomeFacts, deathInTurn, endOf } from './outcome.ts'
import { type ClaudeEvent, type ClaudeResult, parseLine } from './parse.ts'
import { type ClaudePermissions, createClaudePermissions } from './permission.ts'
import { costSince, writeSession } from './session.ts'

/** Measured: 30 to 80 ms. With the cleanup after it, a cancel ends within 5 s even if claude never answers. */
const INTERRUPT_MS_MAX = 2_000

export interface ClaudeAgent extends AgentProcess {
  /** The id that claude gave it; undefined before the first turn. */
  sessionId: string | undefined
  /** The cost that claude reported with its last result: it adds up. Undefined if that is not known. */
  costUsd: number | undefined
  /** The turn that runs on the process; undefined between turns. */
  listener: ClaudeListener | undefined
  /** Set when the process has ended. */
  exit: ProcessResult | undefined
  /** It has printed a message of claude, so it understood its flags. */
  hasStarted: boolean
  readonly log: Log
}

/**
 * A turn listens here and adds no reaction to the `ended` promise of the process: the process lives for many turns, and
 * each reaction would stay in memory as long as it does.
 */
export interface ClaudeListener {
  onLine(line: string): void
  onEnd(exit: ProcessResult): void
}

export interface ClaudeTurnOptions {
  readonly turn: Turn
  /** The turn's prompt, with the attached files named in it. */
  readonly prompt: string
  /** The model that was chosen for the conversation. */
  readonly model: string | undefined
  readonly allowedTools: readonly string[]
  readonly facts: () => ClaudeOutcomeFacts
  readonly clock: Clock
}

export async function runClaudeTurn(
  warmAgent: WarmAgent<ClaudeAgent>,
  options: ClaudeTurnOptions,
  stream: TurnStream,
): Promise<WarmTurnResult> {
  const { agent } = warmAgent
  const { running } = agent
  const permissions = createClaudePermissions(options, warmAgent, stream)
  const progress = listen(agent, { permissions, model: options.model }, stream)
  try {
    const since = running.moment()
    send(running, options.prompt)
    const ended = await abortableOr(progress.ended, stream.signal, 'aborted' as const)
    // A process that was just started starts its MCP servers too, which look like children of its tools.
    if (ended === 'aborted' && warmAgent.isFresh) return { end: canceled(), isUsable: false }
    if (ended === 'aborted')
      return { end: canceled(), isUsable: await interrupt(agent, progress, options.clock), since }
    if ('end' in ended) {
      const error = deathInTurn(ended, options.facts(), agent.hasStarted)
      return { end: { type: 'failed', error }, isUsable: false }
    }
    const { inputTokens, outputTokens, costUsd } = ended
    for (const event of usageEvents({ inputTokens, outputTokens, costUsd })) stream.emit(event)
    const end = endOf(ended, { ...options.facts(), resetsAtMs: progress.resetsAtMs() })
    // claude exits after it has reported that it does not know the session.
    const isLeaving = end.type === 'failed' && end.error.code === 'session_lost'
    return { end, isUsable: !isLeaving, since }
  } finally {
    agent.listener = undefined
    permissions.end()
  }
}

interface TurnProgress {
  /** The result of the turn, or the exit of the process if it ends without one. */
  readonly ended: Promise<ClaudeResult | ProcessResult>
  /** claude has taken the message. */
  readonly begun: Promise<'begun'>
  readonly resetsAtMs: () => number | undefined
}

interface ListenOptions extends Pick<ClaudeTurnOptions, 'model'> {
  readonly permissions: ClaudePermissions
}

function listen(agent: ClaudeAgent, { permissions, model }: ListenOptions, { emit }: TurnStream): TurnProgress {
  const { promise: ended, resolve } = Promise.withResolvers<ClaudeResult | ProcessResult>()
  const begun = Promise.withResolvers<'begun'>()
  const tools = new Map<string, { readonly name: string; readonly subject: string }>()
  let resetsAtMs: number | undefined
  let hasText = false
  const toolUse = (id: string) => {
    const { name = '', subject = '' } = tools.get(id) ?? {}
    return { name, subject }
  }
  const onResult = (result: ClaudeResult) => {
    const { sessionCostUsd: costUsd } = result
    // Without this sum the next process of the session could not tell its own cost.
    if (result.costUsd === undefined && costUsd !== undefined && agent.sessionId !== undefined) {
      emit({ type: 'session', token: writeSession({ id: agent.sessionId, model, costUsd }) })
    }
    resolve({ ...result, costUsd: result.costUsd ?? costSince(agent.costUsd, costUsd) })
    agent.costUsd = costUsd
  }
  const onEvent = (event: ClaudeEvent) => {
    switch (event.type) {
      case 'init':
        begun.resolve('begun')
        agent.sessionId = event.sessionId
        return emit({ type: 'session', token: writeSession({ id: event.sessionId, model }) })
      case 'paragraph':
        if (hasText) emit({ type: 'text', delta: '\n\n' })
        return
      case 'text':
        hasText = true
        return emit({ type: 'text', delta: event.delta })
      case 'tool_started':
        tools.set(event.id, event)
        return emit({ type: 'tool', name: event.name, subject: event.subject, state: 'started' })
      case 'tool_ended':
        return emit({
          type: 'tool',
          ...toolUse(event.id),
          state: event.failed ? 'failed' : 'finished',
          diffs: event.diffs,
        })
      case 'retrying':
        return emit({ type: 'status', text: event.text })
      case 'limit':
        resetsAtMs = event.resetsAtMs
        return
      case 'ask':
        return permissions.ask(event)
      case 'ask_withdrawn':
        return permissions.withdraw(event.requestId)
      case 'result':
        // With messages in the queue this is the end of a turn that claude began by itself; ours comes after it.
        return event.result.queued > 0 ? emit({ type: 'activity' }) : onResult(event.result)
      case 'alive':
        return emit({ type: 'activity' })
    }
  }
  const onLine = (line: string) => {
    const events = parseLine(line)
    agent.hasStarted ||= events !== undefined
    if (events === undefined && line.trim() !== '') {
      agent.log.debug({ line: line.slice(0, 200) }, 'claude printed no JSON')
    }
    for (const event of events ?? []) onEvent(event)
  }
  agent.listener = { onLine, onEnd: resolve }
  if (agent.exit !== undefined) resolve(agent.exit)
  return { ended, begun: begun.promise, resetsAtMs: () => resetsAtMs }
}

/** Not awaited: a process that does not read would block the turn, also a cancelled one. */
function send(running: RunningProcess, prompt: string): void {
  void running.write(userLine(prompt)).then((isTaken) => {
    if (!isTaken) void running.stop()
  })
}

/** Waits for the result of the interrupted turn. Without the wait it would be taken for the result of the next turn. */
async function interrupt({ running }: ClaudeAgent, { begun, ended }: TurnProgress, clock: Clock): Promise<boolean> {
  const late = Promise.withResolvers<'late'>()
  const cancelTimer = clock.after(INTERRUPT_MS_MAX, () => late.resolve('late'))
  try {
    // A message that claude has not taken yet cannot be interrupted; claude would still run it later.
    const first = await Promise.race([begun, ended, late.promise])
    if (first !== 'begun') return false
    void running.write(interruptLine())
    const last = await Promise.race([ended, late.promise])
    return last !== 'late' && !('end' in last)
  } finally {
    cancelTimer()
  }
}

const canceled = (): EndEvent => ({ type: 'failed', error: turnCanceled() })

const userLine = (text: string): string => {
  const message = { role: 'user', content: [{ type: 'text', text }] }
  return `${JSON.stringify({ type: 'user', message, parent_tool_use_id: null, session_id: '' })}\n`
}

const interruptLine = (): string => {
  const request = { type: 'control_request', request_id: randomUUID(), request: { subtype: 'interrupt' } }
  return `${JSON.stringify(request)}\n`
}
