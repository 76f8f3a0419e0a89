/**
 * Writes a fake agent as a program for the option `bin` or a PATH: a shell script that runs its TypeScript with this Node,
 * its scenario and its home. The home keeps what outlives a process (sessions, recorded starts) and is removed when the
 * tests of the file have ended.
 */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after } from 'node:test'

export type FakeAgentName = 'claude' | 'codex' | 'gemini' | 'opencode' | 'hermes' | 'openclaw' | 'acp'

export interface FakeProgram {
  /** The value for the option `bin`. */
  readonly path: string
  /** The fake's home. */
  readonly dir: string
}

/** Programs that share a home, so that one can resume the sessions of another. Call it at the top level of a test file. */
export function createFakeAgents(): (agent: FakeAgentName, scenario?: string) => string {
  const dir = mkdtempSync(join(tmpdir(), 'molecule-fake-'))
  after(() => rmSync(dir, { recursive: true, force: true }))
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
