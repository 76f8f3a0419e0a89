/**
 * Probes whether a program still speaks ACP as we do: starts it as for a turn, greets it and ends it. Begins no
 * session, because that may need a login. Invariant: when this settles, the process has ended.
 */
import type { BackendContext, Drift } from '../../backend.ts'
import type { CliSettings } from '../cli/cli-options.ts'
import type { StartFacts } from '../failure/agent-errors.ts'
import { type DriftPattern, driftIn } from '../failure/drift.ts'
import { type ProbeIsolation, type Scratch, withScratch } from '../probe/scratch.ts'
import { OUTPUT_BYTES_MAX } from '../turn-engine.ts'
import { greetOnce } from './acp-agent.ts'

/** How to start the program. */
export interface AcpCommand {
  readonly settings: Pick<CliSettings, 'timeout'>
  /** Program and arguments of the process. */
  readonly command: (model: string | undefined) => readonly [string, ...string[]]
  /** The program's own variables, among them its token. */
  readonly environment: () => Promise<Readonly<Record<string, string>>>
  /** Keeps the program's state and traffic away from the user during a probe; undefined = it is not probed. */
  readonly isolation?: ProbeIsolation | undefined
  readonly misunderstanding?: DriftPattern
}

export async function probeAcp(
  program: AcpCommand & { readonly isolation: ProbeIsolation },
  context: BackendContext,
  signal: AbortSignal,
): Promise<readonly Drift[]> {
  const { isolation } = program
  const own = await program.environment()
  return withScratch({ context, isolation, own }, (scratch) => greetInScratch(program, context, scratch), signal)
}

async function greetInScratch(
  program: AcpCommand,
  { processes, log, clock }: BackendContext,
  { dir: cwd, env, mark, signal }: Scratch,
): Promise<readonly Drift[]> {
  const command = program.command(undefined)
  const facts = () => startFactsOf(program, command[0], clock.nowMs())
  try {
    const { canLoad, canResume } = await greetOnce(
      { processes, spawning: { command, cwd, env, mark }, log, facts },
      signal,
    )
    if (canLoad || canResume) return []
    return [{ missing: 'session/load missing', instead: 'a conversation is forgotten when its process ends' }]
  } catch (thrown) {
    const missing = driftIn(thrown)
    if (missing === undefined) throw thrown
    return [{ missing }]
  }
}

export function startFactsOf({ settings, misunderstanding }: AcpCommand, command: string, nowMs: number): StartFacts {
  return { command, timeout: settings.timeout, outputBytesMax: OUTPUT_BYTES_MAX, nowMs, misunderstanding }
}
