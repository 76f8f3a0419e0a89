/** What a person meant with a command that does not exist: a typing error, a subcommand, or the word of another tool. */
import type { Command } from 'commander'
import { deepestCommand } from './run-program.ts'
import { nearMisses } from './terminal/near-misses.ts'

/** Words that other tools use. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  start: 'up',
  run: 'up',
  serve: 'up',
  ls: 'workspace list',
  ps: 'status',
  top: 'status',
  new: 'workspace create',
  create: 'workspace create',
  add: 'workspace create',
  rm: 'workspace delete',
  remove: 'workspace delete',
  kill: 'stop',
  message: 'agent send',
  ask: 'agent send',
  talk: 'chat',
  log: 'logs',
  tasks: 'task list',
  workspaces: 'workspace list',
  agents: 'agent list',
  browser: 'open',
  setup: 'init',
  settings: 'config list',
  check: 'doctor',
}

/** Suggestions beyond this many are left out. */
const SUGGESTIONS_MAX = 3

/** The commands that may be meant, without the program's name; `program` must have loaded all its commands. */
export function suggestCommands(program: Command, argv: readonly string[], unknown: string): string[] {
  const { command, path } = deepestCommand(program, argv)
  const other = path.length === 0 ? otherWord(program, unknown) : []
  if (other.length > 0) return other
  return nearMisses(unknown, visibleNames(command)).map((name) => [...path, name].join(' '))
}

/** A word of another tool, or a subcommand without its group. */
function otherWord(program: Command, unknown: string): string[] {
  const word = Object.hasOwn(OTHER_WORDS, unknown) ? OTHER_WORDS[unknown] : undefined
  if (word !== undefined) return [word]
  const groups = program.commands.filter((group) => visibleNames(group).includes(unknown))
  return groups.map((group) => `${group.name()} ${unknown}`).slice(0, SUGGESTIONS_MAX)
}

const visibleNames = (command: Command): string[] =>
  command
    .createHelp()
    .visibleCommands(command)
    .map((below) => below.name())
    .filter((name) => name !== 'help')
