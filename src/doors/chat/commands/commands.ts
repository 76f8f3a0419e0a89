/** The commands of a chat: one list, of which menus, texts and access rules follow. */
import { requireChatAccess } from '../../../api/who-may.ts'
import { toMoleculeError } from '../../../errors.ts'
import { chatRoleOf } from '../access.ts'
import type { SessionContext } from '../chat-context.ts'
import { sayTo } from './agent.ts'
import { AGENT_COMMANDS } from './agent-commands.ts'
import type { BotCommand, GivenCommand } from './command.ts'
import { CONVERSATION_COMMANDS } from './conversation-commands.ts'

/** In the order of the menus. */
export const CHAT_COMMANDS: readonly BotCommand[] = [...CONVERSATION_COMMANDS, ...AGENT_COMMANDS]

export interface Commands {
  /** The command that a text is; undefined for a text that is none. */
  parse(text: string): Pick<GivenCommand, 'name' | 'argument'> | undefined
  /** Markdown. Never rejects. */
  run(command: GivenCommand): Promise<string>
}

const commandNamed = (name: string): BotCommand | undefined => CHAT_COMMANDS.find((command) => command.name === name)

export function createCommands(context: SessionContext): Commands {
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
        requireChatAccess(chatRoleOf(given.standing), command.action(argument))
        return await command.run({ ...given, argument }, context)
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
