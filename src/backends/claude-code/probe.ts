/**
 * Probes, without a model, whether this claude still speaks as its backend does. It starts claude with the options of a
 * first run and with those of a resumed run, as a turn would choose them for this version. In mode session a first run
 * is also sent the `initialize` of the control protocol. The other runs get no message or an unknown session, which
 * claude refuses after it has read its options. `--help` does not list all options. Invariant: no process and no file is
 * left.
 */
import { randomUUID } from 'node:crypto'
import { MoleculeError } from '../../errors.ts'
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
import type { ClaudeFeatures, ClaudeProgram } from './program.ts'

export interface ClaudeProbeOptions {
  readonly context: BackendContext
  readonly settings: CliSettings
  readonly isolation: ProbeIsolation
  readonly program: ClaudeProgram
  readonly facts: ProcessFacts
}

const REQUEST_ID = 'molecule-look'
const INITIALIZE = { type: 'control_request', request_id: REQUEST_ID, request: { subtype: 'initialize' } }

export async function probeClaude(options: ClaudeProbeOptions, signal: AbortSignal): Promise<readonly Drift[]> {
  const isWarm = options.settings.mode === 'session'
  // Not the look that turns share: a cancelled probe ends its own at once.
  await options.program.validate(signal)
  if (signal.aborted) throw new MoleculeError('canceled', 'the probe was cancelled')
  const first = await probeRun(options, { run: isWarm ? probeSession : probeOptions, sessionId: undefined }, signal)
  // What a first run lacks, a resumed run lacks too.
  if (first.some(({ instead }) => instead === undefined)) return first
  const resumed = await probeRun(options, { run: probeOptions, sessionId: randomUUID() }, signal)
  return [...first, ...resumed]
}

type Command = SpawnOptions['command']

interface ProbedRun {
  readonly run: (options: ClaudeProbeOptions, command: Command, scratch: Scratch) => Promise<readonly Drift[]>
  /** For a resumed run: the id of a session that does not exist. */
  readonly sessionId: string | undefined
}

/** Leaves out what claude does not know and a turn can do without, as a turn does, and looks for more. */
async function probeRun(
  options: ClaudeProbeOptions,
  { run, sessionId }: ProbedRun,
  signal: AbortSignal,
): Promise<readonly Drift[]> {
  const left: Drift[] = []
  for (;;) {
    const features = await options.program.features(signal)
    const folder = createPrivateFolder()
    try {
      const command = commandOf(options, { folder, features, sessionId })
      const found = await withScratch(options, (scratch) => run(options, command, scratch), signal)
      const [one] = found
      const leftOut = one === undefined ? undefined : options.program.leaveOut(one.missing, features)
      if (leftOut === undefined) return [...left, ...found]
      left.push(leftOut)
    } finally {
      folder.remove()
    }
  }
}

interface ProbedCommand {
  readonly folder: PrivateFolder
  readonly features: ClaudeFeatures
  readonly sessionId: string | undefined
}

/** Every option of a turn. */
function commandOf({ settings }: ClaudeProbeOptions, { folder, features, sessionId }: ProbedCommand): Command {
  return claudeCommand({
    settings: { ...settings, allowedTools: ['Read'], maxTurns: 1 },
    model: 'sonnet',
    sessionId,
    systemPromptFile: folder.write('system-prompt.md', 'Say nothing.'),
    mcpConfigFile: folder.write('mcp.json', mcpConfig([])),
    trustedServers: [],
    unknownOptions: features.unknownOptions,
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
    command,
    cwd,
    env,
    mark,
    lineBytesMax: LINE_BYTES_MAX,
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

/** Without a message or its session the run must fail, so only an unknown option counts as drift. */
async function probeOptions(
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
