/**
 * Wraps a backend whose options name hooks: commands of the owner that run before a turn, after it and on its failure.
 * A hook gets one line of JSON on stdin. `before_turn` refuses the message by exit code 2, and its output is the reason.
 * Invariant: nothing else that a hook does changes the turn. A hook that fails or takes too long is logged.
 */
import { MoleculeError } from '../errors.ts'
import { childEnvironment } from '../process/child-environment.ts'
import { textOf } from '../protocol/part.ts'
import { joinText } from '../protocol/request.ts'
import type { Backend, BackendContext, BackendEvent, Turn } from './backend.ts'
import { messageVariables } from './engine/environment/agent-environment.ts'
import { runFailure } from './engine/failure/run-failure.ts'
import { shellFor } from './engine/shell.ts'
import { type BackendOptions, durationOption } from './options.ts'

type HookName = 'before_turn' | 'after_turn' | 'on_error'

const VETO_EXIT_CODE = 2
const OUTPUT_BYTES_MAX = 64 * 1024
const REASON_CHARACTERS_MAX = 500
const KILL_GRACE_MS = 200

interface HookSettings {
  readonly commands: Readonly<Record<HookName, string>>
  readonly timeoutMs: number | undefined
  /** As the owner wrote it, for the log. */
  readonly timeout: string
}

/** The backend itself if no hook is set. Throws `bad_config` for an invalid timeout. */
export function withHooks(backend: Backend, options: BackendOptions, context: BackendContext): Backend {
  const command = (name: HookName) => options.get(name, '').trim()
  const commands = {
    before_turn: command('before_turn'),
    after_turn: command('after_turn'),
    on_error: command('on_error'),
  }
  const timeoutMs = durationOption(options, 'hook_timeout', '10s')
  if (Object.values(commands).every((each) => each === '')) return backend
  const timeout = options.get('hook_timeout', '10s')
  const run = createHookRunner({ commands, timeoutMs, timeout }, context)
  return replaceRun(backend, (turn, signal) => runWithHooks(backend, { turn, run, signal }))
}

/** The same backend with another `run`. An adapter's backend may be an instance of a class, so its methods are bound. */
export function replaceRun(backend: Backend, run: Backend['run']): Backend {
  const [probe, mcpToolName] = [backend.probe?.bind(backend), backend.mcpToolName?.bind(backend)]
  const limits = backend.limits?.bind(backend)
  return {
    name: backend.name,
    stallMs: backend.stallMs,
    mcpToolName,
    validate: (signal) => backend.validate(signal),
    probe,
    limits,
    run,
    close: () => backend.close(),
  }
}

interface HookCall {
  readonly turn: Turn
  readonly signal: AbortSignal
  /** What the hook gets besides the message. */
  readonly facts?: object
}

/** Runs the hook if it is set. The reason, if it refuses the message. */
type RunHook = (name: HookName, call: HookCall) => Promise<string | undefined>

async function* runWithHooks(
  backend: Backend,
  { turn, run, signal }: { turn: Turn; run: RunHook; signal: AbortSignal },
): AsyncGenerator<BackendEvent> {
  const reason = await run('before_turn', { turn, signal })
  if (reason !== undefined) {
    yield { type: 'failed', error: new MoleculeError('vetoed', reason) }
    return
  }
  for await (const event of backend.run(turn, signal)) {
    if (event.type === 'done') {
      const reply = textOf(event.parts)
      await run('after_turn', { turn, signal, facts: { state: event.finality, reply } })
    } else if (event.type === 'failed') {
      const { code, message, retryable } = event.error
      await run('on_error', { turn, signal, facts: { error: { code, message, retryable } } })
    }
    yield event
  }
}

function createHookRunner({ commands, timeoutMs, timeout }: HookSettings, context: BackendContext): RunHook {
  const { processes, environment, log } = context
  const shell = shellFor(process.platform, environment)
  return async (name, { turn, signal, facts }) => {
    const command = commands[name]
    // A cancelled turn ends at once, and has neither an answer nor an error.
    if (command === '' || signal.aborted) return undefined
    const { request } = turn
    const run = {
      command: shell.command(command),
      cwd: turn.workingDir,
      env: childEnvironment(environment, { ...turn.env, ...messageVariables(request) }),
      mark: `${turn.id}-${name}`,
      input: `${JSON.stringify({ hook: name, ...describeMessage(turn), ...facts })}\n`,
      outputBytesMax: OUTPUT_BYTES_MAX,
      killGraceMs: KILL_GRACE_MS,
      timeoutMs,
    }
    const result = await processes.run(run, signal)
    if (name === 'before_turn' && result.end === 'exited' && result.exitCode === VETO_EXIT_CODE) {
      return reasonOf(result.stdout) || reasonOf(result.stderrTail) || 'a hook of the workspace refused this message'
    }
    const error = runFailure(result, { command, timeout, outputBytesMax: OUTPUT_BYTES_MAX })
    const fields = { workspace: request.workspace_id, message: request.message_id, hook: name }
    if (error !== undefined && !signal.aborted) log.warn({ ...fields, err: error }, 'a hook failed; the turn goes on')
    return undefined
  }
}

function describeMessage({ conversationId, request }: Turn): object {
  const { workspace_id, message_id, task_id, caller_id, sender, parts } = request
  return {
    workspace_id,
    conversation_id: conversationId,
    message_id,
    task_id,
    caller_id,
    sender,
    text: joinText(parts),
  }
}

const reasonOf = (output: Uint8Array): string => new TextDecoder().decode(output).trim().slice(0, REASON_CHARACTERS_MAX)
