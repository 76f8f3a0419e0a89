/**
 * Opens the session of an ACP agent that a turn runs in: the one that the process holds, one that it loads, or a new
 * one. Invariant: a session that cannot be continued is `session_lost`,
 * never silently a new one.
 */
import { setTimeout as delay } from 'node:timers/promises'
import type { McpServer as AcpMcpServer, NewSessionRequest, NewSessionResponse } from '@agentclientprotocol/sdk'
import { MoleculeError } from '../../../errors.ts'
import type { McpServer, McpStdioServer } from '../../backend.ts'
import { driftError, driftInAnswer } from '../failure/drift.ts'
import { isSessionId } from '../session-prompt.ts'
import type { AcpAgent, Greeting } from './acp-agent.ts'
import { agentError, resumeError } from './acp-errors.ts'
import { PERMISSION_CANCELLED } from './permission.ts'
import { chooseSessionModel, modelToGoBackTo, readModel } from './session-model.ts'
import { unchecked } from './wire.ts'

export interface OpenSessionOptions {
  readonly sessionId?: string | undefined
  readonly cwd: string
  readonly mcpServers: readonly McpServer[]
  readonly model: string | undefined
  /** The model that a new session would get, as the token of `sessionId` says. */
  readonly usualModel?: string | undefined
  readonly nowMs: number
  /** Called if this agent cannot set a model. */
  readonly onModelRefused: (why: string) => void
}

/** The session of the turn. `isResumed`: the process did not hold it before this turn. */
export interface OpenSession {
  readonly id: string
  readonly isResumed: boolean
  /** For the session's token: the model to go back to, if the session has another one. */
  readonly usualModel: string | undefined
}

export async function openSession(
  agent: AcpAgent,
  options: OpenSessionOptions,
  signal: AbortSignal,
): Promise<OpenSession> {
  const { sessionId } = options
  const isHeld = sessionId !== undefined && agent.sessions.has(sessionId)
  const id = isHeld ? sessionId : await openInProcess(agent, options, signal)
  await chooseSessionModel(agent, { ...options, id }, signal)
  return { id, isResumed: sessionId !== undefined && !isHeld, usualModel: modelToGoBackTo(agent, id) }
}

const openInProcess = (agent: AcpAgent, options: OpenSessionOptions, signal: AbortSignal): Promise<string> =>
  options.sessionId === undefined ? newSession(agent, options, signal) : resumeSession(agent, options, signal)

async function newSession(agent: AcpAgent, options: OpenSessionOptions, signal: AbortSignal): Promise<string> {
  const greeting = await agent.greeting
  const params = sessionParams(options, greeting)
  const result = await agent.rpc.request('session/new', params, signal).catch((thrown: unknown) => {
    const drift = driftInAnswer('session/new', thrown)
    throw drift === undefined ? agentError(thrown, options.nowMs) : driftError('the agent', drift, thrown)
  })
  const answer = unchecked<NewSessionResponse>(result)
  const { sessionId: id } = answer
  if (!isSessionId(id)) throw driftError('the agent', 'session id of session/new missing')
  const model = readModel(answer)
  agent.sessions.set(id, { costUsd: 0, model: { ...model, usual: model.current } })
  return id
}

async function resumeSession(agent: AcpAgent, options: OpenSessionOptions, signal: AbortSignal): Promise<string> {
  const { sessionId: id = '', nowMs, usualModel: usual } = options
  const greeting = await agent.greeting
  const { canLoad, canResume } = greeting
  if (!canLoad && !canResume) {
    throw new MoleculeError('session_lost', `the agent cannot load session ${id} into a new process`)
  }
  const method = canResume ? 'session/resume' : 'session/load'
  const params = { sessionId: id, ...sessionParams(options, greeting) }
  const answer = await agent.rpc.request(method, params, signal).catch((thrown: unknown) => {
    throw resumeError(thrown, id, nowMs)
  })
  if (method === 'session/load') await waitForReplay(agent, id, signal)
  agent.sessions.set(id, { costUsd: undefined, model: { ...readModel(unchecked(answer)), usual } })
  return id
}

/** The history is complete when the agent sends nothing of it for this long. Real time: it watches a process. */
const REPLAY_QUIET_MS = 200
/** The wait ends after this, even if the agent still sends history. */
const REPLAY_MS_MAX = 5000

/**
 * Gemini answers `session/load` before it has sent the history. Without this wait the last answer of the history would
 * be taken for the answer to the next prompt.
 */
async function waitForReplay({ listeners }: AcpAgent, sessionId: string, signal: AbortSignal): Promise<void> {
  const startMs = performance.now()
  let lastUpdateMs = startMs
  const update = () => {
    lastUpdateMs = performance.now()
  }
  listeners.set(sessionId, { update, permission: () => Promise.resolve(PERMISSION_CANCELLED) })
  try {
    while (performance.now() - lastUpdateMs < REPLAY_QUIET_MS && performance.now() - startMs < REPLAY_MS_MAX) {
      await delay(REPLAY_QUIET_MS / 4, undefined, { signal })
    }
  } finally {
    listeners.delete(sessionId)
  }
}

const sessionParams = ({ cwd, mcpServers }: OpenSessionOptions, { acceptsMcpUrls }: Greeting): NewSessionRequest => ({
  cwd,
  mcpServers: mcpServers.map((server) => {
    if (!('url' in server)) return toStdioServer(server)
    if (!acceptsMcpUrls) return toStdioServer({ ...server.program, name: server.name })
    const { name, url, token } = server
    return { type: 'http', name, url, headers: [{ name: 'Authorization', value: `Bearer ${token}` }] }
  }),
})

function toStdioServer({ name, command, args, env }: McpStdioServer): AcpMcpServer {
  return { name, command, args: [...args], env: Object.entries(env).map(([key, value]) => ({ name: key, value })) }
}
