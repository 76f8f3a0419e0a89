/**
 * /approve and /deny: the answer to a prompt of this chat, for people and programs without buttons. Each counts as the first
 * and the last button does: the same person, the same chat, the same agent.
 */
import { printable } from '../../../printable.ts'
import type { PlainAnswer } from '../prompts/answer-prompt.ts'
import type { Prompt } from '../store/prompt-log.ts'
import type { BotCommand, BotCommandContext, CommandInput } from './command.ts'

/** Of the ids in the list, unless two requests have the same end. */
const ID_CHARACTERS_MIN = 4
const LISTED_MAX = 10
const SUMMARY_CHARACTERS_MAX = 120

export const ANSWER_COMMANDS: readonly BotCommand[] = [
  {
    name: 'approve',
    text: 'allow what waits in this chat, once; for the owner',
    argument: 'id',
    action: () => 'pending.answer',
    run: (input, context) => answerOne('allow', input, context),
  },
  {
    name: 'deny',
    text: 'deny what waits in this chat; for the owner',
    argument: 'id',
    action: () => 'pending.answer',
    run: (input, context) => answerOne('refuse', input, context),
  },
]

async function answerOne(
  answer: PlainAnswer,
  { place, author, argument }: CommandInput,
  { prompts }: BotCommandContext,
): Promise<string> {
  const open = await prompts.inPlace(place)
  if (open.length === 0) return 'Nothing in this chat waits for an answer.'
  const meant = argument === '' ? open : open.filter((one) => isMeant(one, argument))
  const [prompt, ...others] = meant
  const command = answer === 'allow' ? '/approve' : '/deny'
  if (prompt === undefined) return `No request of this chat has this id. ${listOf(open, command)}`
  if (others.length > 0) return `Several requests of this chat wait. ${listOf(meant, command)}`
  if (prompt.messageId === undefined) return NOT_YET_SHOWN
  return (await prompts.answer(prompt, answer, { place, author })).text
}

const NOT_YET_SHOWN =
  'This request may not have arrived in this chat. Look for it, and answer again in a moment, or with `molecule pending`.'

function isMeant({ id }: Prompt, argument: string): boolean {
  return argument.length >= ID_CHARACTERS_MIN && id.toLowerCase().endsWith(argument.toLowerCase())
}

function listOf(open: readonly Prompt[], command: string): string {
  const characters = idCharacters(open)
  const lines = open
    .slice(0, LISTED_MAX)
    .map((prompt) => `- \`${prompt.id.slice(-characters).toLowerCase()}\` ${summaryOf(prompt)}`)
  const more = open.length > LISTED_MAX ? [`- and ${open.length - LISTED_MAX} more`] : []
  return [`Give the id of one, as in \`${command} <id>\`:`, '', ...lines, ...more].join('\n')
}

/** So many that no two ids have the same end. */
function idCharacters(open: readonly Prompt[]): number {
  for (let characters = ID_CHARACTERS_MIN; ; characters++) {
    const ends = new Set(open.map(({ id }) => id.slice(-characters)))
    if (ends.size === open.length) return characters
  }
}

/** One line. A part of a Markdown text has marks that do not end, so all of them go. */
function summaryOf({ text }: Prompt): string {
  const line = printable(text)
    .replaceAll(/[`*_[\]]/g, '')
    .split(/\s+/)
    .join(' ')
  return line.length > SUMMARY_CHARACTERS_MAX ? `${line.slice(0, SUMMARY_CHARACTERS_MAX)}…` : line
}
