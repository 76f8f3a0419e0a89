/**
 * What `molecule` and `a2a` share as commands: how arguments are run and how a failure ends. A failure is one sentence
 * on stderr that says what to do next; the stack is shown only where `-v` asks for it. Exit codes: 0 done, 1 failed,
 * 2 not understood.
 */
import { isatty } from 'node:tty'
import type { Command, CommanderError } from 'commander'
import { MoleculeError } from '../errors.ts'
import { withoutControls } from './terminal/output.ts'

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
  /** A person looks at what is written to `out`; how wide that is, in characters. */
  readonly screen?: { readonly columns: number } | undefined
  /** A person types; undefined where input is a pipe or a file. */
  readonly keyboard?: NodeJS.ReadStream | undefined
  /** Input as it comes, for commands that take it line by line. */
  readonly input: () => NodeJS.ReadableStream
}

export const processTerminal: Terminal = {
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  env: process.env,
  readInput: async () => {
    const { text } = await import('node:stream/consumers')
    return text(process.stdin)
  },
  // By descriptor and when asked for: Node makes each stream at the first touch, and "--help" touches one of them.
  get interactive() {
    return isatty(2)
  },
  get screen() {
    return isatty(1) ? { columns: process.stdout.columns } : undefined
  },
  get keyboard() {
    return isatty(0) ? process.stdin : undefined
  },
  input: () => process.stdin,
}

/** How the text of a failure begins. */
export type FailurePrefix = 'error:' | '[A2A_ERROR]'

export interface RunProgramOptions {
  readonly argv: readonly string[]
  readonly terminal: Terminal
  readonly prefix: FailurePrefix
}

/** Runs the arguments through the program and answers the exit code. */
export async function runProgram(program: Command, { argv, terminal, prefix }: RunProgramOptions): Promise<number> {
  program.exitOverride()
  program.configureOutput({ writeOut: terminal.out, writeErr: terminal.err })
  inheritSettings(program)
  // Our timers do not keep a process alive: a command that waits before it tries again would end in the middle.
  const keepAlive = setInterval(() => undefined, KEEP_ALIVE_MS)
  try {
    await program.parseAsync([...argv], { from: 'user' })
    return EXIT_DONE
  } catch (thrown) {
    if (isParserError(thrown)) return thrown.exitCode === 0 ? EXIT_DONE : EXIT_USAGE
    if (thrown instanceof ExitError) return thrown.exitCode
    const message = describeFailure(thrown, program.opts()['verbose'] === true)
    // An agent's own message may stand in it.
    terminal.err(`${prefix} ${terminal.interactive ? withoutControls(message) : message}\n`)
    return EXIT_FAILED
  } finally {
    clearInterval(keepAlive)
  }
}

const KEEP_ALIVE_MS = 60_000

/** Thrown by a command that has said everything itself and ends with a code of its own. */
export class ExitError extends Error {
  override readonly name = 'ExitError'
  readonly exitCode: number

  constructor(exitCode: number) {
    super(`ended with ${exitCode}`)
    this.exitCode = exitCode
  }
}

/** By its name: importing the parser for its class would load it for those who only want to write a line. */
function isParserError(thrown: unknown): thrown is CommanderError {
  return thrown instanceof Error && (thrown as Partial<CommanderError>).code?.startsWith?.('commander.') === true
}

function inheritSettings(parent: Command): void {
  for (const command of parent.commands) {
    command.copyInheritedSettings(parent)
    inheritSettings(command)
  }
}

/** One sentence; with `verbose` also where it came from, causes included. */
function describeFailure(thrown: unknown, verbose: boolean): string {
  if (!(thrown instanceof Error)) return String(thrown)
  if (!verbose) return withAdvice(thrown)
  const lines = [thrown.stack ?? thrown.message]
  for (let cause = thrown.cause; cause instanceof Error; cause = cause.cause) {
    lines.push(`caused by: ${cause.stack ?? cause.message}`)
  }
  return lines.join('\n')
}

/** What a platform cannot know: how a command comes by its token. */
function withAdvice(error: Error): string {
  if (!(error instanceof MoleculeError) || error.code !== 'unauthenticated') return error.message
  return (
    `the platform does not accept this command's token (${error.message.split(':')[0]}); set MOLECULE_ADMIN_TOKEN, ` +
    'or MOLECULE_HOME to the data folder of that platform, whose file admin-token has it'
  )
}
