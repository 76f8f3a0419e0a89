/**
 * `molecule complete -- words`: what a shell may offer for the last word. The commands and options are those of the
 * tree itself, so they cannot differ from what is understood; names of workspaces are asked for where one may stand.
 * It never fails aloud: a Tab must not write an error into somebody's line.
 */
import { type Command as Known, RootCommand } from '@bomb.sh/tab'
import type { Argument, Command, Option } from 'commander'
import type { CommandContext, DefineCommand } from '../command-context.ts'

const NAMES_TIMEOUT_MS = 1500

export const define: DefineCommand = (command, openContext) => {
  command
    .argument('[words...]', 'as far as they were typed')
    .allowUnknownOption()
    .action(async (words: string[]) => complete(command.parent ?? command, words, openContext))
}

/** The words are among the arguments, so the commands that they name have been loaded. */
async function complete(tree: Command, words: string[], openContext: () => Promise<CommandContext>): Promise<void> {
  const named = deepestCommand(tree, words)
  const names = wantsWorkspace(named) ? await workspaceNames(openContext) : []
  const root = new RootCommand()
  describeCommand(root, tree, [])
  addCommands(root, tree, { above: [], names, globals: tree.options })
  root.parse(words)
}

interface Adding {
  readonly above: readonly string[]
  readonly names: readonly string[]
  readonly globals: readonly Option[]
}

function addCommands(root: RootCommand, parent: Command, { above, names, globals }: Adding): void {
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

/** What an option's value is called in its flags says what it takes: `<workspace>`. */
function addOption(known: Known, option: Option, names: readonly string[]): void {
  const name = option.long?.slice(2)
  if (name === undefined) return
  const short = option.short?.slice(1)
  if (!option.required && !option.optional) return void known.option(name, option.description, short)
  const values =
    name === 'output' ? ['table', 'json', 'yaml'] : valuesOf(option, /<(\w+)>/.exec(option.flags)?.[1], names)
  known.option(name, option.description, offerValues(values), short)
}

const offerValues = (values: readonly string[]) => (offer: (value: string, description: string) => void) => {
  for (const value of values) offer(value, '')
}

function valuesOf(of: Argument | Option, word: string | undefined, names: readonly string[]): readonly string[] {
  return of.argChoices ?? (word === 'workspace' ? names : [])
}

/** The command that the words have come to. */
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
    // No platform, no token, a broken setting: then there is nothing to offer.
    return []
  }
}
