/**
 * Which session of an ACP agent a turn runs in: the one that the process holds, one that it loads, or a new one; and
 * the model that was asked for, where the agent lets itself be told. Invariant: a session that cannot be gone on with
 * is `session_lost`, never silently a new one.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { MoleculeError } from '../../../errors.ts'
import { isJsonObject } from '../../../protocol/json.ts'
import type { McpServer } from '../../backend.ts'
import { driftError, driftInAnswer } from '../failure/drift.ts'
import { RpcError } from '../json-rpc.ts'
import { isSessionId } from '../session-prompt.ts'
import type { AcpAgent } from './acp-agent.ts'
import { agentError, resumeError } from './acp-errors.ts'

const METHOD_NOT_FOUND = -32_601

export interface OpenSessionOptions {
  readonly sessionId?: string | undefined
  readonly cwd: string
  readonly mcpServers: readonly McpServer[]
  readonly model: string | undefined
  readonly nowMs: number
  /** The model cannot be set in this agent. */
  readonly onModelRefused: (why: string) => void
}

export async function openSession(agent: AcpAgent, options: OpenSessionOptions, signal: AbortSignal): Promise<string> {
  const { sessionId } = options
  if (sessionId !== undefined && agent.sessions.has(sessionId)) return sessionId
  const opened =
    sessionId === undefined ? await newSession(agent, options, signal) : await resumeSession(agent, options, signal)
  if (options.model !== undefined) await setModel(agent, { ...options, ...opened, model: options.model }, signal)
  return opened.id
}

interface OpenedSession {
  readonly id: string
  /** What the agent answered: among it the models there are. */
  readonly answer: Readonly<Record<string, unknown>>
}

async function newSession(agent: AcpAgent, options: OpenSessionOptions, signal: AbortSignal): Promise<OpenedSession> {
  const answer = await agent.rpc.request('session/new', sessionParams(options), signal).catch((thrown: unknown) => {
    const drift = driftInAnswer('session/new', thrown)
    throw drift === undefined ? agentError(thrown, options.nowMs) : driftError('the agent', drift, thrown)
  })
  const id = isJsonObject(answer) ? answer['sessionId'] : undefined
  if (!isJsonObject(answer) || !isSessionId(id)) throw driftError('the agent', 'session id of session/new missing')
  agent.sessions.set(id, { costUsd: 0 })
  return { id, answer }
}

async function resumeSession(
  agent: AcpAgent,
  options: OpenSessionOptions,
  signal: AbortSignal,
): Promise<OpenedSession> {
  const { sessionId: id = '', nowMs } = options
  const { canLoad, canResume } = await agent.greeting
  if (!canLoad && !canResume) {
    throw new MoleculeError('session_lost', `the agent cannot load session ${id} into a new process`)
  }
  const method = canResume ? 'session/resume' : 'session/load'
  const params = { sessionId: id, ...sessionParams(options) }
  const answer = await agent.rpc.request(method, params, signal).catch((thrown: unknown) => {
    throw resumeError(thrown, id, nowMs)
  })
  if (method === 'session/load') await waitForReplay(agent, id, signal)
  agent.sessions.set(id, { costUsd: undefined })
  return { id, answer: isJsonObject(answer) ? answer : {} }
}

/** No word of the history for this long and it has been told; real time, it watches a process. */
const REPLAY_QUIET_MS = 200
const REPLAY_MS_MAX = 5000

/** Gemini answers `session/load` before it has told the history, whose last answer would then pass for the next one. */
async function waitForReplay({ listeners }: AcpAgent, sessionId: string, signal: AbortSignal): Promise<void> {
  const startMs = performance.now()
  let heardMs = startMs
  const update = () => {
    heardMs = performance.now()
  }
  listeners.set(sessionId, { update, permission: async () => ({ outcome: { outcome: 'cancelled' } }) })
  try {
    while (performance.now() - heardMs < REPLAY_QUIET_MS && performance.now() - startMs < REPLAY_MS_MAX) {
      await delay(REPLAY_QUIET_MS / 4, undefined, { signal })
    }
  } finally {
    listeners.delete(sessionId)
  }
}

const sessionParams = ({ cwd, mcpServers }: OpenSessionOptions) => ({ cwd, mcpServers: mcpServers.map(toWire) })

type ModelWish = Pick<OpenSessionOptions, 'nowMs' | 'onModelRefused'> & OpenedSession & { readonly model: string }

/** By the option of category `model`, or by what some agents had before there were options. */
async function setModel(agent: AcpAgent, options: ModelWish, signal: AbortSignal): Promise<void> {
  const { id, answer, model, nowMs, onModelRefused } = options
  const call = modelCall(answer, model, id)
  if (call === undefined) return
  if (call === 'none') return onModelRefused('the agent does not let itself be told a model')
  await agent.rpc.request(call.method, call.params, signal).catch((thrown: unknown) => {
    if (!(thrown instanceof RpcError)) throw thrown
    const { message } = agentError(thrown, nowMs)
    if (thrown.code === METHOD_NOT_FOUND) return onModelRefused(message)
    // It has another model, but not the one that the owner wants to pay for. The session is opened anew next time.
    agent.sessions.delete(id)
    throw new MoleculeError('bad_config', `the agent refuses the model ${model}: ${message}`, { cause: thrown })
  })
}

function modelCall(answer: OpenedSession['answer'], model: string, sessionId: string) {
  const options = Array.isArray(answer['configOptions']) ? answer['configOptions'].filter(isJsonObject) : []
  const option = options.find(({ category, id }) => category === 'model' || id === 'model')
  if (option !== undefined) {
    if (option['currentValue'] === model) return undefined
    return { method: 'session/set_config_option', params: { sessionId, configId: option['id'], value: model } }
  }
  const models = answer['models']
  if (!isJsonObject(models)) return 'none'
  if (models['currentModelId'] === model) return undefined
  return { method: 'session/set_model', params: { sessionId, modelId: model } }
}

function toWire({ name, command, args, env }: McpServer): object {
  return { name, command, args, env: Object.entries(env).map(([key, value]) => ({ name: key, value })) }
}
