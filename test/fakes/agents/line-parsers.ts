/** What the readers of one-shot agents are given in tests, and runs that ended in a way a test names. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
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

/** A run that left by itself. */
export function exited(exitCode: number, stderr = ''): ProcessResult {
  const stderrTail = new TextEncoder().encode(stderr)
  return { end: 'exited', exitCode, signal: null, stdout: new Uint8Array(), stderrTail, stderrCut: false }
}

/** All that a reader makes of this output, its end included. */
export function readAll(reader: AgentOutputParser, output: string, result = exited(0)): readonly BackendEvent[] {
  const events: BackendEvent[] = []
  for (const line of output.split('\n')) {
    events.push(...reader.read(line))
    if (isEnd(events.at(-1))) return events
  }
  return [...events, reader.conclude(result, output)]
}

const isEnd = (event: BackendEvent | undefined) => event?.type === 'done' || event?.type === 'failed'

export function readSample(path: string): string {
  return readFileSync(join(import.meta.dirname, 'samples', path), 'utf8')
}

type FlagSettings = Pick<CliSettings, 'args' | 'permission' | 'allowedTools' | 'maxTurns'>

export function makeFlags(given: Partial<FlagSettings> = {}): FlagSettings {
  return { args: [], permission: 'bypass', allowedTools: [], maxTurns: undefined, ...given }
}
