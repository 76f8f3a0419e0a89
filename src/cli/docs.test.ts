/** docs/cli.md tells the truth: its reference is the tree of commands, written out. */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import test from 'node:test'
import type { Command } from 'commander'
import { recordingTerminal } from '../../test/fakes/terminal.ts'
import { buildProgram } from './program.ts'

const PAGE = new URL('../../docs/cli.md', import.meta.url)
const MARK = 'npm test -- src/cli/docs.test.ts writes it. -->\n'

test('CL-1 docs/cli.md lists every command with its arguments and options, and no other', async () => {
  const program = await buildProgram(recordingTerminal(), () => true)
  const page = readFileSync(PAGE, 'utf8')
  const end = page.indexOf(MARK) + MARK.length
  const written = `${page.slice(0, end)}\n${reference(program)}`
  if (process.env['UPDATE_DOCS'] === '1') writeFileSync(PAGE, written)
  else assert.equal(page, written)
})

test('every command has a summary, and every option and argument says what it is', async () => {
  const program = await buildProgram(recordingTerminal(), () => true)
  for (const command of leaves(program)) {
    assert.notEqual(command.description(), '', pathOf(command))
    for (const option of command.options) assert.notEqual(option.description, '', `${pathOf(command)} ${option.flags}`)
  }
})

function reference(program: Command): string {
  return leaves(program)
    .map((command) => {
      const shown = command.options.map(({ flags, description }) => `- \`${flags}\`: ${description}`)
      const usage =
        `### ${pathOf(command)} ${command.usage().replace('[options] ', '').replace('[options]', '')}`.trimEnd()
      return `${[usage, '', sentence(command.description()), ...(shown.length > 0 ? ['', ...shown] : [])].join('\n')}\n`
    })
    .join('\n')
}

const sentence = (text: string): string => `${text[0]?.toUpperCase()}${text.slice(1)}.`

/** Those that do something, without what is for shells. */
function leaves(command: Command): Command[] {
  const below = command
    .createHelp()
    .visibleCommands(command)
    .filter((one) => one.name() !== 'help')
  return below.length === 0 ? [command] : below.flatMap(leaves)
}

function pathOf(command: Command): string {
  return command.parent === null ? command.name() : `${pathOf(command.parent)} ${command.name()}`
}
