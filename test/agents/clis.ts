/**
 * The agent CLIs that are run for real, each with the exact version that the backends are proven on and where npm puts
 * its program. A new version is tried by changing it here and nowhere else.
 */

export interface Cli {
  readonly name: 'claude' | 'codex' | 'gemini' | 'opencode' | 'openclaw'
  readonly version: string
  readonly npmPackage: string
  /** From the folder that it is installed in. */
  readonly bin: string
  /**
   * Packages are installed without their scripts. Where a program cannot be started until a script of its own package
   * has put the binary of this kind of machine in place, that one script is run, and no other package's.
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

/** Too large and too slow to be run unasked. */
export const ONLY_WHEN_NAMED: ReadonlySet<Cli['name']> = new Set(['openclaw'])

export function findCli(name: string): Cli {
  const cli = CLIS.find((known) => known.name === name)
  if (cli !== undefined) return cli
  throw new Error(`There is no agent "${name}" to test; known: ${CLIS.map((known) => known.name).join(', ')}.`)
}
