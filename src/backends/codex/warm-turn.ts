/**
 * One turn on a warm codex: begins or resumes the thread, sends the message, turns notifications into events, and ends
 * with `turn/completed`. A cancelled turn is interrupted by codex's own request, so that process and memory stay. If
 * codex does not answer in time, the process is ended and the next one resumes the thread.
 */
import type { Log } from '../../log.ts'
import { isJsonObject, type JsonObject } from '../../protocol/json.ts'
import { abortableOr, onAbort } from '../../wait.ts'
import type { Turn } from '../backend.ts'
import { driftError, driftInAnswer } from '../engine/failure/drift.ts'
import { RpcError } from '../engine/json-rpc.ts'
import { type EndEvent, type TurnStream, turnCanceled } from '../engine/turn-engine.ts'
import type { WarmAgent } from '../engine/warm/warm-pool.ts'
import type { WarmTurnResult } from '../engine/warm/warm-turn.ts'
import type { AppServer } from './app-server.ts'
import { failedEnd, finishTurn, NETWORK_WAITS_MAX, networkAway, requestError, waitsForNetwork } from './outcome.ts'
import { messageOf, readNotification, totalsOf } from './parse.ts'
import { answerRequest, type CodexPermissions } from './permission.ts'
import { type CodexReply, createCodexReply } from './reply.ts'
import { type CodexSession, instructionsHash, NO_TOTALS, promptFor, readSession, type TokenTotals } from './session.ts'

/** Measured: 10 to 50 ms. With the cleanup after it, a cancel ends within 5 s even if codex never answers. */
const INTERRUPT_MS_MAX = 2_000

export interface CodexTurnOptions {
  readonly turn: Turn
  /** The turn's prompt, with the attached files named in it. */
  readonly prompt: string
  readonly warmAgent: WarmAgent<AppServer>
  readonly model: string | undefined
  /** Folder, permissions and MCP servers: parameters of `thread/start` and `thread/resume`. */
  readonly threadParams: JsonObject
  readonly permissions: Pick<CodexPermissions, 'allowedTools'> & { readonly asks: boolean }
  /** Rejects if a codex of that version does not speak as we do. */
  readonly checkProtocol: (version: string | undefined, signal: AbortSignal) => Promise<void>
  readonly nowMs: () => number
  readonly log: Log
}

export async function runCodexTurn(options: CodexTurnOptions, stream: TurnStream): Promise<WarmTurnResult> {
  const { agent } = options.warmAgent
  const progress = listen(options, stream)
  try {
    const session = readSession(options.turn.sessionToken)
    await options.checkProtocol(await agent.initialize(stream.signal), stream.signal)
    const isOpened = await openThread(options, session, stream.signal)
    const before = session === undefined ? NO_TOTALS : largerTotals(agent.totals, session.totals)
    const since = agent.running.moment()
    const ended = await runThreadTurn(options, progress, { session, stream })
    if (ended === undefined) return { end: CANCELED, isUsable: false }
    // A thread that was just opened starts its MCP servers, which look like children of its tools.
    const isUsable = !(isOpened && stream.signal.aborted)
    return { end: emitEnd(options, { reply: progress.reply, ended, before }, stream), isUsable, since }
  } catch (thrown) {
    const error = requestError(thrown, options.nowMs())
    // A missing thread is no fault of the process; after every other error the process is ended.
    return { end: { type: 'failed', error }, isUsable: error.code === 'session_lost' }
  } finally {
    agent.listener = undefined
  }
}

const CANCELED: EndEvent = { type: 'failed', error: turnCanceled() }

/** False if the process has the thread open already. */
async function openThread(
  { turn, model, threadParams, warmAgent: { agent } }: CodexTurnOptions,
  session: CodexSession | undefined,
  signal: AbortSignal,
): Promise<boolean> {
  if (session !== undefined && agent.thread === session.thread) return false
  const { systemPrompt } = turn
  const params = { ...threadParams, ...(model !== undefined && { model }) }
  const [method, more] =
    session === undefined
      ? ['thread/start', systemPrompt === '' ? {} : { developerInstructions: systemPrompt }]
      : ['thread/resume', { threadId: session.thread, excludeTurns: true }]
  agent.totals = NO_TOTALS
  const answer = await agent.rpc.request(method, { ...params, ...more }, signal).catch((thrown: unknown) => {
    const drift = driftInAnswer(method, thrown)
    throw drift === undefined ? thrown : driftError('codex', drift, thrown)
  })
  const thread = isJsonObject(answer) && isJsonObject(answer['thread']) ? answer['thread']['id'] : undefined
  if (typeof thread !== 'string') throw driftError('codex', 'id of the thread missing')
  agent.thread = thread
  agent.model = model
  return true
}

/** What a new thread gets: the model of the settings, else codex's own. Undefined if this codex does not say it. */
async function findDefaultModel({ rpc }: AppServer, cwd: string, signal: AbortSignal): Promise<string | undefined> {
  const ask = (method: string, params: object) =>
    rpc.request(method, params, signal).catch((thrown: unknown) => {
      if (thrown instanceof RpcError) return undefined
      throw thrown
    })
  const answer = await ask('config/read', { cwd, includeLayers: false })
  const config = isJsonObject(answer) && isJsonObject(answer['config']) ? answer['config'] : {}
  if (typeof config['model'] === 'string') return config['model']
  const list = await ask('model/list', {})
  const models = isJsonObject(list) && Array.isArray(list['data']) ? list['data'].filter(isJsonObject) : []
  const usual = models.find((one) => one['isDefault'] === true)?.['model']
  return typeof usual === 'string' ? usual : undefined
}

const largerTotals = (one: TokenTotals, other: TokenTotals): TokenTotals => (one.input >= other.input ? one : other)

/** The `turn` of `turn/completed`; undefined if the turn was cancelled and did not end in time. */
async function runThreadTurn(
  { turn, prompt, warmAgent: { agent }, model }: CodexTurnOptions,
  progress: TurnProgress,
  { session, stream }: { readonly session: CodexSession | undefined; readonly stream: TurnStream },
): Promise<JsonObject | undefined> {
  const { rpc, thread: threadId } = agent
  // A thread keeps its model, and codex takes 3 ms to set one, even the same.
  const isGoingBack = model === undefined && session?.model !== undefined
  const wanted = isGoingBack ? await findDefaultModel(agent, turn.workingDir, stream.signal) : model
  const change = wanted === undefined || wanted === agent.model ? {} : { model: wanted }
  const text = promptFor(prompt, turn.systemPrompt, session)
  const input = [{ type: 'text', text, text_elements: [] }]
  const giveUp = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const release = onAbort(stream.signal, () => {
    // Real time: it watches a process.
    timer = setTimeout(() => giveUp.abort(), INTERRUPT_MS_MAX)
  })
  try {
    // Not with the turn's own signal: a message that codex has cannot be taken back, only interrupted.
    const answer = await rpc.request('turn/start', { threadId, input, ...change }, giveUp.signal)
    agent.model = wanted ?? agent.model
    const turnId = isJsonObject(answer) && isJsonObject(answer['turn']) ? answer['turn']['id'] : undefined
    const first = await abortableOr(progress.ended, stream.signal, undefined)
    if (first !== undefined) return first
    // If the process has ended, this rejects with the reason.
    await rpc.request('turn/interrupt', { threadId, turnId }, giveUp.signal)
    return await abortableOr(progress.ended, giveUp.signal, undefined)
  } finally {
    clearTimeout(timer)
    release()
  }
}

/** Emits the last events of the turn and returns its end. `ended`: the `turn` of `turn/completed`. */
function emitEnd(
  { turn, warmAgent, nowMs, model }: CodexTurnOptions,
  { reply, ended, before }: { readonly reply: CodexReply; readonly ended: JsonObject; readonly before: TokenTotals },
  { emit }: TurnStream,
): EndEvent {
  const { thread, totals } = warmAgent.agent
  const instructions = instructionsHash(turn.systemPrompt)
  const { last, end } = finishTurn(reply, { thread, totals, instructions, before, model })
  for (const event of last) emit(event)
  if (ended['status'] === 'interrupted') return CANCELED
  if (ended['status'] === 'completed') return end
  const error = isJsonObject(ended['error']) ? ended['error'] : {}
  return failedEnd({ message: String(error['message'] ?? ''), info: error['codexErrorInfo'] }, nowMs())
}

interface TurnProgress {
  readonly reply: CodexReply
  /** The `turn` of `turn/completed`, or undefined when the process ends first. Rejects if codex waits for the network. */
  readonly ended: Promise<JsonObject | undefined>
}

/** Listens to the process from now on. Ignores other threads: they belong to agents that this one started. */
function listen({ turn, warmAgent, permissions, log }: CodexTurnOptions, stream: TurnStream): TurnProgress {
  const { agent } = warmAgent
  const { promise: ended, resolve, reject } = Promise.withResolvers<JsonObject | undefined>()
  // It may reject before the turn waits for it.
  ended.catch(() => undefined)
  let networkWaits = 0
  const state = { reply: createCodexReply(), changes: new Map<string, string>(), commentary: new Set<string>() }
  const ask: NonNullable<CodexPermissions['ask']> = (request, signal) =>
    stream.pauseDuring(warmAgent.suspendDuring(() => turn.ask(request, signal), signal))
  let questions = 0
  const codexPermissions: CodexPermissions = {
    allowedTools: permissions.allowedTools,
    ask: permissions.asks ? ask : undefined,
    changesOf: (itemId) => state.changes.get(itemId),
    workingDir: turn.workingDir,
    newId() {
      questions += 1
      return `question-${questions}`
    },
  }
  agent.listener = {
    onNotification(method, params) {
      if (!isJsonObject(params)) return
      const { threadId } = params
      if (agent.thread !== undefined && threadId !== undefined && threadId !== agent.thread) return
      if (method === 'turn/completed' && isJsonObject(params['turn'])) return resolve(params['turn'])
      if (method === 'thread/tokenUsage/updated') agent.totals = totalsIn(params['tokenUsage']) ?? agent.totals
      if (method === 'error' && waitsForNetwork(messageOf(params['error']))) networkWaits += 1
      // Codex works again: two short outages of a long turn do not end it.
      else if (method.startsWith('item/')) networkWaits = 0
      if (networkWaits >= NETWORK_WAITS_MAX) reject(networkAway(messageOf(params['error'])))
      if (method === 'warning') log.debug({ words: params['message'] }, 'codex warns')
      for (const event of readNotification(method, params, state)) stream.emit(event)
    },
    onRequest(method, params, signal) {
      stream.emit({ type: 'activity' })
      return answerRequest({ method, params }, codexPermissions, AbortSignal.any([signal, stream.signal]))
    },
    onEnd: () => resolve(undefined),
  }
  return { reply: state.reply, ended }
}

const totalsIn = (usage: unknown): TokenTotals | undefined =>
  isJsonObject(usage) ? totalsOf(usage['total']) : undefined
