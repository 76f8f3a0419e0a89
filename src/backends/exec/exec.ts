/**
 * The `exec` backend: a shell command for each message, the text on its stdin, its stdout the reply. Stateless: each
 * turn is a fresh process, so there is no session to keep. The command line belongs to the workspace's owner; what
 * the sender wrote never gets near it.
 */
import { parseDuration } from '../../duration.ts'
import { childEnvironment } from '../../process/child-environment.ts'
import type { ProcessResult } from '../../process/processes.ts'
import { joinText } from '../../protocol/request.ts'
import type { Backend, BackendContext, BackendDefinition, Turn } from '../backend.ts'
import { messageVariables } from '../engine/environment/agent-environment.ts'
import { type RunFacts, runFailure, stderrTail } from '../engine/failure/run-failure.ts'
import { type Shell, shellFor, validateShell } from '../engine/shell.ts'
import { type BackendOptions, badOption, booleanOption } from '../options.ts'
import { createOneShots, type OneShot } from './one-shot.ts'
import { createDeltaReader, replyPart } from './stdout-reply.ts'

const OUTPUT_BYTES_MAX = 10 * 1024 * 1024
const STDERR_BYTES_KEPT = 16 * 1024
/** A shell command has no session to save: it is as good as killed at once, and a clean-up trap still gets to run. */
const KILL_GRACE_MS = 200

export const exec: BackendDefinition = {
  name: 'exec',
  summary: 'run a shell command for each message: text on stdin, reply on stdout',
  options: {
    cmd: 'the command, run by /bin/sh -c (cmd.exe /c on Windows); required',
    timeout: 'how long it may take, e.g. 300ms, 2m30s, or none (60s)',
    pass_meta: 'true: MOLECULE_WORKSPACE_ID, _CALLER_ID, _MESSAGE_ID, _TASK_ID, _METHOD in its environment (false)',
    format: 'text: stdin is the text of the message; json: the whole request as one line of JSON (text)',
    output_max: 'how many bytes it may print (10485760)',
  },
  reportsTools: false,
  isFree: true,
  create: (options, context) => createExec(readSettings(options), context),
}

interface Settings extends RunFacts {
  readonly timeoutMs: number | undefined
  readonly passMeta: boolean
  readonly format: 'text' | 'json'
}

function createExec(settings: Settings, context: BackendContext): Backend {
  const shell = shellFor(process.platform, context.environment)
  const shots = createOneShots(context.processes)
  return {
    name: exec.name,
    validate: () => validateShell(shell),
    run: (turn, signal) => shots.run(describe(turn, settings, { ...context, shell }), signal),
    close: () => shots.close(),
  }
}

function readSettings(options: BackendOptions): Settings {
  const timeout = options.get('timeout', '60s')
  const timeoutMs = timeout === 'none' ? undefined : parseDuration(timeout)
  if (timeout !== 'none' && !(timeoutMs && timeoutMs > 0)) {
    throw badOption('timeout', timeout, 'a positive duration such as 300ms, 1.5h or 2m30s, or none')
  }
  const format = options.get('format', 'text')
  if (format !== 'text' && format !== 'json') throw badOption('format', format, 'text or json')
  const outputMax = options.get('output_max', String(OUTPUT_BYTES_MAX))
  const outputBytesMax = Number(outputMax)
  if (!/^[1-9]\d*$/.test(outputMax) || !Number.isSafeInteger(outputBytesMax)) {
    throw badOption('output_max', outputMax, 'a positive number of bytes')
  }
  const passMeta = booleanOption(options, 'pass_meta', false)
  return { command: options.require('cmd'), timeout, timeoutMs, passMeta, format, outputBytesMax }
}

type ExecContext = BackendContext & { readonly shell: Shell }

function describe(turn: Turn, settings: Settings, { shell, environment, log }: ExecContext): OneShot {
  const { request } = turn
  return {
    run: {
      command: shell.command(settings.command),
      cwd: turn.workingDir,
      env: childEnvironment(environment, commandVariables(turn, settings.passMeta)),
      mark: turn.id,
      input: settings.format === 'json' ? `${JSON.stringify(request)}\n` : joinText(request.parts),
      outputBytesMax: settings.outputBytesMax,
      stderrBytesKept: STDERR_BYTES_KEPT,
      killGraceMs: KILL_GRACE_MS,
      ...(settings.timeoutMs !== undefined && { timeoutMs: settings.timeoutMs }),
    },
    read: createDeltaReader(),
    end(result) {
      const error = runFailure(result, settings)
      if (error) return { type: 'failed', error }
      logStderr(result)
      return { type: 'done', parts: [replyPart(result.stdout)], finality: 'completed' }
    },
  }

  function logStderr(result: ProcessResult): void {
    if (result.stderrTail.length === 0) return
    const fields = { workspace: request.workspace_id, message: request.message_id, stderr: stderrTail(result) }
    log.info(fields, 'the command succeeded and wrote to stderr')
  }
}

/** Without `pass_meta` a command is told nothing of the platform: not the ids, the address, the token, nor the path. */
function commandVariables({ env, request }: Turn, passMeta: boolean): Record<string, string> {
  if (passMeta) return { ...env, ...messageVariables(request) }
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('MOLECULE_') && name !== 'PATH'))
}
