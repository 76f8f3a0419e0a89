/** The commands of `bin/` as processes of their own, with nothing of this machine's own Molecule around them. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

export const BIN = fileURLToPath(new URL('../../bin', import.meta.url))

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

/** Variables by which a command would find another platform than the test's. */
function cleanEnvironment(env: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const entries = Object.entries(process.env).filter(([name]) => !/^(MOLECULE_|DATABASE_URL$|NO_COLOR$)/.test(name))
  return { ...Object.fromEntries(entries), ...env }
}

export async function runCommand(args: readonly string[], options: RunCommandOptions = {}): Promise<CommandResult> {
  const { env, input = '', program = 'molecule' } = options
  const child = spawn(`${BIN}/${program}`, args, { env: cleanEnvironment(env), stdio: ['pipe', 'pipe', 'pipe'] })
  child.stdin.on('error', () => undefined)
  child.stdin.end(input)
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')])
  return { code: child.exitCode, out, err }
}

/** Wide, for a busy machine. */
const SEEN_MS_MAX = 60_000

export interface TerminalSession {
  /** All that the terminal has shown so far, with its control sequences. */
  shown(): string
  type(keys: string): void
  /** Waits until what was shown matches. */
  waitForText(pattern: RegExp): Promise<void>
  ended(): Promise<number | null>
}

/** A command at a terminal of its own, made by `script`, that a test types into. */
export function openTerminal(
  t: TestContext,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): TerminalSession {
  const line = ['stty cols 100 rows 30;', `exec ${BIN}/molecule`, ...args.map((arg) => `'${arg}'`)].join(' ')
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
    async waitForText(pattern) {
      const deadlineMs = performance.now() + SEEN_MS_MAX
      while (!pattern.test(shown)) {
        if (performance.now() < deadlineMs) await delay(20)
        else throw new Error(`${pattern} was not shown, but: ${JSON.stringify(shown.slice(-2000))}`)
      }
    },
    async ended() {
      await closed
      return child.exitCode
    },
  }
}
