/**
 * The real agent CLIs that are tested: the exact version that the backends are tested with, and the path of the program
 * after installation. To test a new version, change it only here, and for claude in its backend.
 */
import { NEWEST_TESTED, OLDEST_TESTED } from '../../src/backends/claude-code/program.ts'

export interface Cli {
  readonly name: 'claude' | 'codex' | 'gemini' | 'opencode' | 'openclaw'
  readonly version: string
  readonly npmPackage: string
  /** Path of the program in the installation folder. */
  readonly bin: string
  /**
   * npm installs packages without running their scripts. When a program needs a script of its own package to put the
   * binary of this machine in place, only that script runs.
   */
  readonly finish?: string
  /** The test file, for the oldest version that a backend is tested with; by default that of the name. */
  readonly file?: string
}

const CLAUDE = {
  name: 'claude',
  npmPackage: '@anthropic-ai/claude-code',
  bin: 'node_modules/@anthropic-ai/claude-code/bin/claude.exe',
  finish: 'node_modules/@anthropic-ai/claude-code/install.cjs',
} as const

export const CLIS: readonly Cli[] = [
  { ...CLAUDE, version: NEWEST_TESTED },
  { ...CLAUDE, version: OLDEST_TESTED, file: 'claude-oldest' },
  { name: 'codex', version: '0.166.0', npmPackage: '@openai/codex', bin: 'node_modules/.bin/codex' },
  { name: 'gemini', version: '0.61.0', npmPackage: '@google/gemini-cli', bin: 'node_modules/.bin/gemini' },
  {
    name: 'opencode',
    version: '1.18.33',
    npmPackage: 'opencode-ai',
    bin: 'node_modules/opencode-ai/bin/opencode.exe',
    finish: 'node_modules/opencode-ai/postinstall.mjs',
  },
  { name: 'openclaw', version: '2026.9.6', npmPackage: 'openclaw', bin: 'node_modules/.bin/openclaw' },
]

/** Too large and too slow to run by default. */
export const ONLY_WHEN_NAMED: ReadonlySet<Cli['name']> = new Set(['openclaw'])

/** Every tested version of it, the newest first. */
export function findVersions(name: string): readonly Cli[] {
  const versions = CLIS.filter((known) => known.name === name)
  if (versions.length > 0) return versions
  const names = [...new Set(CLIS.map((known) => known.name))]
  throw new Error(`There is no agent "${name}" to test; known: ${names.join(', ')}.`)
}

export function findCli(name: string, version: 'newest' | 'oldest' = 'newest'): Cli {
  const versions = findVersions(name)
  return versions.at(version === 'newest' ? 0 : -1) as Cli
}
