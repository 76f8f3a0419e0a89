/** One command of a chat. It answers with one text, and only a command that says so sends a message to an agent. */
import type { Action } from '../../../api/who-may.ts'
import type { Standing } from '../access.ts'
import type { Author, Place } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'

export interface BotCommand {
  /** Without the slash: 1 to 20 small letters, as the menus of the services take it. */
  readonly name: string
  /** For the menu: at most 100 characters. */
  readonly text: string
  /** What the menu calls the argument; absent: it has none. At most 32 small letters. */
  readonly argument?: string
  /** What a person needs for it. */
  action(argument: string): Action
  /** Markdown, short enough for one message. */
  run(input: CommandInput, context: SessionContext): Promise<string>
}

export interface CommandInput {
  readonly place: Place
  readonly author: Author
  readonly standing: Standing
  /** Without blanks around it; empty without one. */
  readonly argument: string
}

/** A command as a person gave it. */
export interface GivenCommand extends CommandInput {
  readonly name: string
}
