/**
 * The `stdio` backend: one program that stays, a line of JSON-RPC for each message (the A2A request), a line for each
 * reply. Messages of different conversations are in it at the same time and are told apart by their ids. When it dies,
 * what it was working on fails in a way that is tried again, and it is started anew, later each time it dies without
 * having answered. Invariant: a message that was cancelled or is late is no longer being worked on when its turn ends.
 */
import { parseDuration } from '../../duration.ts'
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import { childEnvironment } from '../../process/environment.ts'
import type { Backend, BackendContext, BackendDefinition, Turn } from '../backend.ts'
import { deathOf, type ProcessFacts } from '../engine/cli-errors.ts'
import { createRpc, type Rpc, RpcError, unknownMethod } from '../engine/json-rpc.ts'
import { createTurns, type EndEvent, OUTPUT_BYTES_MAX, type Telling } from '../engine/turns.ts'
import { createWarm, type Warm } from '../engine/warm.ts'
import { type WarmProcess, type Worked, warmTurn } from '../engine/warm-turn.ts'
import { type Shell, shellFor, validateShell } from '../exec/shell.ts'
import { badOption, type Options } from '../options.ts'
import { type Backoff, createBackoff } from './backoff.ts'
import { cancelOf, readReply, requestOf } from './lines.ts'

const MESSAGES_MAX = 256
const STDERR_BYTES_KEPT = 16 * 1024
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

function readSettings(options: Options): Settings {
  const timeout = options.get('timeout', '5m')
  const timeoutMs = timeout === 'none' ? undefined : parseDuration(timeout)
  if (timeout !== 'none' && !(timeoutMs && timeoutMs > 0)) {
    throw badOption('timeout', timeout, 'a positive duration such as 30s or 5m, or none')
  }
  return { cmd: options.require('cmd'), timeout, timeoutMs }
}

interface Program extends WarmProcess {
  readonly rpc: Rpc
}

interface House extends BackendContext {
  readonly settings: Settings
  readonly shell: Shell
  readonly warm: Warm<Program>
  readonly backoff: Backoff
}

function createStdio(settings: Settings, context: BackendContext): Backend {
  const { clock } = context
  const shell = shellFor(process.platform, context.environment)
  const turns = createTurns({ clock, outputBytesMax: OUTPUT_BYTES_MAX, maxTimeMs: settings.timeoutMs })
  const idleMs = Number.POSITIVE_INFINITY
  const warm = createWarm<Program>({ max: 1, idleMs, clock, sessionsMax: MESSAGES_MAX })
  const house: House = { ...context, settings, shell, warm, backoff: createBackoff(clock) }
  return {
    name: stdio.name,
    validate: () => validateShell(shell),
    run: (turn, signal) => turns.run((telling) => perform(turn, house, telling), signal),
    async close() {
      await turns.close()
      await warm.close()
    },
  }
}

async function perform(turn: Turn, house: House, telling: Telling): Promise<EndEvent> {
  const { warm, clock, backoff } = house
  if (warm.size === 0) await backoff.wait(telling.signal)
  const launch = { fingerprint: turn.workingDir, start: () => startProgram(turn, house) }
  return warmTurn({ warm, clock, key: stdio.name, launch }, telling, ({ agent }) =>
    converse({ ...house, turn, agent }, telling),
  )
}

function startProgram(turn: Turn, house: House): Program {
  const { processes, environment, settings, shell, log, backoff } = house
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
    stderrBytesKept: STDERR_BYTES_KEPT,
    lineBytesMax: OUTPUT_BYTES_MAX,
    onLine: (line) => rpc.receive(line),
  })
  let isStopped = false
  const ended = running.ended.then((result) => {
    const error = deathOf(result, factsOf(house))
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

interface Conversing extends House {
  readonly turn: Turn
  readonly agent: Program
}

async function converse({ turn, agent, backoff, clock }: Conversing, telling: Telling): Promise<Worked> {
  const { rpc } = agent
  const { method, params } = requestOf(turn.request)
  // Not by the turn's own signal: a cancelled message is waited for, for a moment, to see whether it was given up.
  const giveUp = new AbortController()
  const answered = rpc.request(method, params, giveUp.signal).then(readReply, toFailed)
  const aborted = Promise.withResolvers<undefined>()
  const onAbort = () => aborted.resolve(undefined)
  telling.signal.addEventListener('abort', onAbort, { once: true })
  if (telling.signal.aborted) onAbort()
  telling.emit({ type: 'activity' })
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
    telling.signal.removeEventListener('abort', onAbort)
  }
}

const CANCELED: EndEvent = { type: 'failed', error: new MoleculeError('canceled', 'the turn was cancelled') }

/** An error of the program's own is its answer; it may say itself that trying again can help. */
function toFailed(thrown: unknown): EndEvent {
  if (!(thrown instanceof RpcError)) return { type: 'failed', error: toMoleculeError(thrown) }
  const retryable = (thrown.data as { retryable?: unknown } | undefined)?.retryable === true
  const details = { rpcCode: thrown.code }
  return { type: 'failed', error: new MoleculeError('agent_failed', thrown.message, { retryable, details }) }
}

function factsOf({ settings, clock }: House): ProcessFacts {
  return {
    command: settings.cmd,
    timeout: settings.timeout,
    outputBytesMax: OUTPUT_BYTES_MAX,
    nowMs: clock.nowMs(),
  }
}
