/**
 * Probes, without a model, whether this codex still speaks as its backend does. In mode session it starts the app server,
 * greets it, begins a thread, and searches codex's own protocol schema for the names that a turn needs. In mode oneshot
 * it reads the help. A codex of another version than the tested one is also checked before its first turn. Invariant: no
 * process and no file is left.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isJsonObject } from '../../protocol/json.ts'
import { abortable } from '../../wait.ts'
import type { BackendContext, Drift } from '../backend.ts'
import type { CliSettings } from '../engine/cli/cli-options.ts'
import type { ProcessFacts } from '../engine/failure/agent-errors.ts'
import { driftError, driftIn, driftInAnswer } from '../engine/failure/drift.ts'
import { missingOptions } from '../engine/probe/missing-options.ts'
import { type ProbeIsolation, type Scratch, withScratch } from '../engine/probe/scratch.ts'
import { OUTPUT_BYTES_MAX } from '../engine/turn-engine.ts'
import { startAppServer } from './app-server.ts'
import { appServerCommand, execCommand } from './args.ts'

export interface CodexProbeOptions {
  readonly context: BackendContext
  readonly settings: CliSettings
  readonly isolation: ProbeIsolation
}

/** For `mode: session`. */
export async function probeProtocol(options: CodexProbeOptions, signal: AbortSignal): Promise<readonly Drift[]> {
  const probe = async (scratch: Scratch) => [
    ...(await probeThread(options, scratch)),
    ...(await probeSchema(options, scratch)),
  ]
  return withScratch(options, probe, signal)
}

/** For `mode: oneshot`. */
export async function probeExec(options: CodexProbeOptions, signal: AbortSignal): Promise<readonly Drift[]> {
  const { settings, context } = options
  const call = { workingDir: '/', model: 'x', thread: 'x', systemPrompt: '', mcpServers: [] }
  const permissions = ['allowed_tools', 'bypass'] as const
  const question = {
    processes: context.processes,
    commands: [[settings.bin, 'exec', '--help'] as const],
    args: permissions.flatMap((permission) => execCommand({ ...call, settings: { bin: '', args: [], permission } })),
    facts: factsOf(options),
  }
  return withScratch(options, (scratch) => missingOptions(question, scratch), signal)
}

export interface ProtocolCheck {
  /** Rejects if a codex of that version lacks something that a warm turn needs. Reads the schema once. */
  check(version: string | undefined, signal: AbortSignal): Promise<void>
  /** Ends a check that is running. Idempotent. */
  close(): Promise<void>
}

export function createProtocolCheck(options: CodexProbeOptions, tested: string): ProtocolCheck {
  const closing = new AbortController()
  let drifts: Promise<readonly Drift[]> | undefined
  const probe = () =>
    withScratch(options, (scratch) => probeSchema(options, scratch), closing.signal).catch((error: unknown) => {
      options.context.log.debug({ error }, 'codex does not print its schema')
      return []
    })
  return {
    async check(version, signal) {
      if (version === tested) return
      drifts ??= probe()
      const fatal = (await abortable(drifts, signal)).find(({ instead }) => instead === undefined)
      if (fatal !== undefined) throw driftError('codex', fatal.missing)
    },
    async close() {
      closing.abort()
      await drifts
    },
  }
}

async function probeThread(options: CodexProbeOptions, { dir, env, mark, signal }: Scratch): Promise<readonly Drift[]> {
  const { context, settings } = options
  const { processes, log } = context
  const spawning = { command: appServerCommand(settings), cwd: dir, env, mark }
  const server = startAppServer({ processes, spawning, facts: () => factsOf(options), log })
  try {
    await server.initialize(signal)
    const answer = await server.rpc.request('thread/start', { cwd: dir }, signal)
    const thread = isJsonObject(answer) ? answer['thread'] : undefined
    return isJsonObject(thread) && typeof thread['id'] === 'string' ? [] : [{ missing: 'id of the thread missing' }]
  } catch (thrown) {
    const missing = driftIn(thrown) ?? driftInAnswer('thread/start', thrown)
    if (missing === undefined) throw thrown
    return [{ missing }]
  } finally {
    await server.stop()
  }
}

/** The names that a turn needs. A name with a sentence can be missing; the sentence says what happens then. */
const REQUIRED_PROTOCOL: readonly { readonly file: string; readonly kind: string; readonly words: ProtocolNames }[] = [
  {
    file: 'ServerNotification.json',
    kind: 'event',
    words: {
      'turn/completed': undefined,
      'item/completed': undefined,
      'item/agentMessage/delta': 'text comes whole, not streamed',
      'thread/tokenUsage/updated': 'tokens are unknown',
    },
  },
  {
    file: 'ClientRequest.json',
    kind: 'method',
    words: {
      'thread/start': undefined,
      'thread/resume': undefined,
      'turn/start': undefined,
      'turn/interrupt': 'a cancelled turn ends the process',
    },
  },
  {
    file: 'ServerRequest.json',
    kind: 'question',
    words: {
      'item/commandExecution/requestApproval': 'commands that need asking are refused',
      'item/fileChange/requestApproval': 'changes that need asking are refused',
    },
  },
]

type ProtocolNames = Readonly<Record<string, string | undefined>>

/** Empty also if codex prints no schema: a turn does not need it. */
async function probeSchema({ context, settings }: CodexProbeOptions, scratch: Scratch): Promise<readonly Drift[]> {
  const { dir, env, mark, signal } = scratch
  const out = join(dir, 'schema')
  const command = [...appServerCommand(settings), 'generate-json-schema', '--out', out] as const
  const limits = { outputBytesMax: OUTPUT_BYTES_MAX, stderrBytesKept: 1024 }
  const result = await context.processes.run(
    { command: [command[0], ...command.slice(1)], cwd: dir, env, mark: `${mark}-schema`, input: '', ...limits },
    signal,
  )
  if (result.exitCode !== 0) return []
  const found = REQUIRED_PROTOCOL.map(async ({ file, kind, words }) => {
    const schema = await readFile(join(out, file), 'utf8').catch(() => undefined)
    if (schema === undefined) return []
    const missing = Object.entries(words).filter(([word]) => !schema.includes(JSON.stringify(word)))
    return missing.map(([word, instead]): Drift => {
      const sentence = `${kind} ${word} missing`
      return instead === undefined ? { missing: sentence } : { missing: sentence, instead }
    })
  })
  return (await Promise.all(found)).flat()
}

function factsOf({ settings, context }: CodexProbeOptions): ProcessFacts {
  const { bin: command, timeout } = settings
  return { command, timeout, outputBytesMax: OUTPUT_BYTES_MAX, nowMs: context.clock.nowMs() }
}
