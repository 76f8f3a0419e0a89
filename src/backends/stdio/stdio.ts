/**
 * The `stdio` backend: one program that keeps running. Each message is one line of JSON-RPC on its stdin (the A2A
 * request), each reply one line on its stdout. Messages of different conversations run at the same time; their ids
 * match replies to messages. When the program dies, its messages fail as retryable and the program is started again.
 * Invariant: when a turn ends, the program no longer works on its message.
 */
import { backoffMs } from '../../backoff.ts'
import type { Clock } from '../../clock.ts'
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import { childEnvironment } from '../../process/child-environment.ts'
import { abortableOr, sleep } from '../../wait.ts'
import type { Backend, BackendContext, BackendDefinition, Turn } from '../backend.ts'
import { unexpectedExit } from '../engine/failure/agent-errors.ts'
import { openProgramBrief, type ProgramBrief } from '../engine/files/program-brief.ts'
import { createTurnFolders, type TurnFolders } from '../engine/files/turn-folders.ts'
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
import { type BackendOptions, durationOption } from '../options.ts'
import { cancelOf, readReply, requestOf } from './a2a-lines.ts'

/** Messages in the program at the same time; a further message waits for its turn. */
const MESSAGES_MAX = 256
/** How long the program may take to confirm a cancel. After that it is killed. */
const CANCEL_MS_MAX = 1_000
const RESTART_FIRST_MS = 250
const RESTART_LONGEST_MS = 30_000

export const stdio: BackendDefinition = {
  name: 'stdio',
  summary: 'one program that keeps running: one line of JSON-RPC a message on stdin, one line a reply on stdout',
  options: {
    cmd: 'the command, run by /bin/sh -c; required',
    timeout: 'how long a reply may take, e.g. 30s, 5m, or none (5m)',
  },
  reportsTools: false,
  readsBrief: true,
  usesHistory: true,
  isFree: true,
  create: (options, context) => createStdio(readSettings(options), context),
}

interface Settings {
  readonly cmd: string
  readonly timeout: string
  readonly timeoutMs: number | undefined
}

function readSettings(options: BackendOptions): Settings {
  const timeoutMs = durationOption(options, 'timeout', '5m')
  return { cmd: options.require('cmd'), timeout: options.get('timeout', '5m'), timeoutMs }
}

interface Program extends AgentProcess {
  readonly rpc: Rpc
}

interface StdioContext extends BackendContext {
  readonly settings: Settings
  readonly shell: Shell
  readonly warm: WarmPool<Program>
  readonly backoff: RestartBackoff
  readonly folders: TurnFolders
}

function createStdio(settings: Settings, context: BackendContext): Backend {
  const { clock } = context
  const shell = shellFor(process.platform, context.environment)
  const turns = createTurnEngine({ clock, outputBytesMax: OUTPUT_BYTES_MAX, maxTimeMs: settings.timeoutMs })
  const idleMs = Number.POSITIVE_INFINITY
  const warm = createWarmPool<Program>({ processesMax: 1, idleMs, clock, turnsPerProcessMax: MESSAGES_MAX })
  const folders = createTurnFolders()
  const stdioContext: StdioContext = {
    ...context,
    settings,
    shell,
    warm,
    backoff: createRestartBackoff(clock),
    folders,
  }
  return {
    name: stdio.name,
    validate: () => validateShell(shell),
    run: (turn, signal) => turns.run((stream) => runTurn(turn, stdioContext, stream), signal, turn.onWait),
    async close() {
      await turns.close()
      await warm.close()
      folders.close()
    },
  }
}

async function runTurn(turn: Turn, stdioContext: StdioContext, stream: TurnStream): Promise<EndEvent> {
  const { warm, clock, backoff, folders } = stdioContext
  if (warm.size === 0) await backoff.wait(stream.signal)
  // One program serves all conversations, so it has no token of one, and cannot call `a2a`.
  const brief = await openProgramBrief(turn, { folders, hasCommands: false, context: stdioContext, stream })
  const launch = { fingerprint: turn.workingDir, start: () => startProgram(turn, stdioContext) }
  try {
    const end = await runWarmTurn({ warm, clock, key: stdio.name, launch }, stream, ({ agent }) =>
      sendAndWait({ turn, brief, agent, backoff, clock }, stream),
    )
    if (end.type === 'done') await brief.deliver()
    return end
  } finally {
    folders.remove(brief.folder)
  }
}

function startProgram(turn: Turn, { processes, environment, settings, shell, log, backoff, clock }: StdioContext) {
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
    const { cmd: command, timeout } = settings
    const error = unexpectedExit(result, { command, timeout, outputBytesMax: OUTPUT_BYTES_MAX, nowMs: clock.nowMs() })
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

async function sendAndWait(
  {
    turn,
    brief,
    agent,
    backoff,
    clock,
  }: Pick<StdioContext, 'backoff' | 'clock'> & { turn: Turn; brief: ProgramBrief; agent: Program },
  stream: TurnStream,
): Promise<WarmTurnResult> {
  const { rpc } = agent
  const { method, params } = requestOf(turn.request, brief.fields)
  // Not the turn's own signal: after a cancel, the program has a moment to confirm that it stopped.
  const giveUp = new AbortController()
  const answered = rpc.request(method, params, giveUp.signal).then(readReply, toFailed)
  stream.emit({ type: 'activity' })
  try {
    const end = await abortableOr(answered, stream.signal, undefined)
    if (end !== undefined) {
      if (end.type === 'done') backoff.answered()
      return { end, isUsable: true }
    }
    const cancel = cancelOf(turn.request)
    void rpc.request(cancel.method, cancel.params, giveUp.signal).catch(() => undefined)
    const confirmed = await Promise.race([answered, sleep(clock, CANCEL_MS_MAX, giveUp.signal)])
    return { end: { type: 'failed', error: turnCanceled() }, isUsable: confirmed !== undefined }
  } finally {
    giveUp.abort()
  }
}

/** A JSON-RPC error is the program's answer. Its `data.retryable` says whether a retry can help. */
function toFailed(thrown: unknown): EndEvent {
  if (!(thrown instanceof RpcError)) return { type: 'failed', error: toMoleculeError(thrown) }
  const retryable = (thrown.data as { retryable?: unknown } | undefined)?.retryable === true
  const details = { rpcCode: thrown.code }
  return { type: 'failed', error: new MoleculeError('agent_failed', thrown.message, { retryable, details }) }
}

/** The pause before a program that died is started again: none the first time, then twice as long after each death. */
export interface RestartBackoff {
  /** Resolves when the program may start, or when the signal aborts. */
  wait(signal: AbortSignal): Promise<void>
  died(): void
  /** The program works: the next death counts as the first. */
  answered(): void
}

export function createRestartBackoff(clock: Clock): RestartBackoff {
  let deaths = 0
  let notBeforeMs = 0
  return {
    async wait(signal) {
      const waitMs = notBeforeMs - clock.monotonicMs()
      if (waitMs > 0) await sleep(clock, waitMs, signal)
    },
    died() {
      deaths += 1
      const pauseMs = backoffMs(deaths - 2, RESTART_FIRST_MS, RESTART_LONGEST_MS)
      notBeforeMs = deaths === 1 ? 0 : clock.monotonicMs() + pauseMs
    },
    answered() {
      deaths = 0
    },
  }
}
