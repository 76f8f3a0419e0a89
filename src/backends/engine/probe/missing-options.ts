/**
 * Checks in a program's `--help` that it still has the options that its backend uses. What an option does cannot be
 * checked without a model.
 */
import { MoleculeError } from '../../../errors.ts'
import type { BackendContext, Drift } from '../../backend.ts'
import { type ProcessFacts, processFailure } from '../failure/agent-errors.ts'
import type { Scratch } from './scratch.ts'

/** A longer help ends the process, and the probe fails. */
const HELP_BYTES_MAX = 1024 * 1024

export interface MissingOptionsInput {
  readonly processes: BackendContext['processes']
  /** Commands that print help. Their output is searched as one text. */
  readonly commands: readonly (readonly [string, ...string[]])[]
  /** The arguments that the backend uses. Arguments that are not options are ignored. */
  readonly args: readonly string[]
  readonly facts: ProcessFacts
}

export async function missingOptions(input: MissingOptionsInput, scratch: Scratch): Promise<readonly Drift[]> {
  const texts = await Promise.all(input.commands.map((command) => readHelp(command, input, scratch)))
  const help = texts.join('\n')
  const options = [...new Set(input.args.filter((arg) => /^--?[a-z]/i.test(arg)))]
  return options
    .filter((option) => !mentionsOption(help, option))
    .map((option) => ({ missing: `option ${option} missing` }))
}

async function readHelp(
  command: readonly [string, ...string[]],
  { processes, facts }: MissingOptionsInput,
  { dir, env, mark, signal }: Scratch,
): Promise<string> {
  const result = await processes.run(
    { command, cwd: dir, env, mark, input: '', outputBytesMax: HELP_BYTES_MAX, stderrBytesKept: HELP_BYTES_MAX },
    signal,
  )
  const text = [result.stdout, result.stderrTail].map((bytes) => new TextDecoder().decode(bytes)).join('\n')
  // Some programs print help on stderr or exit with code 1: any output counts as help.
  if (result.end === 'exited' && text.trim() !== '') return text
  throw processFailure(result, facts) ?? new MoleculeError('agent_failed', `${command.join(' ')} printed nothing`)
}

const mentionsOption = (help: string, option: string): boolean =>
  new RegExp(`(^|[\\s,[(|<])${option}(?![\\w-])`, 'm').test(help)
