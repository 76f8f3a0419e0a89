/** The first page of help, built from `tree.ts` alone, so that `molecule --help` loads no parser and no command. */
import { COMMANDS, DESCRIPTION, GLOBAL_OPTIONS, HELP_OPTION, VERSION_OPTION } from './tree.ts'

const COLUMNS_DEFAULT = 80
const COLUMNS_MIN = 40

/** `program` is how `molecule` is typed here. */
export function rootHelp(program: string, columns = COLUMNS_DEFAULT): string {
  const width = Math.max(columns, COLUMNS_MIN)
  const commands = COMMANDS.filter(({ hidden }) => hidden !== true).map(({ name, summary }) => [name, summary] as const)
  return [
    `Usage: ${program} [options] <command>`,
    wrap(DESCRIPTION, width, 0),
    `Options:\n${list([...GLOBAL_OPTIONS, VERSION_OPTION, HELP_OPTION], width)}`,
    `Commands:\n${list(commands, width)}`,
    `${program} <command> --help shows the help of a command.\n`,
  ].join('\n\n')
}

function list(rows: readonly (readonly [string, string])[], width: number): string {
  const first = Math.max(...rows.map(([term]) => term.length))
  return rows.map(([term, text]) => `  ${term.padEnd(first)}  ${wrap(text, width, first + 4)}`).join('\n')
}

/** The caller has already indented the first line. */
function wrap(text: string, width: number, indent: number): string {
  const lines = ['']
  for (const word of text.split(' ')) {
    const line = lines.at(-1) ?? ''
    if (line !== '' && indent + line.length + word.length + 1 > width) lines.push(word)
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`
  }
  return lines.join(`\n${' '.repeat(indent)}`)
}
