/**
 * Probes, without a model, whether this claude still speaks as its backend does. In mode session it starts claude with
 * all our flags and sends the `initialize` of the control protocol. In mode oneshot it sends no message, which claude
 * refuses after it has read its flags. `--help` does not list all flags. Invariant: no process and no file is left.
 */
import type { ProcessResult, SpawnOptions } from '../../process/processes.ts'
import { isJsonObject, parseJsonObject } from '../../protocol/json.ts'
import { onAbort } from '../../wait.ts'
import type { BackendContext, Drift } from '../backend.ts'
import type { CliSettings } from '../engine/cli/cli-options.ts'
import { exitAtStart, type ProcessFacts } from '../engine/failure/agent-errors.ts'
import { driftIn } from '../engine/failure/drift.ts'
import { createPrivateFolder, type PrivateFolder } from '../engine/files/private-folder.ts'
import { type ProbeIsolation, type Scratch, withScratch } from '../engine/probe/scratch.ts'
import { claudeCommand, mcpConfig } from './args.ts'
import { LINE_BYTES_MAX } from './parse.ts'

export interface ClaudeProbeOptions {
  readonly context: BackendContext
  readonly settings: CliSettings
  readonly isolation: ProbeIsolation
  readonly facts: ProcessFacts
}

const REQUEST_ID = 'molecule-look'
const INITIALIZE = { type: 'control_request', request_id: REQUEST_ID, request: { subtype: 'initialize' } }

export async function probeClaude(options: ClaudeProbeOptions, signal: AbortSignal): Promise<readonly Drift[]> {
  const folder = createPrivateFolder()
  const probe = options.settings.mode === 'session' ? probeSession : probeOneShot
  try {
    return await withScratch(options, (scratch) => probe(options, commandOf(options, folder), scratch), signal)
  } finally {
    folder.remove()
  }
}

type Command = SpawnOptions['command']

/** Every flag of a turn except `--resume`: there is no session. */
function commandOf({ settings }: ClaudeProbeOptions, folder: PrivateFolder): Command {
  return claudeCommand({
    settings: { ...settings, allowedTools: ['Read'], maxTurns: 1 },
    model: 'sonnet',
    sessionId: undefined,
    systemPromptFile: folder.write('system-prompt.md', 'Say nothing.'),
    mcpConfigFile: folder.write('mcp.json', mcpConfig([])),
    trustedServers: [],
  })
}

async function probeSession(
  { context, facts }: ClaudeProbeOptions,
  command: Command,
  scratch: Scratch,
): Promise<readonly Drift[]> {
  const { dir: cwd, env, mark, signal } = scratch
  const answered = Promise.withResolvers<readonly Drift[]>()
  const running = context.processes.start({
    ...{ command, cwd, env, mark, lineBytesMax: LINE_BYTES_MAX },
    onLine: (line) => {
      const drift = driftInLine(line)
      if (drift !== undefined) answered.resolve(drift)
    },
  })
  const release = onAbort(signal, () => void running.stop())
  try {
    void running.write(`${JSON.stringify(INITIALIZE)}\n`)
    return await Promise.race([answered.promise, running.ended.then((run) => driftInRun(run, facts))])
  } finally {
    release()
    await running.stop()
  }
}

/** Undefined for a line that is not the answer to INITIALIZE. */
function driftInLine(line: string): readonly Drift[] | undefined {
  const message = parseJsonObject(line)
  const response = message?.['type'] === 'control_response' ? message['response'] : undefined
  if (!isJsonObject(response) || response['request_id'] !== REQUEST_ID) return undefined
  if (response['subtype'] === 'success') return []
  // A turn works without it; permissions and interrupts may not.
  const instead = 'kept warm, but it may not ask or be interrupted'
  return [{ missing: 'control request initialize missing', instead }]
}

/** The process ended before it answered. */
function driftInRun(run: ProcessResult, facts: ProcessFacts): readonly Drift[] {
  const error = exitAtStart(run, facts)
  const missing = driftIn(error)
  if (missing === undefined) throw error
  return [{ missing }]
}

/** Without a message the run must fail, so only an unknown flag counts as drift. */
async function probeOneShot(
  { context, facts }: ClaudeProbeOptions,
  command: Command,
  scratch: Scratch,
): Promise<readonly Drift[]> {
  const { dir: cwd, env, mark, signal } = scratch
  const limits = { outputBytesMax: LINE_BYTES_MAX }
  const run = await context.processes.run({ command, cwd, env, mark, input: '', ...limits }, signal)
  const error = exitAtStart(run, facts)
  if (run.end !== 'exited') throw error
  const missing = driftIn(error)
  return missing === undefined ? [] : [{ missing }]
}
