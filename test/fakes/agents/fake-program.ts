/**
 * Writes a fake agent as a program for the option `bin` or a PATH: a shell script that runs its TypeScript with this Node,
 * its scenario and its home. The home keeps what outlives a process (sessions, recorded starts) and is removed when the
 * process of the tests ends.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

export type FakeAgentName = 'claude' | 'codex' | 'gemini' | 'opencode' | 'hermes' | 'openclaw' | 'acp'

/** With these variables the platform takes the fake claude for logged in. */
export const CLAUDE_LOGGED_IN = { CLAUDE_CODE_USE_VERTEX: '1' }

export interface FakeProgram {
  /** The value for the option `bin`. */
  readonly path: string
  /** The fake's home. */
  readonly dir: string
}

/**
 * Removed at the exit of the process. An `after` at the top level ran before the tests of its file, when the tests of an
 * earlier file in the same process had already ended.
 */
const homes: string[] = []
process.once('exit', () => {
  for (const dir of homes) rmSync(dir, { recursive: true, force: true })
})

/** Programs that share a home, so that one can resume the sessions of another. Call it at the top level of a test file. */
export function createFakeAgents(): (agent: FakeAgentName, scenario?: string) => string {
  const dir = mkdtempSync(join(tmpdir(), 'molecule-fake-'))
  homes.push(dir)
  return (agent, scenario = 'echo') => {
    const path = join(dir, `${agent}-${scenario}`)
    writeFakeAgent(path, { agent, scenario, dir })
    return path
  }
}

/** One program with its own home. */
export function createFakeProgram(agent: FakeAgentName, scenario = 'echo'): FakeProgram {
  const path = createFakeAgents()(agent, scenario)
  return { path, dir: dirname(path) }
}

/** Writes the program to a path that the test chooses. */
export function writeFakeAgent(path: string, given: { agent: FakeAgentName; scenario: string; dir: string }): void {
  const script = join(import.meta.dirname, `${given.agent}.ts`)
  const variables = `FAKE_HOME='${given.dir}' FAKE_SCENARIO='${given.scenario}'`
  writeFileSync(path, `#!/bin/sh\n${variables} exec '${process.execPath}' '${script}' "$@"\n`)
  chmodSync(path, 0o755)
}

/** Starts the gateway of a fake openclaw. `stop` must be called. */
export async function startFakeGateway(bin: string): Promise<{ readonly port: string; stop(): Promise<void> }> {
  const child = spawn(bin, ['gateway', 'run'], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const [line] = await once(child.stdout, 'data')
  return {
    port: String(line).trim(),
    async stop() {
      child.kill('SIGTERM')
      await ended
    },
  }
}
