/**
 * A fake agent as a program that can be named in the option `bin`, or found on a PATH: a line of shell that runs its
 * TypeScript with this very Node, with its scenario and a home of its own, where it keeps what must outlive its process
 * (its sessions, what it was started with). The home goes when the tests of the file have ended.
 */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after } from 'node:test'

export type FakeAgentName = 'claude' | 'codex' | 'gemini' | 'opencode' | 'hermes' | 'openclaw' | 'acp'

export interface FakeProgram {
  /** For `bin`. */
  readonly path: string
  /** The fake's home. */
  readonly dir: string
}

/** Call it where the file's tests are declared: programs of one home, so that one may resume what another began. */
export function createFakeAgents(): (agent: FakeAgentName, scenario?: string) => string {
  const dir = mkdtempSync(join(tmpdir(), 'molecule-fake-'))
  after(() => rmSync(dir, { recursive: true, force: true }))
  return (agent, scenario = 'echo') => {
    const path = join(dir, `${agent}-${scenario}`)
    writeFakeAgent(path, { agent, scenario, dir })
    return path
  }
}

/** One program in a home of its own. */
export function createFakeProgram(agent: FakeAgentName, scenario = 'echo'): FakeProgram {
  const path = createFakeAgents()(agent, scenario)
  return { path, dir: dirname(path) }
}

/** The program itself, wherever a test wants it. */
export function writeFakeAgent(path: string, given: { agent: FakeAgentName; scenario: string; dir: string }): void {
  const script = join(import.meta.dirname, `${given.agent}.ts`)
  const variables = `FAKE_HOME='${given.dir}' FAKE_SCENARIO='${given.scenario}'`
  writeFileSync(path, `#!/bin/sh\n${variables} exec '${process.execPath}' '${script}' "$@"\n`)
  chmodSync(path, 0o755)
}
