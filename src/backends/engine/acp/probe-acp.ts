/**
 * Whether a program still speaks ACP as we do: it is started as for a turn, greeted, and ended. No session is begun,
 * which may need a log-in. Invariant: when this settles, the process is gone.
 */
import type { BackendContext, Drift } from '../../backend.ts'
import type { CliSettings } from '../cli/cli-options.ts'
import type { StartFacts } from '../failure/agent-errors.ts'
import { type DriftPattern, driftIn } from '../failure/drift.ts'
import { type ProbeIsolation, type Scratch, withScratch } from '../probe/scratch.ts'
import { OUTPUT_BYTES_MAX } from '../turn-engine.ts'
import { startAcpAgent } from './acp-agent.ts'

/** What is known of a program before it has a turn. */
export interface AcpCommand {
  readonly settings: Pick<CliSettings, 'timeout'>
  /** Program and arguments of the process. */
  readonly command: (model: string | undefined) => readonly [string, ...string[]]
  /** Its own variables, its token among them. */
  readonly environment: () => Promise<Readonly<Record<string, string>>>
  /** How it is kept quiet while it is only looked at; without it, it is not. */
  readonly quiet?: ProbeIsolation | undefined
  readonly misunderstanding?: DriftPattern
}

export async function probeAcp(
  program: AcpCommand & { readonly quiet: ProbeIsolation },
  context: BackendContext,
  signal: AbortSignal,
): Promise<readonly Drift[]> {
  const { quiet } = program
  const own = await program.environment()
  return withScratch({ context, quiet, own }, (scratch) => greetInScratch(program, context, scratch), signal)
}

async function greetInScratch(
  program: AcpCommand,
  context: BackendContext,
  scratch: Scratch,
): Promise<readonly Drift[]> {
  const { processes, log, clock } = context
  const { dir: cwd, env, mark, signal } = scratch
  const command = program.command(undefined)
  const facts = () => startFactsOf(program, command[0], clock.nowMs())
  const agent = startAcpAgent({ processes, spawning: { command, cwd, env, mark }, log, facts })
  const giveUp = () => void agent.stop()
  signal.addEventListener('abort', giveUp, { once: true })
  if (signal.aborted) giveUp()
  try {
    const { canLoad, canResume } = await agent.greeting
    if (canLoad || canResume) return []
    return [{ missing: 'session/load missing', instead: 'a conversation is forgotten when its process ends' }]
  } catch (thrown) {
    const missing = driftIn(thrown)
    if (missing === undefined) throw thrown
    return [{ missing }]
  } finally {
    signal.removeEventListener('abort', giveUp)
    await agent.stop()
  }
}

export function startFactsOf({ settings, misunderstanding }: AcpCommand, command: string, nowMs: number): StartFacts {
  return { command, timeout: settings.timeout, outputBytesMax: OUTPUT_BYTES_MAX, nowMs, misunderstanding }
}
