/**
 * `molecule complete -- words`, and the same of `a2a`: prints what a shell may offer for the last word. Commands and options
 * come from the parser itself, so they match what it accepts; names of workspaces come from the platform. A place that
 * takes a file or a folder says so, and the shell finds them. Errors are swallowed, because a Tab must not write an error
 * into the line that the user types.
 */
import { type Command as Known, RootCommand, ShellCompDirective } from '@bomb.sh/tab'
import type { Command, Option } from 'commander'
import type { PlatformClient } from '../../../client/platform-client.ts'
import { listWorkspaces } from '../../../client/workspaces.ts'
import type { DefineCommand } from '../../command-context.ts'
import { OUTPUT_FORMATS } from '../../terminal/output.ts'

const NAMES_TIMEOUT_MS = 1500

type Offer = (value: string, description: string) => void

/** What a place in the command line takes, by the name of its value. */
interface Places {
  readonly names: readonly string[]
  readonly runtimes: readonly string[]
  readonly settings: readonly string[]
  /** The word at the cursor, as far as it is typed. */
  readonly typed: string
  /** The shell offers its files, or only its folders. */
  askForFiles(kind: 'file' | 'folder'): void
}

export const define: DefineCommand = (command, openContext) => {
  command
    .argument('[words...]', 'the words typed so far')
    .allowUnknownOption()
    .action(async (words: string[]) =>
      printCompletions(command.parent ?? command, words, async () => (await openContext()).platform()),
    )
}

/** The typed words are arguments of this process, so the commands that they name are loaded. */
export async function printCompletions(
  tree: Command,
  words: string[],
  openPlatform: () => Promise<Pick<PlatformClient, 'pages'>>,
): Promise<void> {
  const named = deepestCommand(tree, words)
  const root = new RootCommand()
  let directive = ShellCompDirective.ShellCompDirectiveNoFileComp
  // The library sets it to "no files" before it prints it.
  Object.defineProperty(root, 'directive', { get: () => directive, set: () => undefined })
  const takesSetting = named.registeredArguments.some((argument) => argument.name() === 'setting')
  const places: Places = {
    names: wantsWorkspace(named) ? await workspaceNames(openPlatform) : [],
    runtimes:
      takesSetting || named.options.some(({ long }) => RUNTIME_OPTIONS.has(long ?? '')) ? await runtimeNames() : [],
    settings: takesSetting ? await settingKeys() : [],
    typed: words.at(-1) ?? '',
    askForFiles(kind) {
      const { ShellCompDirectiveDefault: files, ShellCompDirectiveFilterDirs: folders } = ShellCompDirective
      directive = kind === 'file' ? files : folders
    },
  }
  describeCommand(root, tree, places)
  addCommands(root, tree, { above: [], places, globals: tree.options })
  root.parse(words)
}

function addCommands(
  root: RootCommand,
  parent: Command,
  { above, places, globals }: { above: readonly string[]; places: Places; globals: readonly Option[] },
): void {
  for (const command of parent.createHelp().visibleCommands(parent)) {
    const path = [...above, command.name()]
    const known = root.command(path.join(' '), command.description())
    describeCommand(known, command, places)
    for (const option of globals) addOption(known, option, places)
    addCommands(root, command, { above: path, places, globals })
  }
}

function describeCommand(known: Known, command: Command, places: Places): void {
  for (const option of command.options) addOption(known, option, places)
  for (const argument of command.registeredArguments) {
    const offer = offerFor(argument.name(), argument.argChoices, places)
    known.argument(argument.name(), offer, argument.variadic)
  }
}

/** The name of an option's value says what it takes, as in `--parent <workspace>`. */
function addOption(known: Known, option: Option, places: Places): void {
  const name = option.long?.slice(2)
  if (name === undefined) return
  const short = option.short?.slice(1)
  if (!option.required && !option.optional) return void known.option(name, option.description, short)
  const word = RUNTIME_OPTIONS.has(`--${name}`) ? 'runtime' : /[<[](\w+)[>\]]/.exec(option.flags)?.[1]
  const choices = name === 'output' ? OUTPUT_FORMATS : option.argChoices
  known.option(name, option.description, offerFor(word, choices, places), short)
}

const RUNTIME_OPTIONS: ReadonlySet<string> = new Set(['--runtime', '--backend'])

const FILE_WORDS: Readonly<Record<string, 'file' | 'folder'>> = { file: 'file', path: 'file', folder: 'folder' }

function offerFor(given: string | undefined, choices: readonly string[] | undefined, places: Places) {
  const word = given ?? ''
  return (offer: Offer): void => {
    const files = FILE_WORDS[word]
    if (files !== undefined) places.askForFiles(files)
    for (const value of choices ?? (word === 'setting' ? offerSetting(places) : valuesOf(word, places)))
      offer(value, '')
  }
}

/** What the value of a setting is, as the places of a command line are named. */
const SETTING_WORDS: Readonly<Record<string, string>> = { runtime: 'runtime', parent: 'workspace' }

/** The keys, or the values of the key before a `=`. The library compares only what is behind the `=`. */
function offerSetting(places: Places): readonly string[] {
  const [key = '', value] = places.typed.split('=', 2)
  if (value === undefined) return places.settings
  if (key === 'working_dir') places.askForFiles('folder')
  return valuesOf(SETTING_WORDS[key] ?? '', places)
}

function valuesOf(word: string, { names, runtimes }: Places): readonly string[] {
  if (word === 'workspace') return names
  return word === 'runtime' ? runtimes : []
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

async function runtimeNames(): Promise<string[]> {
  const { builtinBackends, createBackendRegistry } = await import('../../../backends/backends.ts')
  return [...createBackendRegistry(builtinBackends).names(), 'external']
}

async function settingKeys(): Promise<string[]> {
  const { completeSetting } = await import('../workspaces/workspace-set.ts')
  return completeSetting()
}

async function workspaceNames(openPlatform: () => Promise<Pick<PlatformClient, 'pages'>>): Promise<string[]> {
  try {
    const workspaces = await listWorkspaces(await openPlatform(), AbortSignal.timeout(NAMES_TIMEOUT_MS))
    return workspaces.map(({ name }) => name).filter((name) => !/\s/.test(name))
  } catch {
    // No platform, no token, an invalid setting: offer nothing.
    return []
  }
}
