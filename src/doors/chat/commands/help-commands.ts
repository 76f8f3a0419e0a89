/** /start and /help: what a person can do here. Both are for everyone: a person who is not let in yet hears how to get in. */
import { mayInChat } from '../access.ts'
import { findAgent, NO_AGENT } from './agent.ts'
import type { BotCommand, BotCommandContext, CommandInput } from './command.ts'

/** `all`: the list that these commands are part of. */
export const helpCommands = (all: () => readonly BotCommand[]): readonly BotCommand[] => [
  {
    name: 'start',
    text: 'say what this bot is',
    action: () => 'platform.read',
    async run(input, context) {
      if (!mayTalk(input)) return await askIn(input, context)
      const workspace = await findAgent(input.place, context)
      const agent = workspace === undefined ? NO_AGENT : `**${workspace.name}** answers here: write it a message.`
      return `Hello ${nameOf(input)}. ${agent} \`/help\` lists the commands.`
    },
  },
  {
    name: 'help',
    text: 'list the commands',
    action: () => 'platform.read',
    async run(input, context) {
      if (!mayTalk(input)) return await askIn(input, context)
      const lines = all()
        .filter(({ action }) => mayInChat(input.standing, action('')))
        .map(({ name, argument, text }) => `\`/${name}${argument === undefined ? '' : ` [${argument}]`}\` ${text}`)
      return `Every other message goes to the agent. Commands:\n${lines.join('\n')}`
    },
  },
]

const mayTalk = ({ standing }: CommandInput): boolean => mayInChat(standing, 'message.send')

/** What a person who is not let in does next. Nothing of theirs is held. */
async function askIn({ author, standing }: CommandInput, { pairings, stored }: BotCommandContext): Promise<string> {
  if (standing === 'denied') return 'My owner did not let you in, so I do not answer you.'
  const name = nameOf({ author })
  const request = await pairings.request({ channel: stored.name, person: author.id, name })
  if (request === undefined) return 'Too many people wait for my owner at the moment: try `/start` again later.'
  const { code } = request.pairing
  return `Hello ${name}. I pass messages on to an agent, and I do not know you yet. Give my owner this code: **${code}**. Once the owner has approved it, write me a message; \`/help\` then lists the commands.\n\n(The owner types: \`molecule pair approve ${code}\`)`
}

const nameOf = ({ author }: Pick<CommandInput, 'author'>): string => author.name.slice(0, 100)
