/**
 * One process that speaks the Agent Client Protocol, with all of its sessions: started, greeted, its messages handed to
 * whoever runs a prompt on that session. Invariant: what it asks for a session that nobody listens to is refused, and
 * it is offered neither our files nor our terminals: it has its own, in its own environment.
 */
import type { Log } from '../../../log.ts'
import type { Processes, RunningProcess, SpawnOptions } from '../../../process/processes.ts'
import { isJsonObject, type JsonObject } from '../../../protocol/json.ts'
import { exitAtStart, type StartFacts, unexpectedExit } from '../failure/agent-errors.ts'
import { driftError, driftInAnswer } from '../failure/drift.ts'
import { createRpc, type Rpc, unknownMethod } from '../json-rpc.ts'
import { OUTPUT_BYTES_MAX } from '../turn-engine.ts'
import type { AgentProcess } from '../warm/warm-turn.ts'

const PROTOCOL_VERSION = 1
/** The version is of how we speak ACP, not of a release. */
const CLIENT = { name: 'molecule', title: 'Molecule', version: '1' }

/** Whoever runs a prompt on a session. */
export interface SessionListener {
  update(update: unknown): void
  /** Its result is the answer to `session/request_permission`. */
  permission(params: JsonObject): Promise<unknown>
}

/** What the agent said of itself when it was greeted. */
export interface Greeting {
  readonly canLoad: boolean
  /** Goes on with a session without telling all of it again. */
  readonly canResume: boolean
  readonly version: string | undefined
}

export interface AcpAgent extends AgentProcess {
  readonly rpc: Rpc
  /** Rejects where the agent cannot be talked to. */
  readonly greeting: Promise<Greeting>
  readonly listeners: Map<string, SessionListener>
  /** Sessions that this process holds, with what each has cost so far where it says so. */
  readonly sessions: Map<string, { costUsd: number | undefined }>
  /** Turns that are running in it. */
  turns: number
  /** Settled when nothing is being cleaned up after a cancelled turn. */
  cleanup: Promise<unknown>
}

export interface AcpAgentOptions {
  readonly processes: Processes
  readonly spawning: Omit<SpawnOptions, 'stderrBytesKept'>
  readonly log: Log
  /** For the words in which its end is told to whoever waits for it. */
  readonly facts: () => StartFacts
}

export function startAcpAgent({ processes, spawning, log, facts }: AcpAgentOptions): AcpAgent {
  const listeners: AcpAgent['listeners'] = new Map()
  let running: RunningProcess | undefined
  const rpc = createRpc({
    write: (text) => running?.write(text) ?? Promise.resolve(false),
    onNotification: (method, params) => {
      if (method === 'session/update' && isJsonObject(params)) listenerOf(listeners, params)?.update(params['update'])
    },
    onRequest: async (method, params) => {
      const listener = isJsonObject(params) ? listenerOf(listeners, params) : undefined
      if (method !== 'session/request_permission' || !isJsonObject(params)) throw unknownMethod(method)
      return listener === undefined ? { outcome: { outcome: 'cancelled' } } : listener.permission(params)
    },
    log,
  })
  running = processes.start({
    ...spawning,
    lineBytesMax: OUTPUT_BYTES_MAX,
    onLine: (line) => rpc.receive(line),
  })
  let isAtStart = true
  void running.ended.then((result) => rpc.end((isAtStart ? exitAtStart : unexpectedExit)(result, facts())))
  const greeting = greet(rpc, spawning.command[0]).finally(() => {
    isAtStart = false
  })
  // Whoever runs a turn waits for it; until then its failure is nobody's.
  greeting.catch(() => undefined)
  const { ended, stop } = running
  return { running, rpc, greeting, listeners, sessions: new Map(), turns: 0, cleanup: Promise.resolve(), ended, stop }
}

async function greet(rpc: Rpc, program: string): Promise<Greeting> {
  const answer = await initialize(rpc).catch((thrown: unknown) => {
    const drift = driftInAnswer('initialize', thrown)
    throw drift === undefined ? thrown : driftError(program, drift, thrown)
  })
  const { protocolVersion, agentCapabilities, agentInfo } = isJsonObject(answer) ? answer : {}
  if (protocolVersion !== PROTOCOL_VERSION) {
    throw driftError(program, `ACP ${PROTOCOL_VERSION} missing, it speaks ${String(protocolVersion)}`)
  }
  const capabilities = isJsonObject(agentCapabilities) ? agentCapabilities : {}
  const ofSessions = capabilities['sessionCapabilities']
  const version = isJsonObject(agentInfo) ? agentInfo['version'] : undefined
  return {
    canLoad: capabilities['loadSession'] === true,
    canResume: isJsonObject(ofSessions) && isJsonObject(ofSessions['resume']),
    version: typeof version === 'string' ? version : undefined,
  }
}

function initialize(rpc: Rpc): Promise<unknown> {
  const clientCapabilities = { fs: { readTextFile: false, writeTextFile: false }, terminal: false }
  const params = { protocolVersion: PROTOCOL_VERSION, clientCapabilities, clientInfo: CLIENT }
  return rpc.request('initialize', params, new AbortController().signal)
}

function listenerOf(listeners: AcpAgent['listeners'], params: JsonObject): SessionListener | undefined {
  const { sessionId } = params
  return typeof sessionId === 'string' ? listeners.get(sessionId) : undefined
}
