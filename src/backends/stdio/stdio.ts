/**
 * The `stdio` backend: one program that stays, a line of JSON-RPC for each message (the A2A request), a line for each
 * reply. Messages of different conversations are in it at the same time and are told apart by their ids. When it dies,
 * what it was working on fails in a way that is tried again, and it is started anew, later each time it dies without
 * having answered. Invariant: a message that was cancelled or is late is no longer being worked on when its turn ends.
 */
import { parseDuration } from '../../duration.ts'
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import { childEnvironment } from '../../process/child-environment.ts'
import type { Backend, BackendContext, BackendDefinition, Turn } from '../backend.ts'
import { type ProcessFacts, unexpectedExit } from '../engine/failure/agent-errors.ts'
import { createRpc, type Rpc, RpcError, unknownMethod } from '../engine/json-rpc.ts'
import { type Shell, shellFor, validateShell } from '../engine/shell.ts'
import {
  createTurnEngine,
  type EndEvent,
  OUTPUT_BYTES_MAX,
  type TurnStream,
  turnCanceled,
} from '../engine/turn-engine.ts'
import { createWarmPool, type WarmPool } from '../engine/warm/warm-pool.ts'
import { type AgentProcess, runWarmTurn, type WarmTurnResult } from '../engine/warm/warm-turn.ts'
import { type BackendOptions, badOption } from '../options.ts'
import { cancelOf, readReply, requestOf } from './a2a-lines.ts'
import { createRestartBackoff, type RestartBackoff } from './backoff.ts'

const MESSAGES_MAX = 256
/** What a program gets to say that it has stopped working on a message, before it is ended for it. */
const CANCEL_MS_MAX = 1_000

export const stdio: BackendDefinition = {
  name: 'stdio',
  summary: 'one program that stays: a line of JSON-RPC a message on stdin, a line a reply on stdout',
  options: {
    cmd: 'the command, run by /bin/sh -c (cmd.exe /c on Windows); required',
    timeout: 'how long a reply may take, e.g. 30s, 5m, or none (5m)',
  },
  reportsTools: false,
  isFree: true,
  create: (options, context) => createStdio(readSettings(options), context),
}

interface Settings {
  readonly cmd: string
  readonly timeout: string
  readonly timeoutMs: number | undefined
}

function readSettings(options: BackendOptions): Settings {
  const timeout = options.get('timeout', '5m')
  const timeoutMs = timeout === 'none' ? undefined : parseDuration(timeout)
  if (timeout !== 'none' && !(timeoutMs && timeoutMs > 0)) {
    throw badOption('timeout', timeout, 'a positive duration such as 30s or 5m, or none')
  }
  return { cmd: options.require('cmd'), timeout, timeoutMs }
}

interface Program extends AgentProcess {
  readonly rpc: Rpc
}

interface StdioContext extends BackendContext {
  readonly settings: Settings
  readonly shell: Shell
  readonly warm: WarmPool<Program>
  readonly backoff: RestartBackoff
}

function createStdio(settings: Settings, context: BackendContext): Backend {
  const { clock } = context
  const shell = shellFor(process.platform, context.environment)
  const turns = createTurnEngine({ clock, outputBytesMax: OUTPUT_BYTES_MAX, maxTimeMs: settings.timeoutMs })
  const idleMs = Number.POSITIVE_INFINITY
  const warm = createWarmPool<Program>({ processesMax: 1, idleMs, clock, turnsPerProcessMax: MESSAGES_MAX })
  const stdioContext: StdioContext = { ...context, settings, shell, warm, backoff: createRestartBackoff(clock) }
  return {
    name: stdio.name,
    validate: () => validateShell(shell),
    run: (turn, signal) => turns.run((stream) => runTurn(turn, stdioContext, stream), signal),
    async close() {
      await turns.close()
      await warm.close()
    },
  }
}

async function runTurn(turn: Turn, stdioContext: StdioContext, stream: TurnStream): Promise<EndEvent> {
  const { warm, clock, backoff } = stdioContext
  if (warm.size === 0) await backoff.wait(stream.signal)
  const launch = { fingerprint: turn.workingDir, start: () => startProgram(turn, stdioContext) }
  return runWarmTurn({ warm, clock, key: stdio.name, launch }, stream, ({ agent }) =>
    sendAndWait({ ...stdioContext, turn, agent }, stream),
  )
}

function startProgram(turn: Turn, stdioContext: StdioContext): Program {
  const { processes, environment, settings, shell, log, backoff } = stdioContext
  const rpc = createRpc({
    write: (text) => running.write(text),
    onNotification: () => undefined,
    onRequest: async (method) => {
      throw unknownMethod(method)
    },
    log,
  })
  const running = processes.start({
    command: shell.command(settings.cmd),
    cwd: turn.workingDir,
    env: childEnvironment(environment, {}),
    mark: turn.id,
    lineBytesMax: OUTPUT_BYTES_MAX,
    onLine: (line) => rpc.receive(line),
  })
  let isStopped = false
  const ended = running.ended.then((result) => {
    const error = unexpectedExit(result, factsOf(stdioContext))
    if (!isStopped) {
      backoff.died()
      log.warn({ err: error, workspace: turn.request.workspace_id }, 'the program of a stdio workspace has ended')
    }
    rpc.end(error)
  })
  const stop = () => {
    isStopped = true
    return running.stop()
  }
  return { running, rpc, ended, stop }
}

interface Conversing extends StdioContext {
  readonly turn: Turn
  readonly agent: Program
}

async function sendAndWait({ turn, agent, backoff, clock }: Conversing, stream: TurnStream): Promise<WarmTurnResult> {
  const { rpc } = agent
  const { method, params } = requestOf(turn.request)
  // Not by the turn's own signal: a cancelled message is waited for, for a moment, to see whether it was given up.
  const giveUp = new AbortController()
  const answered = rpc.request(method, params, giveUp.signal).then(readReply, toFailed)
  const aborted = Promise.withResolvers<undefined>()
  const onAbort = () => aborted.resolve(undefined)
  stream.signal.addEventListener('abort', onAbort, { once: true })
  if (stream.signal.aborted) onAbort()
  stream.emit({ type: 'activity' })
  try {
    const end = await Promise.race([answered, aborted.promise])
    if (end !== undefined) {
      if (end.type === 'done') backoff.answered()
      return { end, isUsable: true }
    }
    const cancel = cancelOf(turn.request)
    void rpc.request(cancel.method, cancel.params, giveUp.signal).catch(() => undefined)
    const late = Promise.withResolvers<undefined>()
    const cancelTimer = clock.after(CANCEL_MS_MAX, () => late.resolve(undefined))
    const stopped = await Promise.race([answered, late.promise])
    cancelTimer()
    return { end: CANCELED, isUsable: stopped !== undefined }
  } finally {
    giveUp.abort()
    stream.signal.removeEventListener('abort', onAbort)
  }
}

const CANCELED: EndEvent = { type: 'failed', error: turnCanceled() }

/** An error of the program's own is its answer; it may say itself that trying again can help. */
function toFailed(thrown: unknown): EndEvent {
  if (!(thrown instanceof RpcError)) return { type: 'failed', error: toMoleculeError(thrown) }
  const retryable = (thrown.data as { retryable?: unknown } | undefined)?.retryable === true
  const details = { rpcCode: thrown.code }
  return { type: 'failed', error: new MoleculeError('agent_failed', thrown.message, { retryable, details }) }
}

function factsOf({ settings, clock }: StdioContext): ProcessFacts {
  return {
    command: settings.cmd,
    timeout: settings.timeout,
    outputBytesMax: OUTPUT_BYTES_MAX,
    nowMs: clock.nowMs(),
  }
}
