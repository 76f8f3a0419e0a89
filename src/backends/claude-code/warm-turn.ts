/**
 * A turn on a warm claude: one process a conversation that speaks stream-json both ways. The message is written, what
 * it says becomes events, its `result` is the end. A cancelled turn is interrupted in claude's own way, so that the
 * process and its memory stay; where it does not answer in time the process is ended and the next one resumes.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'
import type { ProcessResult, RunningProcess } from '../../process/processes.ts'
import type { Turn } from '../backend.ts'
import { type EndEvent, type TurnStream, turnCanceled } from '../engine/turn-engine.ts'
import type { WarmAgent } from '../engine/warm/warm-pool.ts'
import type { AgentProcess, WarmTurnResult } from '../engine/warm/warm-turn.ts'
import { type ClaudeOutcomeFacts, deathInTurn, endOf, usageOf } from './outcome.ts'
import { type ClaudeEvent, type ClaudeResult, parseLine } from './parse.ts'
import { type ClaudePermissions, createClaudePermissions } from './permission.ts'

/** Measured: it takes 30 to 80 ms. With what follows it a cancel ends within 5 s also where it is never answered. */
const INTERRUPT_MS_MAX = 2_000

export interface ClaudeAgent extends AgentProcess {
  /** As claude named it; undefined before its first turn. */
  sessionId: string | undefined
  /** Whoever listens to its lines now; nobody between turns. */
  onLine: ((line: string) => void) | undefined
  /** It has said something that claude says, and so knows how it was started. */
  hasStarted: boolean
  readonly log: Log
}

export interface ClaudeTurnOptions {
  readonly turn: Turn
  /** With what is attached named in it. */
  readonly prompt: string
  readonly facts: () => ClaudeOutcomeFacts
  readonly clock: Clock
}

export async function runClaudeTurn(
  warmAgent: WarmAgent<ClaudeAgent>,
  given: ClaudeTurnOptions,
  stream: TurnStream,
): Promise<WarmTurnResult> {
  const { agent } = warmAgent
  const { running } = agent
  const permissions = createClaudePermissions(given.turn, warmAgent, stream)
  const progress = listen(agent, permissions, stream)
  try {
    const since = running.moment()
    send(running, given.prompt)
    const heard = await waitForEnd(progress.result, running, stream.signal)
    // One that has just been started starts its MCP servers too, which cannot be told from its tools.
    if (heard === 'aborted' && warmAgent.isFresh) return { end: canceled(), isUsable: false }
    if (heard === 'aborted') return { end: canceled(), isUsable: await interrupt(agent, progress, given.clock), since }
    if ('end' in heard) {
      const error = deathInTurn(heard, given.facts(), agent.hasStarted)
      return { end: { type: 'failed', error }, isUsable: false }
    }
    for (const usage of usageOf(heard)) stream.emit(usage)
    const facts = { ...given.facts(), resetsAtMs: progress.resetsAtMs() }
    const end = endOf(heard, facts)
    // Of a session that it does not know it says so, and leaves.
    const isLeaving = end.type === 'failed' && end.error.code === 'session_lost'
    return { end, isUsable: !isLeaving, since }
  } finally {
    agent.onLine = undefined
    permissions.end()
  }
}

type RaceResult = ClaudeResult | ProcessResult | 'aborted'

async function waitForEnd(
  result: Promise<ClaudeResult>,
  running: RunningProcess,
  signal: AbortSignal,
): Promise<RaceResult> {
  const aborted = Promise.withResolvers<'aborted'>()
  const onAbort = () => aborted.resolve('aborted')
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  try {
    // Its last words may be a result: they were heard before its end is known.
    return await Promise.race([result, running.ended, aborted.promise])
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

interface TurnProgress {
  readonly result: Promise<ClaudeResult>
  /** Claude has taken the message. */
  readonly begun: Promise<void>
  readonly resetsAtMs: () => number | undefined
}

function listen(agent: ClaudeAgent, permissions: ClaudePermissions, { emit }: TurnStream): TurnProgress {
  const { promise, resolve } = Promise.withResolvers<ClaudeResult>()
  const tools = new Map<string, string>()
  const begun = Promise.withResolvers<void>()
  let resetsAtMs: number | undefined
  let hasText = false
  const take = (said: ClaudeEvent) => {
    switch (said.type) {
      case 'init':
        begun.resolve()
        agent.sessionId = said.sessionId
        return emit({ type: 'session', token: said.sessionId })
      case 'paragraph':
        if (hasText) emit({ type: 'text', delta: '\n\n' })
        return
      case 'text':
        hasText = true
        return emit({ type: 'text', delta: said.delta })
      case 'tool_started':
        tools.set(said.id, said.name)
        return emit({ type: 'tool', name: said.name, state: 'started' })
      case 'tool_ended':
        return emit({ type: 'tool', name: tools.get(said.id) ?? '', state: said.failed ? 'failed' : 'finished' })
      case 'retrying':
        return emit({ type: 'status', text: said.text })
      case 'limit':
        resetsAtMs = said.resetsAtMs
        return
      case 'ask':
        return permissions.ask(said)
      case 'ask_withdrawn':
        return permissions.withdraw(said.requestId)
      case 'result':
        // One that it began by itself has ended, and ours is still to come.
        return said.result.queued > 0 ? emit({ type: 'activity' }) : resolve(said.result)
      case 'alive':
        return emit({ type: 'activity' })
    }
  }
  agent.onLine = (line) => {
    const said = parseLine(line)
    agent.hasStarted ||= said !== undefined
    if (said === undefined && line.trim() !== '')
      agent.log.debug({ line: line.slice(0, 200) }, 'claude printed no JSON')
    for (const one of said ?? []) take(one)
  }
  return { result: promise, begun: begun.promise, resetsAtMs: () => resetsAtMs }
}

/** Not waited for: one that does not read would hold the turn, cancelled or not. */
function send(running: RunningProcess, prompt: string): void {
  void running.write(userLine(prompt)).then((isTaken) => {
    if (!isTaken) void running.stop()
  })
}

/** Waits for the result that an interrupted turn ends with, so that it is not taken for the next one's. */
async function interrupt({ running }: ClaudeAgent, progress: TurnProgress, clock: Clock): Promise<boolean> {
  const late = Promise.withResolvers<false>()
  const cancelTimer = clock.after(INTERRUPT_MS_MAX, () => late.resolve(false))
  const given = Promise.race([late.promise, running.ended.then(() => false)])
  // A message that it has not taken yet cannot be interrupted, and would be taken later.
  const hasBegun = await Promise.race([progress.begun.then(() => true), given])
  if (hasBegun) void running.write(interruptLine())
  const isDone = hasBegun && (await Promise.race([progress.result.then(() => true), given]))
  cancelTimer()
  return isDone
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
