/**
 * Whether this claude still speaks as its backend does, without a model: warm, it is started with every flag of ours
 * and sent the `initialize` of its control protocol; as a one-shot it is given no message at all, which it refuses
 * after it has read its flags. Its `--help` would not do: it does not tell all of them. Invariant: nothing is left.
 */
import type { ProcessResult } from '../../process/processes.ts'
import { isJsonObject, parseJsonObject } from '../../protocol/json.ts'
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
  readonly quiet: ProbeIsolation
  readonly facts: ProcessFacts
}

const REQUEST_ID = 'molecule-look'
const INITIALIZE = { type: 'control_request', request_id: REQUEST_ID, request: { subtype: 'initialize' } }

export async function probeClaude(options: ClaudeProbeOptions, signal: AbortSignal): Promise<readonly Drift[]> {
  const folder = createPrivateFolder()
  const look = options.settings.mode === 'session' ? probeSession : probeOneShot
  try {
    return await withScratch(options, (scratch) => look(options, commandOf(options, folder), scratch), signal)
  } finally {
    folder.remove()
  }
}

type Command = readonly [string, ...string[]]

/** With every flag that a turn may give it, but for the session: there is none to go on from. */
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
  const heard = Promise.withResolvers<readonly Drift[]>()
  const running = context.processes.start({
    ...{ command, cwd, env, mark, lineBytesMax: LINE_BYTES_MAX },
    onLine: (line) => {
      const drift = driftInLine(line)
      if (drift !== undefined) heard.resolve(drift)
    },
  })
  const giveUp = () => void running.stop()
  signal.addEventListener('abort', giveUp, { once: true })
  if (signal.aborted) giveUp()
  try {
    void running.write(`${JSON.stringify(INITIALIZE)}\n`)
    return await Promise.race([heard.promise, running.ended.then((run) => driftInRun(run, facts))])
  } finally {
    signal.removeEventListener('abort', giveUp)
    await running.stop()
  }
}

/** Undefined for every line that is not its answer. */
function driftInLine(line: string): readonly Drift[] | undefined {
  const message = parseJsonObject(line)
  const response = message?.['type'] === 'control_response' ? message['response'] : undefined
  if (!isJsonObject(response) || response['request_id'] !== REQUEST_ID) return undefined
  if (response['subtype'] === 'success') return []
  // A turn itself does not need it, only what goes on around one.
  const instead = 'kept warm, but it may not ask or be interrupted'
  return [{ missing: 'control request initialize missing', instead }]
}

/** It left before it had answered. */
function driftInRun(run: ProcessResult, facts: ProcessFacts): readonly Drift[] {
  const error = exitAtStart(run, facts)
  const missing = driftIn(error)
  if (missing === undefined) throw error
  return [{ missing }]
}

/** Without a message: nothing but an unknown flag is drift, for it has to fail. */
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
