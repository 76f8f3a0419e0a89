/** The commands of a chat: one list, of which menus, texts and access rules follow. Each answers with one message. */
import { requireChatAccess } from '../../../api/who-may.ts'
import { toMoleculeError } from '../../../errors.ts'
import { chatRoleOf, mayInChat } from '../access.ts'
import type { Channel, ChannelConnectOptions } from '../channel.ts'
import { sayTo } from './agent.ts'
import { AGENT_COMMANDS } from './agent-commands.ts'
import { ANSWER_COMMANDS } from './answer-commands.ts'
import type { BotCommand, BotCommandContext, GivenCommand } from './command.ts'
import { CONVERSATION_COMMANDS } from './conversation-commands.ts'
import { helpCommands } from './help-commands.ts'
import { homeCommand } from './home-command.ts'

/** In the order of the menus. */
export const CHAT_COMMANDS: readonly BotCommand[] = [
  ...CONVERSATION_COMMANDS,
  homeCommand,
  ...ANSWER_COMMANDS,
  ...AGENT_COMMANDS,
  ...helpCommands(() => CHAT_COMMANDS),
]

/** What the services show of them. */
export const COMMAND_MENU: ChannelConnectOptions['commands'] = CHAT_COMMANDS.map(({ name, text, argument }) =>
  argument === undefined ? { name, text } : { name, text, argument },
)

export interface Commands {
  /** The command that a text is; undefined for a text that is none. */
  parse(text: string): Pick<GivenCommand, 'name' | 'argument'> | undefined
  /** Markdown. Never rejects. */
  run(command: GivenCommand): Promise<string>
}

const commandNamed = (name: string): BotCommand | undefined => CHAT_COMMANDS.find((command) => command.name === name)

export function createCommands(context: BotCommandContext): Commands {
  return {
    parse(text) {
      const [, name = '', argument = ''] = /^\/(\w{1,20})(?:\s+([\s\S]*))?$/.exec(text.trim()) ?? []
      return commandNamed(name) === undefined ? undefined : { name, argument: argument.trim() }
    },
    async run(given) {
      const command = commandNamed(given.name)
      if (command === undefined) return `I know no command /${given.name}.`
      const argument = given.argument.trim()
      try {
        const action = command.action(argument)
        if (chatRoleOf(given.standing) === 'stranger' && !mayInChat(given.standing, action)) return NOT_PAIRED_TEXT
        requireChatAccess(chatRoleOf(given.standing), action)
        return inOneMessage(await command.run({ ...given, argument }, context), context.channel)
      } catch (thrown) {
        const error = toMoleculeError(thrown)
        if (error.code === 'internal') context.log.warn({ err: error, command: given.name }, 'a chat command failed')
        return error.code === 'internal'
          ? 'That failed unexpectedly; the log says more.'
          : `That is not possible: ${sayTo(given, error.message)}.`
      }
    },
  }
}

const NOT_PAIRED_TEXT = 'You are not paired with this bot yet: `/start` says what to do.'

/** Leaves out the last lines of a text that needs more than one message. */
function inOneMessage(markdown: string, { render, limits }: Pick<Channel, 'render' | 'limits'>): string {
  const lines = markdown.slice(0, 2 * limits.textCharactersMax).split('\n')
  const first = (shown: number) => `${lines.slice(0, shown).join('\n')}${shown < lines.length ? '\n...' : ''}`
  let count = lines.length
  while (count > 1 && render(first(count)).length > 1) count -= 1
  return first(count)
}
