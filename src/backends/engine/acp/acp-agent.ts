/**
 * One agent process that speaks the Agent Client Protocol (ACP), with all of its sessions. Starts the process, greets
 * it, and routes its messages to the prompt that runs on their session. Invariant: a permission request for a session
 * without a listener is refused. The agent gets no access to our files and terminals: it has its own.
 */
import type {
  AgentCapabilities,
  Implementation,
  InitializeResponse,
  McpCapabilities,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionCapabilities,
  SessionNotification,
} from '@agentclientprotocol/sdk'
import type { Log } from '../../../log.ts'
import type { Processes, RunningProcess, SpawnOptions } from '../../../process/processes.ts'
import { isJsonObject } from '../../../protocol/json.ts'
import { onAbort } from '../../../wait.ts'
import { exitAtStart, type StartFacts, unexpectedExit } from '../failure/agent-errors.ts'
import { driftError, driftInAnswer } from '../failure/drift.ts'
import { createRpc, unknownMethod, writeOrEnd } from '../json-rpc.ts'
import { OUTPUT_BYTES_MAX } from '../turn-engine.ts'
import type { AgentProcess } from '../warm/warm-turn.ts'
import { type AcpAuthMethod, logIn, readAuthMethods } from './auth-method.ts'
import { followLogFile } from './log-file.ts'
import { PERMISSION_CANCELLED } from './permission.ts'
import { type AcpRpc, PROTOCOL_VERSION, type Unchecked, unchecked } from './wire.ts'

/** The version of our ACP client, not of a release. */
const CLIENT: Implementation = { name: 'molecule', title: 'Molecule', version: '1' }

/** Receives the messages of one session while a prompt runs on it. */
export interface SessionListener {
  /** `update` of a `session/update`. */
  update(update: unknown): void
  /** Answers a `session/request_permission`. */
  permission(request: Unchecked<RequestPermissionRequest>): Promise<RequestPermissionResponse>
  /** The agent's log says that a call of the model failed. */
  callFailed?(call: FailedCall): void
}

/** A failed call of the model, as the agent logs it. */
export interface FailedCall {
  /** The session of the call: the turn's own, or one of a subagent. */
  readonly sessionId: string
  /** The error. */
  readonly text: string
  /** The HTTP status of the provider, if the log says it. */
  readonly status?: number | undefined
  /** The agent says that it tries this call again. Absent: it does so only if a retry can help. */
  readonly isRetried?: boolean
}

/** The agent's answer to `initialize`. */
export interface Greeting {
  readonly canLoad: boolean
  /** The agent continues a session without sending its history again. */
  readonly canResume: boolean
  /** The agent accepts MCP servers at a URL. */
  readonly acceptsMcpUrls: boolean
  readonly authMethods: readonly AcpAuthMethod[]
  /** The agent's own name for itself, e.g. `hermes-agent`. */
  readonly name: string | undefined
  readonly version: string | undefined
}

/** Failed calls in a row after which the turn ends. opencode would go on for a minute; the runtime tries again anyway. */
export const FAILED_CALLS_MAX = 2

/** What the agent told of the model when it opened the session, and what was set since. */
export interface SessionModel {
  /** The config option of the model; null: `session/set_model`, which older agents have; undefined: no way to set one. */
  readonly configId: string | null | undefined
  readonly current: unknown
  /** What a new session gets. Unknown for a session that was loaded, unless its token says it. */
  readonly usual: unknown
}

export interface AcpSession {
  /** Its cost so far, if the agent reports it. */
  readonly costUsd: number | undefined
  readonly model: SessionModel
}

export interface AcpAgent extends AgentProcess {
  readonly rpc: AcpRpc
  /** Rejects if the agent does not speak ACP as we do, or ends first. */
  readonly greeting: Promise<Greeting>
  /** By session id. */
  readonly listeners: Map<string, SessionListener>
  /** The sessions that this process holds. */
  readonly sessions: Map<string, AcpSession>
  /** How many turns run in the process now. */
  turns: number
  /** Settles when the cleanup after a cancelled turn has ended. */
  cleanup: Promise<unknown>
}

export interface AcpAgentOptions {
  readonly processes: Processes
  readonly spawning: SpawnOptions
  readonly log: Log
  /** Named in the error when the process ends. */
  readonly facts: () => StartFacts
  /** The login method to use after the greeting. */
  readonly authMethod?: string | undefined
  /** A file that the agent logs to. It is read like stderr. */
  readonly logFile?: string | undefined
  /** The failed call that a line of stderr reports; undefined for every other line. */
  readonly failedCallIn?: ((line: string) => FailedCall | undefined) | undefined
}

export function startAcpAgent(options: AcpAgentOptions): AcpAgent {
  const { processes, spawning, log, facts, failedCallIn, authMethod, logFile } = options
  const listeners: AcpAgent['listeners'] = new Map()
  let running: RunningProcess | undefined
  const rpc = createRpc({
    write: async (text) => running !== undefined && (await writeOrEnd(running, text)),
    onNotification: (method, params) => {
      if (method !== 'session/update') return
      const { sessionId, update } = unchecked<SessionNotification>(params)
      listeners.get(String(sessionId))?.update(update)
    },
    onRequest: async (method, params) => {
      if (method !== 'session/request_permission' || !isJsonObject(params)) throw unknownMethod(method)
      const request = unchecked<RequestPermissionRequest>(params)
      return (await listeners.get(String(request.sessionId))?.permission(request)) ?? PERMISSION_CANCELLED
    },
    log,
  })
  const onErrorLine = (line: string) => {
    const call = failedCallIn?.(line)
    // To every listener: the session of a subagent has none.
    if (call !== undefined) for (const listener of listeners.values()) listener.callFailed?.(call)
  }
  running = processes.start({
    ...spawning,
    lineBytesMax: OUTPUT_BYTES_MAX,
    onLine: (line) => rpc.receive(line),
    ...(failedCallIn !== undefined && { onErrorLine }),
  })
  const logged = logFile === undefined ? undefined : followLogFile(logFile, onErrorLine)
  void running.ended.then(() => logged?.stop())
  let isAtStart = true
  void running.ended.then((result) => rpc.end((isAtStart ? exitAtStart : unexpectedExit)(result, facts())))
  const greeting = greet(rpc, spawning.command[0]).finally(() => {
    isAtStart = false
  })
  const ready = authMethod === undefined ? greeting : logIn(rpc, greeting, authMethod)
  // An agent that fails before a turn waits for it must not end the platform with an unhandled rejection.
  greeting.catch(() => undefined)
  ready.catch(() => undefined)
  const { ended, stop } = running
  return {
    running,
    rpc,
    greeting: ready,
    listeners,
    sessions: new Map(),
    turns: 0,
    cleanup: Promise.resolve(),
    ended,
    stop,
  }
}

/** Starts an agent only to greet it. When this settles, the process has ended. */
export async function greetOnce(options: AcpAgentOptions, signal: AbortSignal): Promise<Greeting> {
  const agent = startAcpAgent(options)
  const release = onAbort(signal, () => void agent.stop())
  try {
    return await agent.greeting
  } finally {
    release()
    await agent.stop()
  }
}

async function greet(rpc: AcpRpc, program: string): Promise<Greeting> {
  const answer = await initialize(rpc).catch((thrown: unknown) => {
    const drift = driftInAnswer('initialize', thrown)
    throw drift === undefined ? thrown : driftError(program, drift, thrown)
  })
  const { protocolVersion, agentCapabilities, agentInfo, authMethods } = unchecked<InitializeResponse>(answer)
  if (protocolVersion !== PROTOCOL_VERSION) {
    throw driftError(program, `ACP ${PROTOCOL_VERSION} missing, it speaks ${String(protocolVersion)}`)
  }
  const { loadSession, sessionCapabilities, mcpCapabilities } = unchecked<AgentCapabilities>(agentCapabilities)
  const { resume } = unchecked<SessionCapabilities>(sessionCapabilities)
  const { name, version } = unchecked<Implementation>(agentInfo)
  return {
    canLoad: loadSession === true,
    canResume: isJsonObject(resume),
    acceptsMcpUrls: unchecked<McpCapabilities>(mcpCapabilities).http === true,
    authMethods: readAuthMethods(authMethods),
    name: typeof name === 'string' ? name : undefined,
    version: typeof version === 'string' ? version : undefined,
  }
}

function initialize(rpc: AcpRpc): Promise<unknown> {
  const clientCapabilities = { fs: { readTextFile: false, writeTextFile: false }, terminal: false }
  const params = { protocolVersion: PROTOCOL_VERSION, clientCapabilities, clientInfo: CLIENT }
  return rpc.request('initialize', params, new AbortController().signal)
}
