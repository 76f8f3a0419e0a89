/**
 * Whether a program still has the options that we give it, by its own `--help`. No more is asked of it: what an option
 * means cannot be told without a model.
 */
import { MoleculeError } from '../../../errors.ts'
import type { BackendContext, Drift } from '../../backend.ts'
import { type ProcessFacts, processFailure } from '../failure/agent-errors.ts'
import type { Scratch } from './scratch.ts'

const HELP_BYTES_MAX = 1024 * 1024

export interface MissingOptionsInput {
  readonly processes: BackendContext['processes']
  /** Each a command that prints help; all are read as one. */
  readonly commands: readonly (readonly [string, ...string[]])[]
  /** All that stands on our command lines; what is no option is passed over. */
  readonly words: readonly string[]
  readonly facts: ProcessFacts
}

export async function missingOptions(question: MissingOptionsInput, scratch: Scratch): Promise<readonly Drift[]> {
  const texts = await Promise.all(question.commands.map((command) => readHelp(command, question, scratch)))
  const help = texts.join('\n')
  const options = [...new Set(question.words.filter((word) => /^--?[a-z]/i.test(word)))]
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
  // Some print their help on stderr, some with an exit code of 1: text counts.
  if (result.end === 'exited' && text.trim() !== '') return text
  throw processFailure(result, facts) ?? new MoleculeError('agent_failed', `${command.join(' ')} printed nothing`)
}

const mentionsOption = (help: string, option: string): boolean =>
  new RegExp(`(^|[\\s,[(|<])${option}(?![\\w-])`, 'm').test(help)
