/**
 * The texts of a live message, as Markdown: how long the agent works, with which tools, and what it has written so far. The
 * state comes first, so a cut in the middle of a code block leaves it readable; `render` closes what the cut left open.
 */
import type { ChatToolView } from '../../../client/live-conversation.ts'
import { formatDuration } from '../../../duration.ts'
import { mayBecomeNoReply } from '../../../no-reply.ts'
import { printable, printableName } from '../../../printable.ts'

/** What a turn has shown until now. */
export interface ShownTurn {
  readonly elapsedMs: number
  /** The beginning of what it has written. */
  readonly text: string
  /** Of all that it has written. */
  readonly characters: number
  /** The latest ones. */
  readonly tools: readonly ChatToolView[]
  readonly toolCount: number
  /** For an owner in a direct chat: what exactly each tool does. */
  readonly showsCommands: boolean
}

const TOOLS_SHOWN_MAX = 5
/** A longer command is cut; its permission shows it whole. */
const COMMAND_CHARACTERS_MAX = 160

export const workingText = (turn: ShownTurn, charactersMax: number): string => {
  const { text, characters, elapsedMs } = turn
  const isCut = characters > charactersMax - COMMAND_CHARACTERS_MAX
  const more = isCut ? ` · ${characters} characters so far, the whole comes with the answer` : ''
  return withText(`Working for ${seconds(elapsedMs)}${more}${toolsText(turn)}`, text)
}

/** How it ended, or that it waits for a person; `text` is kept where no answer replaces it. */
export const endedText = (word: 'Done' | 'Ended' | 'Waiting', turn: ShownTurn, keepsText: boolean): string =>
  withText(`${word} after ${seconds(turn.elapsedMs)}${toolsText(turn)}`, keepsText ? turn.text : '')

/** An empty text may become an answer that is silent, too. */
const withText = (state: string, text: string): string => (mayBecomeNoReply(text) ? state : `${state}\n\n${text}`)

const seconds = (ms: number): string => formatDuration(Math.max(1, Math.round(ms / 1000)) * 1000)

/** Names for everyone; what exactly a tool does is for owners. */
function toolsText({ tools, toolCount, showsCommands }: ShownTurn): string {
  if (toolCount === 0) return ''
  const count = ` · ${toolCount} ${toolCount === 1 ? 'tool' : 'tools'}`
  const last = tools.slice(-TOOLS_SHOWN_MAX)
  if (showsCommands) return `${count}${last.map((tool) => `\n- ${toolLine(tool)}`).join('')}`
  return `${count}: ${toolCount > last.length ? '..., ' : ''}${last.map(nameOf).join(', ')}`
}

/** A backtick in a name would begin code. */
const nameOf = ({ name }: ChatToolView): string => printableName(name === '' ? 'a tool' : name).replaceAll('`', "'")

function toolLine(tool: ChatToolView): string {
  const code = tool.subject === undefined ? undefined : commandCode(tool.subject)
  return code === undefined ? nameOf(tool) : `${nameOf(tool)}: ${code}`
}

/** As code in one line, with its backticks. Undefined where the services would take them for the end of the code. */
export function commandCode(subject: string): string | undefined {
  const [line = '', ...others] = printable(subject.slice(0, 4 * COMMAND_CHARACTERS_MAX))
    .trim()
    .split('\n')
  const isCut = others.length > 0 || line.length > COMMAND_CHARACTERS_MAX
  const shown = `${line.slice(0, COMMAND_CHARACTERS_MAX).toWellFormed()}${isCut ? '…' : ''}`
  if (shown === '' || shown.includes('``')) return undefined
  if (!shown.includes('`')) return `\`${shown}\``
  const padding = shown.startsWith('`') || shown.endsWith('`') ? ' ' : ''
  return `\`\`${padding}${shown}${padding}\`\``
}
