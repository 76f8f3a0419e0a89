/**
 * Whether this codex still speaks as its backend does, without a model: its app server is started, greeted and given a
 * thread, and its own schema of the protocol is read for the words that a turn needs; for one-shots, its help. A codex
 * of another version than the tested one is looked at before its first turn too. Invariant: nothing of it is left.
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
  const look = async (scratch: Scratch) => [
    ...(await probeThread(options, scratch)),
    ...(await readSchema(options, scratch)),
  ]
  return withScratch(options, look, signal)
}

/** For `mode: oneshot`. */
export async function probeExec(options: CodexProbeOptions, signal: AbortSignal): Promise<readonly Drift[]> {
  const { settings, context } = options
  const given = { workingDir: '/', model: 'x', thread: 'x', systemPrompt: '', mcpServers: [] }
  const permissions = ['allowed_tools', 'bypass'] as const
  const question = {
    processes: context.processes,
    commands: [[settings.bin, 'exec', '--help'] as const],
    words: permissions.flatMap((permission) => execCommand({ ...given, settings: { bin: '', args: [], permission } })),
    facts: factsOf(options),
  }
  return withScratch(options, (scratch) => missingOptions(question, scratch), signal)
}

export interface ProtocolCheck {
  /** Rejects where a codex of that version lacks what a warm turn cannot do without. Looks once. */
  check(version: string | undefined, signal: AbortSignal): Promise<void>
  /** Ends a look that is going on. Idempotent. */
  close(): Promise<void>
}

export function createProtocolCheck(options: CodexProbeOptions, tested: string): ProtocolCheck {
  const closing = new AbortController()
  let looked: Promise<readonly Drift[]> | undefined
  const look = () =>
    withScratch(options, (scratch) => readSchema(options, scratch), closing.signal).catch((error: unknown) => {
      options.context.log.debug({ error }, 'codex does not tell its schema')
      return []
    })
  return {
    async check(version, signal) {
      if (version === tested) return
      looked ??= look()
      const fatal = (await abortable(looked, signal)).find(({ instead }) => instead === undefined)
      if (fatal !== undefined) throw driftError('codex', fatal.missing)
    },
    async close() {
      closing.abort()
      await looked
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

/** What a turn needs, and what becomes of one that can do without. */
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

/** Empty also where it does not tell one: that it can is no part of what we need. */
async function readSchema({ context, settings }: CodexProbeOptions, scratch: Scratch): Promise<readonly Drift[]> {
  const { dir, env, mark, signal } = scratch
  const out = join(dir, 'schema')
  const command = [...appServerCommand(settings), 'generate-json-schema', '--out', out] as const
  const limits = { outputBytesMax: OUTPUT_BYTES_MAX, stderrBytesKept: 1024 }
  const result = await context.processes.run(
    { command: [command[0], ...command.slice(1)], cwd: dir, env, mark: `${mark}-schema`, input: '', ...limits },
    signal,
  )
  if (result.exitCode !== 0) return []
  const looked = REQUIRED_PROTOCOL.map(async ({ file, kind, words }) => {
    const schema = await readFile(join(out, file), 'utf8').catch(() => undefined)
    if (schema === undefined) return []
    const missing = Object.entries(words).filter(([word]) => !schema.includes(JSON.stringify(word)))
    return missing.map(([word, instead]): Drift => {
      const named = `${kind} ${word} missing`
      return instead === undefined ? { missing: named } : { missing: named, instead }
    })
  })
  return (await Promise.all(looked)).flat()
}

function factsOf({ settings, context }: CodexProbeOptions): ProcessFacts {
  const { bin: command, timeout } = settings
  return { command, timeout, outputBytesMax: OUTPUT_BYTES_MAX, nowMs: context.clock.nowMs() }
}
