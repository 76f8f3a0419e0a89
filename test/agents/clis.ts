/**
 * The real agent CLIs that are tested: the exact version that the backends are tested with, and the path of the program
 * after installation. To test a new version, change it only here.
 */

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
}

export const CLIS: readonly Cli[] = [
  {
    name: 'claude',
    version: '2.1.325',
    npmPackage: '@anthropic-ai/claude-code',
    bin: 'node_modules/@anthropic-ai/claude-code/bin/claude.exe',
    finish: 'node_modules/@anthropic-ai/claude-code/install.cjs',
  },
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

export function findCli(name: string): Cli {
  const cli = CLIS.find((known) => known.name === name)
  if (cli !== undefined) return cli
  throw new Error(`There is no agent "${name}" to test; known: ${CLIS.map((known) => known.name).join(', ')}.`)
}
