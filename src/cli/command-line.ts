/**
 * What `molecule` and `a2a` share as commands: how arguments are run and how a failure ends. A failure is one sentence
 * on stderr that says what to do next; the stack is shown only where `-v` asks for it. Exit codes: 0 done, 1 failed,
 * 2 not understood.
 */
import { type Command, CommanderError } from 'commander'

const EXIT_DONE = 0
export const EXIT_FAILED = 1
const EXIT_USAGE = 2

/** Where a command writes and reads its surroundings; tests pass their own. */
export interface Terminal {
  readonly out: (text: string) => void
  readonly err: (text: string) => void
  readonly env: Readonly<Record<string, string | undefined>>
  /** The whole of stdin, asked for only by commands that are told to read it. */
  readonly readInput: () => Promise<string>
  /** A person looks at what is written to `err`. */
  readonly interactive: boolean
}

export const processTerminal: Terminal = {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  env: process.env,
  readInput: async () => {
    const { text } = await import('node:stream/consumers')
    return text(process.stdin)
  },
  interactive: process.stderr.isTTY === true,
}

/** How the text of a failure begins. */
export type FailurePrefix = 'error:' | '[A2A_ERROR]'

export interface RunOptions {
  readonly argv: readonly string[]
  readonly terminal: Terminal
  readonly prefix: FailurePrefix
}

/** Runs the arguments through the program and answers the exit code. */
export async function runProgram(program: Command, { argv, terminal, prefix }: RunOptions): Promise<number> {
  program.exitOverride()
  program.configureOutput({ writeOut: terminal.out, writeErr: terminal.err })
  for (const command of program.commands) command.copyInheritedSettings(program)
  // Our timers do not keep a process alive: a command that waits before it tries again would end in the middle.
  const hold = setInterval(() => undefined, HOLD_MS)
  try {
    await program.parseAsync([...argv], { from: 'user' })
    return EXIT_DONE
  } catch (thrown) {
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? EXIT_DONE : EXIT_USAGE
    terminal.err(`${prefix} ${describeFailure(thrown, program.opts()['verbose'] === true)}\n`)
    return EXIT_FAILED
  } finally {
    clearInterval(hold)
  }
}

const HOLD_MS = 60_000

/** One sentence; with `verbose` also where it came from, causes included. */
function describeFailure(thrown: unknown, verbose: boolean): string {
  if (!(thrown instanceof Error)) return String(thrown)
  if (!verbose) return thrown.message
  const lines = [thrown.stack ?? thrown.message]
  for (let cause = thrown.cause; cause instanceof Error; cause = cause.cause) {
    lines.push(`caused by: ${cause.stack ?? cause.message}`)
  }
  return lines.join('\n')
}
