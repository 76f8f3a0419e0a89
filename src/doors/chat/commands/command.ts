/** One command of a chat. It answers with one text; of all commands only /retry makes an agent work. */
import type { Action } from '../../../api/who-may.ts'
import type { Standing } from '../access.ts'
import type { Author, Place } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'
import type { Prompts } from '../prompts/prompts.ts'
import type { TaskFollower } from '../send/follow.ts'

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
  run(input: CommandInput, context: BotCommandContext): Promise<string>
}

/** `follower`: shows how a task goes that a command began. `prompts`: what waits for an answer. */
export interface BotCommandContext extends SessionContext {
  readonly follower: Pick<TaskFollower, 'follow'>
  readonly prompts: Pick<Prompts, 'inPlace' | 'answer'>
}

export interface CommandInput {
  /** The same for every copy of the event. */
  readonly id: string
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
