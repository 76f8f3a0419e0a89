/** Options and process results for tests of the output parsers of one-shot agents. */
import type { BackendEvent } from '../../../src/backends/backend.ts'
import type { CliSettings } from '../../../src/backends/engine/cli/cli-options.ts'
import type { AgentOutputParser, AgentOutputParserOptions } from '../../../src/backends/engine/cli/one-shot-agent.ts'
import type { ProcessResult } from '../../../src/process/processes.ts'

export function makeParserOptions(given: Partial<AgentOutputParserOptions> = {}): AgentOutputParserOptions {
  return {
    backend: 'agent',
    token: (sessionId) => `token of ${sessionId}`,
    facts: { command: 'agent', timeout: '5m', outputBytesMax: 1000, nowMs: Date.UTC(2026, 10, 15) },
    ...given,
  }
}

/** The result of a process that exited by itself. */
export function exited(exitCode: number, stderr = ''): ProcessResult {
  const stderrTail = new TextEncoder().encode(stderr)
  return { end: 'exited', exitCode, signal: null, stdout: new Uint8Array(), stderrTail, stderrCut: false }
}

/** All events that a parser makes of an output, including the end. */
export function readAll(parser: AgentOutputParser, output: string, result = exited(0)): readonly BackendEvent[] {
  const events: BackendEvent[] = []
  for (const line of output.split('\n')) {
    events.push(...parser.read(line))
    if (isEnd(events.at(-1))) return events
  }
  return [...events, parser.conclude(result, output)]
}

const isEnd = (event: BackendEvent | undefined) => event?.type === 'done' || event?.type === 'failed'

type FlagSettings = Pick<CliSettings, 'args' | 'permission' | 'allowedTools' | 'maxTurns'>

export function makeFlags(given: Partial<FlagSettings> = {}): FlagSettings {
  return { args: [], permission: 'bypass', allowedTools: [], maxTurns: undefined, ...given }
}
