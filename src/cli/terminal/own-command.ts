/**
 * How a person calls this `molecule` from the terminal that shows a message: `molecule` where PATH leads to this
 * installation, else the path of `bin/molecule` from the current folder. So a printed command works as it is printed.
 */
import { accessSync, constants, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Environment, Terminal } from './terminal.ts'

const BIN = fileURLToPath(new URL('../../../bin/', import.meta.url))
const MOLECULE = join(BIN, 'molecule')

const DEFAULT_HOME = join(homedir(), '.molecule')

export interface OwnCommandOptions {
  /** The data folder of the platform that the command is for; default: the one that the environment names. */
  readonly dataDir?: string | undefined
  /** The value of `--api-url`, if it was given: the printed command needs it too. */
  readonly apiUrl?: string | undefined
}

/** `bin/molecule`, with MOLECULE_HOME before it where the data folder is not the default one. */
export function ownCommand(env: Environment, { dataDir, apiUrl }: OwnCommandOptions = {}): string {
  const home = dataDir ?? env['MOLECULE_HOME']
  const isDefault = [home, env['MOLECULE_HOME']].every((path) => !path || resolve(path) === DEFAULT_HOME)
  const words = [
    ...(isDefault || !home ? [] : [`MOLECULE_HOME=${shellQuoted(resolve(home))}`]),
    ownProgram(env),
    ...(apiUrl ? ['--api-url', shellQuoted(apiUrl)] : []),
  ]
  return words.join(' ')
}

/** The program alone, for a line that another folder or another terminal runs, such as one of `~/.bashrc`. */
export const programAnywhere = (env: Environment, name: 'molecule' | 'a2a' = 'molecule'): string =>
  isOnPath(env['PATH'], name) ? name : shellQuoted(join(BIN, name))

/** The program alone, for a command that needs no data folder. */
export function ownProgram(env: Environment): string {
  if (isOnPath(env['PATH'])) return 'molecule'
  const fromHere = relativeToHere(MOLECULE)
  const path = fromHere.includes('/') ? fromHere : `./${fromHere}`
  return shellQuoted(path.length <= MOLECULE.length ? path : MOLECULE)
}

/** Prevents that every command fails in a folder that was removed: the system has no path for it any more. */
function relativeToHere(path: string): string {
  try {
    return relative('', path)
  } catch {
    return path
  }
}

/** True where typing the name runs this installation, also through links, and not another one. */
function isOnPath(path = '', name = 'molecule'): boolean {
  for (const folder of path.split(delimiter)) {
    if (folder === '') continue
    const found = join(folder, name)
    try {
      accessSync(found, constants.X_OK)
      return realpathSync(found) === realpathSync(join(BIN, name))
    } catch {
      // Not in this folder.
    }
  }
  return false
}

/**
 * Replaces `"molecule chat ..."` in a sentence by the command as it is typed here. Layers below the command line, and the
 * platform, cannot know how this terminal calls it; they write the plain name in quotes.
 */
export const withOwnCommand = (text: string, command: string): string =>
  text.replaceAll(QUOTED_COMMAND, (_, name: string) => `"${name === 'up' ? withoutUrl(command) : command} ${name}`)

/** A terminal that shows the commands in every text as they are typed here. */
export const namingOwnCommand = (terminal: Terminal, command: string): Terminal => ({
  ...terminal,
  out: (text) => terminal.out(withOwnCommand(text, command)),
  err: (text) => terminal.err(withOwnCommand(text, command)),
})

const QUOTED_COMMAND = /"molecule ([a-z]+)/g

/** `up` starts a platform here: it takes no URL of another one. */
const withoutUrl = (command: string): string => command.replace(/ --api-url .*$/s, '')

/** Quoted for a POSIX shell, if it needs quotes. */
export function shellQuoted(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}
