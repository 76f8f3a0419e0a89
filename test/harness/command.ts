/** Runs the programs of `bin/` as real processes, in an environment that hides the user's own Molecule from them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { dirname } from 'node:path'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { createTerminalScreen } from './clients/terminal-screen.ts'
import { waitUntil, within } from './wait.ts'

export const BIN = fileURLToPath(new URL('../../bin', import.meta.url))
export const MOLECULE = `${BIN}/molecule`

/** How long a process has to write its coverage. */
const REPORT_MS = 5000

export interface CommandResult {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export interface RunCommandOptions {
  readonly env?: Readonly<Record<string, string>>
  readonly input?: string
  readonly program?: 'molecule' | 'a2a'
  /** Default: the folder of the clone. */
  readonly cwd?: string
}

/**
 * Without it, a test would reach the platform or the database that the user has set for their own work, and a command
 * would take itself for one that npm runs, because npm runs the tests.
 */
export function cleanEnvironment(env: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const entries = Object.entries(process.env).filter(
    ([name]) => !/^(MOLECULE_|DATABASE_URL$|NO_COLOR$|npm_lifecycle_)/.test(name),
  )
  return { ...Object.fromEntries(entries), ...env }
}

/**
 * Ends a process of a test. A run that measures coverage asks first, because a killed process reports none; SIGKILL follows,
 * because a process that a test has stopped with SIGSTOP takes no other signal.
 */
export async function endProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  if (process.env['NODE_V8_COVERAGE']) {
    child.kill('SIGTERM')
    await Promise.race([ended, setTimeout(REPORT_MS)])
  }
  child.kill('SIGKILL')
  await ended
}

/** Runs a program to its end. */
export async function runCommand(args: readonly string[], options: RunCommandOptions = {}): Promise<CommandResult> {
  const child = spawnCommand(args, options)
  const ended = Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  const [out, err] = await within(ended, `${args.join(' ')} ends`).finally(() => child.kill('SIGKILL'))
  return { code: child.exitCode, out, err }
}

function spawnCommand(args: readonly string[], options: RunCommandOptions) {
  const { env, input = '', program = 'molecule', cwd = dirname(BIN) } = options
  const child = spawn(`${BIN}/${program}`, args, { cwd, env: cleanEnvironment(env), stdio: ['pipe', 'pipe', 'pipe'] })
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  return child
}

export interface StartedCommand {
  /** Waits until everything on stderr so far matches. */
  waitForErrors(pattern: RegExp): Promise<void>
  /** The same for stdout. */
  waitForOutput(pattern: RegExp): Promise<void>
  ended(): Promise<CommandResult>
}

/** Starts a program whose progress on stderr a test follows. */
export function startCommand(t: TestContext, args: readonly string[], options: RunCommandOptions): StartedCommand {
  const child = spawnCommand(args, options)
  t.after(() => child.kill('SIGKILL'))
  let err = ''
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    err += chunk
  })
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    out += chunk
  })
  const closed = once(child, 'close')
  return {
    waitForOutput: (pattern) =>
      waitUntil(
        () => pattern.test(out),
        () => `stdout is ${pattern}; it is ${JSON.stringify(out)}, stderr ${JSON.stringify(err)}`,
      ),
    waitForErrors: (pattern) =>
      waitUntil(
        () => pattern.test(err),
        () => `stderr is ${pattern}; it is ${JSON.stringify(err)}`,
      ),
    async ended() {
      await within(closed, () => `${args.join(' ')} ends; stderr is ${JSON.stringify(err)}`)
      return { code: child.exitCode, out, err }
    },
  }
}

const SIZE = { columns: 100, rows: 30 }

export interface TerminalSession {
  /** Everything that the terminal has shown so far, with its control sequences. */
  shown(): string
  type(keys: string): void
  waitForText(pattern: RegExp): Promise<void>
  /** What a person sees now, with everything that scrolled away. */
  screen(): string
  waitForScreen(pattern: RegExp): Promise<void>
  /** Waits for the command to end; its exit code. */
  ended(): Promise<number | null>
}

/** Starts `molecule` at a pseudo-terminal, so that a test can type into it; in `PWD` of `env`. */
export const openTerminal = (
  t: TestContext,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): TerminalSession => openProgramAtTerminal(t, [MOLECULE, ...args], env)

/** Starts any program at a pseudo-terminal, which `script` provides; in `PWD` of `env`. */
export function openProgramAtTerminal(
  t: TestContext,
  [program, ...args]: readonly string[],
  env: Readonly<Record<string, string>>,
): TerminalSession {
  const line = [
    `stty cols ${SIZE.columns} rows ${SIZE.rows};`,
    `exec ${program}`,
    ...args.map((arg) => `'${arg}'`),
  ].join(' ')
  const child: ChildProcess = spawn('/usr/bin/env', ['script', '-qefc', line, '/dev/null'], {
    cwd: env['PWD'] ?? dirname(BIN),
    env: cleanEnvironment({ TERM: 'xterm', SHELL: '/bin/sh', ...env }),
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let shown = ''
  const screen = createTerminalScreen(SIZE)
  child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
    shown += chunk
    screen.write(chunk)
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
    screen: screen.text,
    waitForScreen: (pattern) =>
      waitUntil(
        () => pattern.test(screen.text()),
        () => `the terminal shows ${pattern}; it shows:\n${screen.text().slice(-2000)}`,
      ),
    async ended() {
      await within(closed, () => `the command ends; it shows: ${JSON.stringify(shown.slice(-2000))}`)
      return child.exitCode
    },
  }
}
