/** Runs the programs of `bin/` as real processes, in an environment that hides the user's own Molecule from them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { fileURLToPath } from 'node:url'
import { waitUntil, within } from './wait.ts'

export const BIN = fileURLToPath(new URL('../../bin', import.meta.url))
export const MOLECULE = `${BIN}/molecule`

export interface CommandResult {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export interface RunCommandOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
  readonly program?: 'molecule' | 'a2a'
}

/** Without it, a test would reach the platform or the database that the user has set for their own work. */
export function cleanEnvironment(env: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const entries = Object.entries(process.env).filter(([name]) => !/^(MOLECULE_|DATABASE_URL$|NO_COLOR$)/.test(name))
  return { ...Object.fromEntries(entries), ...env }
}

/** Runs a program to its end. */
export async function runCommand(args: readonly string[], options: RunCommandOptions = {}): Promise<CommandResult> {
  const { env, input = '', program = 'molecule' } = options
  const child = spawn(`${BIN}/${program}`, args, { env: cleanEnvironment(env), stdio: ['pipe', 'pipe', 'pipe'] })
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  const [out, err] = await within(ended, `${program} ${args.join(' ')} ends`).finally(() => child.kill('SIGKILL'))
  return { code: child.exitCode, out, err }
}

export interface TerminalSession {
  /** Everything that the terminal has shown so far, with its control sequences. */
  shown(): string
  type(keys: string): void
  waitForText(pattern: RegExp): Promise<void>
  /** Waits for the command to end; its exit code. */
  ended(): Promise<number | null>
}

/** Starts `molecule` at a pseudo-terminal, which `script` provides, so that a test can type into it. */
export function openTerminal(
  t: TestContext,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): TerminalSession {
  const line = ['stty cols 100 rows 30;', `exec ${MOLECULE}`, ...args.map((arg) => `'${arg}'`)].join(' ')
  const child: ChildProcess = spawn('/usr/bin/env', ['script', '-qefc', line, '/dev/null'], {
    env: cleanEnvironment({ TERM: 'xterm', SHELL: '/bin/sh', ...env }),
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let shown = ''
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    shown += chunk
  })
  child.stdin?.on('error', () => undefined)
  t.after(() => child.kill('SIGKILL'))
  const closed = once(child, 'close')
  return {
    shown: () => shown,
    type: (keys) => void child.stdin?.write(keys),
    waitForText: (pattern) =>
      waitUntil(
        () => pattern.test(shown),
        () => `the terminal shows ${pattern}; it shows: ${JSON.stringify(shown.slice(-2000))}`,
      ),
    async ended() {
      await within(closed, () => `the command ends; it shows: ${JSON.stringify(shown.slice(-2000))}`)
      return child.exitCode
    },
  }
}
