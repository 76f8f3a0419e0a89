/**
 * A warm codex: one `codex app-server` per conversation, with JSON-RPC over its stdin and stdout. Starts and greets the
 * process; warm-turn.ts runs the turns. Invariant: its messages reach only the turn that holds it, and a request while
 * no turn holds it is refused.
 */
import type { Log } from '../../log.ts'
import type { Processes, SpawnOptions } from '../../process/processes.ts'
import { isJsonObject } from '../../protocol/json.ts'
import { exitAtStart, type ProcessFacts, unexpectedExit } from '../engine/failure/agent-errors.ts'
import { driftError, driftInAnswer } from '../engine/failure/drift.ts'
import { createRpc, type Rpc, unknownMethod, writeOrEnd } from '../engine/json-rpc.ts'
import { OUTPUT_BYTES_MAX } from '../engine/turn-engine.ts'
import type { AgentProcess } from '../engine/warm/warm-turn.ts'
import { NO_TOTALS, type TokenTotals } from './session.ts'

/** The turn that holds the process. */
export interface AppServerListener {
  onNotification(method: string, params: unknown): void
  onRequest(method: string, params: unknown, signal: AbortSignal): Promise<unknown>
  /** The process has ended. */
  onEnd(): void
}

export interface AppServer extends AgentProcess {
  readonly rpc: Rpc
  /** Greets the process once and returns its version if it reports one. Rejects on drift, or if the process ended. */
  initialize(signal: AbortSignal): Promise<string | undefined>
  listener: AppServerListener | undefined
  /** The loaded thread, the model that was last set for it, and the tokens it has used. */
  thread: string | undefined
  model: string | undefined
  totals: TokenTotals
}

export interface AppServerOptions {
  readonly processes: Processes
  readonly spawning: Omit<SpawnOptions, 'stderrBytesKept'>
  readonly facts: () => ProcessFacts
  readonly log: Log
  /** Sent after the greeting: unlike `codex exec`, the app server reads no key from its environment. */
  readonly apiKey?: string | undefined
}

export function startAppServer({ processes, spawning, facts, log, apiKey }: AppServerOptions): AppServer {
  const rpc = createRpc({
    write: (text) => writeOrEnd(running, text),
    onNotification: (method, params) => server.listener?.onNotification(method, params),
    onRequest: async (method, params, signal) => {
      if (server.listener === undefined) throw unknownMethod(method)
      return server.listener.onRequest(method, params, signal)
    },
    log,
    omitVersion: true,
  })
  const running = processes.start({
    ...spawning,
    lineBytesMax: OUTPUT_BYTES_MAX,
    onLine: (line) => rpc.receive(line),
  })
  let isAtStart = true
  const ended = running.ended.then((result) => {
    const known = { ...facts(), misunderstanding: MISUNDERSTANDING }
    rpc.end((isAtStart ? exitAtStart : unexpectedExit)(result, known))
    server.listener?.onEnd()
  })
  let greeted: Promise<string | undefined> | undefined
  const server: AppServer = {
    running,
    rpc,
    ended,
    stop: () => running.stop(),
    initialize(signal) {
      greeted ??= initialize(rpc, apiKey, signal).finally(() => {
        isAtStart = false
      })
      return greeted
    },
    listener: undefined,
    thread: undefined,
    model: undefined,
    totals: NO_TOTALS,
  }
  return server
}

/** A codex without the command takes `app-server` for a prompt and wants a terminal. */
const MISUNDERSTANDING = { says: /stdin is not a terminal/i, missing: 'command app-server missing' }

async function initialize(rpc: Rpc, apiKey: string | undefined, signal: AbortSignal): Promise<string | undefined> {
  const clientInfo = { name: 'molecule', title: 'Molecule', version: '1' }
  const ask = (method: string, params: unknown) =>
    rpc.request(method, params, signal).catch((thrown: unknown) => {
      const drift = driftInAnswer(method, thrown)
      throw drift === undefined ? thrown : driftError('codex', drift, thrown)
    })
  const answer = await ask('initialize', { clientInfo, capabilities: null })
  // Not awaited: a process that does not read would block the turn.
  void rpc.notify('initialized', {})
  if (apiKey !== undefined) await ask('account/login/start', { type: 'apiKey', apiKey })
  const agent = isJsonObject(answer) ? answer['userAgent'] : undefined
  return typeof agent === 'string' ? /\/(\d[\w.+-]*)/.exec(agent)?.[1] : undefined
}
