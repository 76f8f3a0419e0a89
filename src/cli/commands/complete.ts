/**
 * `molecule complete -- words`: prints what a shell may offer for the last word. Commands and options come from the parser
 * itself, so they match what it accepts; names of workspaces come from the platform. Errors are swallowed, because a Tab
 * must not write an error into the line that the user types.
 */
import { type Command as Known, RootCommand } from '@bomb.sh/tab'
import type { Argument, Command, Option } from 'commander'
import type { CommandContext, DefineCommand } from '../command-context.ts'
import { OUTPUT_FORMATS } from '../terminal/output.ts'

const NAMES_TIMEOUT_MS = 1500

export const define: DefineCommand = (command, openContext) => {
  command
    .argument('[words...]', 'the words typed so far')
    .allowUnknownOption()
    .action(async (words: string[]) => complete(command.parent ?? command, words, openContext))
}

/** The typed words are arguments of this process, so the commands that they name are loaded. */
async function complete(tree: Command, words: string[], openContext: () => Promise<CommandContext>): Promise<void> {
  const named = deepestCommand(tree, words)
  const names = wantsWorkspace(named) ? await workspaceNames(openContext) : []
  const root = new RootCommand()
  describeCommand(root, tree, [])
  addCommands(root, tree, { above: [], names, globals: tree.options })
  root.parse(words)
}

function addCommands(
  root: RootCommand,
  parent: Command,
  { above, names, globals }: { above: readonly string[]; names: readonly string[]; globals: readonly Option[] },
): void {
  for (const command of parent.createHelp().visibleCommands(parent)) {
    const path = [...above, command.name()]
    const known = root.command(path.join(' '), command.description())
    describeCommand(known, command, names)
    for (const option of globals) addOption(known, option, names)
    addCommands(root, command, { above: path, names, globals })
  }
}

function describeCommand(known: Known, command: Command, names: readonly string[]): void {
  for (const option of command.options) addOption(known, option, names)
  for (const argument of command.registeredArguments) {
    const values = valuesOf(argument, argument.name(), names)
    known.argument(argument.name(), offerValues(values), argument.variadic)
  }
}

/** The name of an option's value says what it takes, as in `--parent <workspace>`. */
function addOption(known: Known, option: Option, names: readonly string[]): void {
  const name = option.long?.slice(2)
  if (name === undefined) return
  const short = option.short?.slice(1)
  if (!option.required && !option.optional) return void known.option(name, option.description, short)
  const values = name === 'output' ? OUTPUT_FORMATS : valuesOf(option, /<(\w+)>/.exec(option.flags)?.[1], names)
  known.option(name, option.description, offerValues(values), short)
}

const offerValues = (values: readonly string[]) => (offer: (value: string, description: string) => void) => {
  for (const value of values) offer(value, '')
}

function valuesOf(of: Argument | Option, word: string | undefined, names: readonly string[]): readonly string[] {
  return of.argChoices ?? (word === 'workspace' ? names : [])
}

/** The innermost command that the words name. */
function deepestCommand(tree: Command, words: readonly string[]): Command {
  let command = tree
  for (const word of words) command = command.commands.find((below) => below.name() === word) ?? command
  return command
}

const wantsWorkspace = ({ registeredArguments, options }: Command): boolean =>
  registeredArguments.some((argument) => argument.name() === 'workspace') ||
  options.some(({ flags }) => flags.includes('<workspace>'))

async function workspaceNames(openContext: () => Promise<CommandContext>): Promise<string[]> {
  try {
    const { platform } = await openContext()
    const workspaces = await platform().listWorkspaces(AbortSignal.timeout(NAMES_TIMEOUT_MS))
    return workspaces.map(({ name }) => name).filter((name) => !/\s/.test(name))
  } catch {
    // No platform, no token, an invalid setting: offer nothing.
    return []
  }
}
