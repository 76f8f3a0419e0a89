/**
 * A turn on a warm codex: its thread is begun or resumed, the message is given, what it says becomes events, and
 * `turn/completed` is the end. A cancelled turn is interrupted in codex's own way, so that process and memory stay;
 * where it does not answer in time the process is ended, and the next one resumes.
 */
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import { isJsonObject, type JsonObject } from '../../protocol/json.ts'
import type { BackendEvent, Turn } from '../backend.ts'
import { classifyAgentError } from '../engine/failure/agent-errors.ts'
import { driftError, driftInAnswer } from '../engine/failure/drift.ts'
import { RpcError } from '../engine/json-rpc.ts'
import { type EndEvent, type TurnStream, turnCanceled } from '../engine/turn-engine.ts'
import type { WarmAgent } from '../engine/warm/warm-pool.ts'
import type { WarmTurnResult } from '../engine/warm/warm-turn.ts'
import type { AppServer } from './app-server.ts'
import { failureOf } from './outcome.ts'
import { endOf } from './parse.ts'
import { answerRequest, type CodexPermissions } from './permission.ts'
import { type CodexReply, createCodexReply } from './reply.ts'
import {
  type CodexSession,
  instructionsHash,
  NO_TOTALS,
  promptFor,
  readSession,
  type TokenTotals,
  usedSince,
  writeSession,
} from './session.ts'

/** Measured: 10 to 50 ms. With what follows it a cancel ends within 5 s also where it is never answered. */
const INTERRUPT_MS_MAX = 2_000

export interface CodexTurnOptions {
  readonly turn: Turn
  /** What is said to it: the turn's prompt, and the files that came with it. */
  readonly prompt: string
  readonly warmAgent: WarmAgent<AppServer>
  readonly model: string | undefined
  /** How the thread is begun, and resumed: folder, permissions, MCP servers. */
  readonly threadParams: JsonObject
  readonly permissions: Pick<CodexPermissions, 'allowedTools'> & { readonly asks: boolean }
  /** Rejects where a codex of that version does not speak as we do. */
  readonly checkProtocol: (version: string | undefined, signal: AbortSignal) => Promise<void>
  readonly nowMs: () => number
  readonly log: Log
}

export async function runCodexTurn(given: CodexTurnOptions, stream: TurnStream): Promise<WarmTurnResult> {
  const { agent } = given.warmAgent
  const progress = listen(given, stream)
  try {
    const session = readSession(given.turn.sessionToken)
    await given.checkProtocol(await agent.initialize(stream.signal), stream.signal)
    const isOpened = await openThread(given, session, stream.signal)
    const before = session === undefined ? NO_TOTALS : largerTotals(agent.totals, session.totals)
    const since = agent.running.moment()
    const end = await runThreadTurn(given, progress, { session, stream })
    if (end === undefined) return { end: CANCELED, isUsable: false }
    // A thread that has just been opened starts its MCP servers too, which cannot be told from its tools.
    const isUsable = !(isOpened && stream.signal.aborted)
    return { end: emitEnd(given, { progress, end, before }, stream), isUsable, since }
  } catch (thrown) {
    const error = toError(thrown, given.nowMs())
    // A thread that is not there says nothing against the process; whatever else went wrong does.
    return { end: { type: 'failed', error }, isUsable: error.code === 'session_lost' }
  } finally {
    agent.listener = undefined
  }
}

const CANCELED: EndEvent = { type: 'failed', error: turnCanceled() }

/** False where the process had it open already. */
async function openThread(
  given: CodexTurnOptions,
  session: CodexSession | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  const { turn, model, threadParams } = given
  const { agent } = given.warmAgent
  if (session !== undefined && agent.thread === session.thread) return false
  const params = { ...threadParams, ...(model !== undefined && { model }) }
  const begun =
    session === undefined
      ? agent.rpc.request('thread/start', { ...params, ...instructionsOf(turn) }, signal)
      : agent.rpc.request('thread/resume', { ...params, threadId: session.thread, excludeTurns: true }, signal)
  agent.totals = NO_TOTALS
  const answer = await begun.catch((thrown: unknown) => {
    const drift = driftInAnswer(session === undefined ? 'thread/start' : 'thread/resume', thrown)
    throw drift === undefined ? thrown : driftError('codex', drift, thrown)
  })
  const thread = isJsonObject(answer) && isJsonObject(answer['thread']) ? answer['thread']['id'] : undefined
  if (typeof thread !== 'string') throw driftError('codex', 'id of the thread missing')
  agent.thread = thread
  agent.model = model
  return true
}

const instructionsOf = ({ systemPrompt }: Turn): JsonObject =>
  systemPrompt === '' ? {} : { developerInstructions: systemPrompt }

const largerTotals = (one: TokenTotals, other: TokenTotals): TokenTotals => (one.input >= other.input ? one : other)

interface Conversing {
  readonly session: CodexSession | undefined
  readonly stream: TurnStream
}

/** The turn as it ended; undefined where it was cancelled and did not end in time. */
async function runThreadTurn(
  { turn, prompt, warmAgent, model }: CodexTurnOptions,
  progress: TurnProgress,
  { session, stream }: Conversing,
): Promise<JsonObject | undefined> {
  const { agent } = warmAgent
  const { rpc, thread: threadId } = agent
  // A thread keeps its model, and codex takes 3 ms to be told one, be it the same.
  const change = model === undefined || model === agent.model ? {} : { model }
  const text = promptFor(prompt, turn.systemPrompt, session)
  const input = [{ type: 'text', text, text_elements: [] }]
  const { aborted, patience, end: endWatch } = watchAbort(stream.signal)
  try {
    // Not by the turn's own signal: what has been said to codex cannot be taken back, only interrupted.
    const answer = await rpc.request('turn/start', { threadId, input, ...change }, patience.signal)
    agent.model = model ?? agent.model
    const turnId = isJsonObject(answer) && isJsonObject(answer['turn']) ? answer['turn']['id'] : undefined
    const gone = agent.ended.then(() => undefined)
    const first = await Promise.race([progress.ended, aborted, gone])
    if (first !== 'aborted' && first !== undefined) return first
    // Where the process is gone, this rejects with what it died of.
    await rpc.request('turn/interrupt', { threadId, turnId }, patience.signal)
    return await Promise.race([progress.ended, patience.isOver, gone])
  } finally {
    endWatch()
  }
}

interface Patience {
  /** Aborted when a cancelled turn has had its time to end. */
  readonly signal: AbortSignal
  readonly isOver: Promise<undefined>
}

interface Watch {
  readonly aborted: Promise<'aborted'>
  readonly patience: Patience
  end(): void
}

/** Real time: it watches a process. */
function watchAbort(signal: AbortSignal): Watch {
  const aborted = Promise.withResolvers<'aborted'>()
  const over = Promise.withResolvers<undefined>()
  const impatient = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const onAbort = () => {
    aborted.resolve('aborted')
    timer = setTimeout(() => {
      impatient.abort()
      over.resolve(undefined)
    }, INTERRUPT_MS_MAX)
  }
  signal.addEventListener('abort', onAbort, { once: true })
  if (signal.aborted) onAbort()
  return {
    aborted: aborted.promise,
    patience: { signal: impatient.signal, isOver: over.promise },
    end() {
      clearTimeout(timer)
      signal.removeEventListener('abort', onAbort)
    },
  }
}

interface Ending {
  readonly progress: TurnProgress
  readonly end: JsonObject
  readonly before: TokenTotals
}

/** The last words of a turn: what was denied, the session, what it used, and how it ended. */
function emitEnd(
  { turn, warmAgent, nowMs }: CodexTurnOptions,
  { progress, end, before }: Ending,
  { emit }: TurnStream,
): EndEvent {
  const { agent } = warmAgent
  for (const event of progress.reply.denials()) emit(event)
  const instructions = instructionsHash(turn.systemPrompt)
  const { thread, totals } = agent
  if (thread !== undefined) emit({ type: 'session', token: writeSession({ thread, totals, instructions }) })
  // Where nothing was added up, codex has not said.
  if (totals.input !== before.input) emit({ type: 'usage', ...usedSince(before, totals) })
  if (end['status'] === 'interrupted') return CANCELED
  if (end['status'] === 'completed') return endOf(progress.reply.text)
  const error = isJsonObject(end['error']) ? end['error'] : {}
  const message = String(error['message'] ?? '')
  return { type: 'failed', error: failureOf({ message, info: error['codexErrorInfo'], nowMs: nowMs() }) }
}

interface TurnProgress {
  readonly reply: CodexReply
  /** The `turn` of `turn/completed`. */
  readonly ended: Promise<JsonObject>
}

/** Hears what the process says from now on; of other threads (agents that this one started) nothing. */
function listen({ turn, warmAgent, permissions, log }: CodexTurnOptions, stream: TurnStream): TurnProgress {
  const { agent } = warmAgent
  const reply = createCodexReply()
  const ended = Promise.withResolvers<JsonObject>()
  const changes = new Map<string, string>()
  const commentary = new Set<string>()
  const tell = (events: readonly BackendEvent[]) => {
    for (const event of events) if (event.type !== 'done' && event.type !== 'failed') stream.emit(event)
  }
  const onNotification = (method: string, params: unknown) => {
    if (!isJsonObject(params)) return
    const { threadId } = params
    if (agent.thread !== undefined && threadId !== undefined && threadId !== agent.thread) return
    if (method === 'turn/completed' && isJsonObject(params['turn'])) return ended.resolve(params['turn'])
    if (method === 'thread/tokenUsage/updated') agent.totals = totalsOf(params['tokenUsage']) ?? agent.totals
    if (method === 'warning') log.debug({ words: params['message'] }, 'codex warns')
    tell(eventsOf({ method, params }, { reply, changes, commentary }))
  }
  const ask: NonNullable<CodexPermissions['ask']> = (request, signal) =>
    stream.pauseDuring(warmAgent.suspendDuring(() => turn.ask(request, signal), signal))
  let questions = 0
  const given: CodexPermissions = {
    allowedTools: permissions.allowedTools,
    ask: permissions.asks ? ask : undefined,
    changesOf: (itemId) => changes.get(itemId),
    newId() {
      questions += 1
      return `question-${questions}`
    },
  }
  agent.listener = {
    onNotification,
    onRequest(method, params, signal) {
      stream.emit({ type: 'activity' })
      return answerRequest({ method, params }, given, AbortSignal.any([signal, stream.signal]))
    },
  }
  return { reply, ended: ended.promise }
}

interface Remembered {
  readonly reply: CodexReply
  readonly changes: Map<string, string>
  /** The messages that codex calls commentary, by id. */
  readonly commentary: Set<string>
}

interface Notification {
  readonly method: string
  readonly params: JsonObject
}

/** What a notification means for whoever watches the turn. */
function eventsOf({ method, params }: Notification, { reply, changes, commentary }: Remembered): BackendEvent[] {
  const item = isJsonObject(params['item']) ? params['item'] : {}
  const id = String(item['id'] ?? params['itemId'])
  switch (method) {
    case 'item/agentMessage/delta':
      return commentary.has(id) ? [{ type: 'activity' }] : reply.delta(id, String(params['delta'] ?? ''))
    case 'item/started':
      if (item['type'] === 'fileChange') changes.set(id, JSON.stringify(item['changes']))
      if (item['type'] === 'agentMessage' && item['phase'] === 'commentary') commentary.add(id)
      return reply.tool(item, 'started')
    case 'item/completed': {
      if (item['type'] !== 'agentMessage') return reply.tool(item, 'ended')
      const text = String(item['text'] ?? '')
      return commentary.has(id) ? reply.commentary(text) : reply.message(id, text)
    }
    case 'error': {
      const error = isJsonObject(params['error']) ? params['error'] : {}
      return params['willRetry'] === true ? [{ type: 'status', text: String(error['message']) }] : []
    }
    default:
      return [{ type: 'activity' }]
  }
}

function totalsOf(usage: unknown): TokenTotals | undefined {
  const total = isJsonObject(usage) ? usage['total'] : undefined
  if (!isJsonObject(total)) return undefined
  const { inputTokens: input, outputTokens: output } = total
  return typeof input === 'number' && typeof output === 'number' ? { input, output } : undefined
}

function toError(thrown: unknown, nowMs: number): MoleculeError {
  if (!(thrown instanceof RpcError)) return toMoleculeError(thrown)
  return classifyAgentError({ text: thrown.message, nowMs }) ?? new MoleculeError('agent_failed', thrown.message)
}
