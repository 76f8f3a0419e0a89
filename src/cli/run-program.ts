/**
 * Runs a parsed program (`molecule` or `a2a`) and turns its end into an exit code: 0 done, 1 failed, 2 bad usage,
 * 130 interrupted by Ctrl-C. Bad usage is what the parser refuses, and every `invalid_request`: a value that was typed is
 * wrong, whether the command or the platform found it.
 * A failure is one sentence on stderr that says what to do next; `-v` shows the stack and the causes.
 */
import type { Command, CommanderError } from 'commander'
import { MoleculeError } from '../errors.ts'
import { withoutControls } from '../printable.ts'
import { EXIT_DONE, EXIT_FAILED, EXIT_USAGE, ExitError } from './exit-codes.ts'
import { ownCommand, ownProgram, withOwnCommand } from './terminal/own-command.ts'
import type { Environment, Terminal } from './terminal/terminal.ts'

const KEEP_ALIVE_MS = 60_000

export interface RunProgramOptions {
  readonly argv: readonly string[]
  readonly terminal: Terminal
  /** First word of the line on stderr that reports a failure. */
  readonly prefix: 'error:' | '[A2A_ERROR]'
  /** The commands that may be meant by one that does not exist. */
  readonly suggest?: (unknown: string) => Promise<readonly string[]>
}

/** Runs the arguments through the program and returns the exit code. */
export async function runProgram(program: Command, options: RunProgramOptions): Promise<number> {
  const { argv, terminal, prefix } = options
  program.exitOverride()
  program.configureOutput({
    writeOut: (text) => terminal.out(withOwnProgram(text, terminal)),
    writeErr: (text) => terminal.err(withOwnProgram(text, terminal)),
    // Printed below, once it is known whether a command was not found.
    outputError: () => undefined,
  })
  inheritSettings(program)
  // Prevents an exit in mid-command: the clock's timers are unref'd, so a command that waits for a retry would end.
  const keepAlive = setInterval(() => undefined, KEEP_ALIVE_MS)
  try {
    await program.parseAsync([...argv], { from: 'user' })
    return EXIT_DONE
  } catch (thrown) {
    if (isParserError(thrown)) {
      if (thrown.exitCode === 0) return EXIT_DONE
      if (isOwnSentence(thrown)) {
        const sentence = await usageSentence(thrown, program, options)
        terminal.err(sentence.replace(/^error:/, () => prefix))
      }
      return EXIT_USAGE
    }
    if (thrown instanceof ExitError) return thrown.exitCode
    const { verbose, apiUrl } = program.opts<{ verbose?: boolean; apiUrl?: string }>()
    const message = withOwnCommand(
      describeFailure(thrown, verbose === true, terminal.env),
      ownCommand(terminal.env, { apiUrl }),
    )
    // The message may quote an agent, whose control characters must not reach a terminal.
    terminal.err(`${prefix} ${terminal.interactive ? withoutControls(message) : message}\n`)
    return isBadUsage(thrown) ? EXIT_USAGE : EXIT_FAILED
  } finally {
    clearInterval(keepAlive)
  }
}

/** Help names the program and its commands as they are typed here. */
const withOwnProgram = (text: string, { env }: Terminal): string =>
  withOwnCommand(text, ownProgram(env)).replace(/^Usage: molecule\b/, () => `Usage: ${ownProgram(env)}`)

const isBadUsage = (thrown: unknown): boolean => thrown instanceof MoleculeError && thrown.code === 'invalid_request'

/** False where the parser has printed the help instead. */
const isOwnSentence = ({ code }: CommanderError): boolean => code !== 'commander.help'

/** One line: what is wrong, and what may be meant or where the help is. */
async function usageSentence(
  { code, message }: CommanderError,
  program: Command,
  options: RunProgramOptions,
): Promise<string> {
  const oneLine = message
    .replace(/\n\(Did you mean (.*)\?\)$/s, (_, names: string) => `; did you mean ${names}?`)
    .replace(/command-argument value ('.*?') is invalid for argument '(\S+?)'\./s, 'the argument <$2> cannot be $1.')
    .replace(
      /^error: option '([^']*)' argument ('.*') is invalid\./s,
      (_, flags: string, value: string) => `error: ${/--[\w-]+/.exec(flags)?.[0] ?? flags} cannot be ${value}.`,
    )
  const { command, path } = deepestCommand(program, options.argv)
  const quotes = code === 'commander.excessArguments' && takesText(command) ? '; a text with spaces needs quotes' : ''
  const sentence = quotes === '' ? oneLine : `${oneLine.replace(/\.$/, '')}${quotes}`
  if (options.suggest === undefined) return `${sentence}\n`
  const own = ownProgram(options.terminal.env)
  const unknown = code === 'commander.unknownCommand' ? /unknown command '(.*?)'/s.exec(message)?.[1] : undefined
  if (unknown === undefined) {
    const help = `; "${[own, ...path].join(' ')} --help" shows how`
    return oneLine.endsWith('?') ? `${oneLine}\n` : `${sentence.replace(/\.$/, '')}${help}\n`
  }
  const meant = (await options.suggest(unknown)).map((words) => `"${own} ${words}"`)
  const above = [own, ...path].join(' ')
  const advice = meant.length === 0 ? `; "${above} --help" lists them all` : `; did you mean ${meant.join(' or ')}?`
  return `error: unknown command '${withoutControls(unknown)}'${advice}\n`
}

/** True where a person may have typed several words without quotes. */
const takesText = ({ registeredArguments }: Command): boolean =>
  registeredArguments.some((argument) => ['message', 'task', 'text', 'name'].includes(argument.name()))

/** The innermost command that the arguments name, and the words that name it. */
export function deepestCommand(program: Command, argv: readonly string[]): { command: Command; path: string[] } {
  let command = program
  const path: string[] = []
  for (const word of argv) {
    const next = command.commands.find((below) => below.name() === word)
    if (next === undefined) continue
    command = next
    path.push(word)
  }
  return { command, path }
}

/** Checks the code, not the class: importing the class would load the parser at every start. */
function isParserError(thrown: unknown): thrown is CommanderError {
  return thrown instanceof Error && (thrown as Partial<CommanderError>).code?.startsWith?.('commander.') === true
}

function inheritSettings(parent: Command): void {
  for (const command of parent.commands) {
    command.copyInheritedSettings(parent)
    inheritSettings(command)
  }
}

/** One sentence; with `verbose` the stack, and the stacks of all causes. */
function describeFailure(thrown: unknown, verbose: boolean, env: Environment): string {
  if (!(thrown instanceof Error)) return String(thrown)
  if (!verbose) return withTokenAdvice(thrown, env)
  const lines = [thrown.stack ?? thrown.message]
  for (let cause = thrown.cause; cause instanceof Error; cause = cause.cause) {
    lines.push(`caused by: ${cause.stack ?? cause.message}`)
  }
  return lines.join('\n')
}

/** Adds to a refused token where this command gets its token from, which the platform cannot know. */
function withTokenAdvice(error: Error, env: Environment): string {
  if (!(error instanceof MoleculeError) || error.code !== 'unauthenticated') return error.message
  // Without a status the command itself has kept the token back, and says why.
  if (error.details['status'] === undefined) return error.message
  const reason = error.message.split(':')[0]
  // The variable that the command took the token from; another one would change nothing.
  const variable = ['MOLECULE_WORKSPACE_TOKEN', 'MOLECULE_ADMIN_TOKEN'].find((name) => env[name])
  if (variable === 'MOLECULE_WORKSPACE_TOKEN') {
    return `the platform does not accept the token in ${variable} (${reason}); it has ended, or is of another platform`
  }
  if (variable !== undefined) {
    return `the platform does not accept the token in ${variable} (${reason}); set it to the token in the file admin-token of that platform's data folder`
  }
  return (
    `the platform does not accept this command's token (${reason}); set MOLECULE_ADMIN_TOKEN, ` +
    'or set MOLECULE_HOME to the data folder of that platform, which has the token in the file admin-token'
  )
}
