/**
 * The `exec` backend: runs a shell command for each message, with the text on stdin; stdout is the reply. Each turn is a
 * new process, so there is no session. Invariant: the workspace's owner writes the command line, and no text of a
 * sender is ever part of it.
 */
import { childEnvironment } from '../../process/child-environment.ts'
import { joinText } from '../../protocol/request.ts'
import type { Backend, BackendContext, BackendDefinition, Turn } from '../backend.ts'
import { outputTo, replyPart } from '../engine/cli/stdout-reply.ts'
import { messageVariables } from '../engine/environment/agent-environment.ts'
import { type RunFacts, runFailure, stderrTail } from '../engine/failure/run-failure.ts'
import { openProgramBrief, type ProgramBrief, writeBriefFiles } from '../engine/files/program-brief.ts'
import { createTurnFolders, type TurnFolders } from '../engine/files/turn-folders.ts'
import { type Shell, shellFor, validateShell } from '../engine/shell.ts'
import { createTurnEngine, type EndEvent, OUTPUT_BYTES_MAX, type TurnStream } from '../engine/turn-engine.ts'
import { type BackendOptions, badOption, booleanOption, durationOption } from '../options.ts'

/** A shell command has no session to save, so it is killed almost at once. A cleanup trap still has time to run. */
const KILL_GRACE_MS = 200

export const exec: BackendDefinition = {
  name: 'exec',
  summary: 'run a shell command for each message: text on stdin, reply on stdout',
  options: {
    cmd: 'the command, run by /bin/sh -c; required',
    timeout: 'how long the command may take, e.g. 300ms, 2m30s, or none (60s)',
    pass_meta: 'true: MOLECULE_WORKSPACE_ID, _CALLER_ID, _MESSAGE_ID, _TASK_ID, _METHOD in its environment (false)',
    format: 'text: stdin is the text of the message; json: the whole request as one line of JSON (text)',
    output_max: 'how many bytes the command may print (10485760)',
  },
  reportsTools: false,
  readsBrief: true,
  usesHistory: true,
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
  const turns = createTurnEngine({ clock: context.clock, outputBytesMax: settings.outputBytesMax })
  const folders = createTurnFolders()
  const execContext = { ...context, settings, shell, folders }
  return {
    name: exec.name,
    validate: () => validateShell(shell),
    run: (turn, signal) => turns.run((stream) => runTurn(turn, execContext, stream), signal),
    async close() {
      await turns.close()
      folders.close()
    },
  }
}

function readSettings(options: BackendOptions): Settings {
  const timeout = options.get('timeout', '60s')
  const timeoutMs = durationOption(options, 'timeout', '60s')
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

interface ExecContext extends BackendContext {
  readonly settings: Settings
  readonly shell: Shell
  readonly folders: TurnFolders
}

async function runTurn(turn: Turn, context: ExecContext, stream: TurnStream): Promise<EndEvent> {
  const { folders, settings } = context
  const brief = await openProgramBrief(turn, { folders, hasCommands: settings.passMeta, context, stream })
  try {
    const end = await runCommand({ turn, brief }, context, stream)
    if (end.type === 'done') await brief.deliver()
    return end
  } finally {
    folders.giveBack(brief.folder)
  }
}

/** The process has its own time and output limits, so that the error names the command and its stderr. */
async function runCommand(
  { turn, brief }: { readonly turn: Turn; readonly brief: ProgramBrief },
  context: ExecContext,
  stream: TurnStream,
): Promise<EndEvent> {
  const { settings, shell, environment, processes } = context
  const { request } = turn
  const run = {
    command: shell.command(settings.command),
    cwd: turn.workingDir,
    env: childEnvironment(environment, { ...commandVariables(turn, settings.passMeta), ...writeBriefFiles(brief) }),
    mark: turn.id,
    input:
      settings.format === 'json' ? `${JSON.stringify({ ...request, ...brief.fields })}\n` : joinText(request.parts),
    outputBytesMax: settings.outputBytesMax,
    killGraceMs: KILL_GRACE_MS,
    timeoutMs: settings.timeoutMs,
    onOutput: outputTo(stream),
    onWait: turn.onWait,
  }
  const result = await processes.run(run, stream.signal)
  const error = runFailure(result, settings)
  if (error) return { type: 'failed', error }
  if (result.stderrTail.length > 0) {
    const fields = { workspace: request.workspace_id, message: request.message_id, stderr: stderrTail(result) }
    context.log.info(fields, 'the command succeeded and wrote to stderr')
  }
  return { type: 'done', parts: [replyPart(result.stdout)], finality: 'completed' }
}

/** Without `pass_meta` a command cannot reach the platform: it gets no ids, no address, no token, no extra PATH. */
function commandVariables({ env, request }: Turn, passMeta: boolean): Record<string, string> {
  if (passMeta) return { ...env, ...messageVariables(request) }
  return Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('MOLECULE_') && name !== 'PATH'))
}
