/** Commands for the agent of a chat: /where, /model, /agents, /bind. */
import { MoleculeError } from '../../../errors.ts'
import type { Workspace } from '../../../workspaces/workspace.ts'
import type { SessionContext } from '../chat-context.ts'
import { findAgent, NO_AGENT } from './agent.ts'
import type { BotCommand } from './command.ts'

const AGENTS_LISTED_MAX = 30

export const AGENT_COMMANDS: readonly BotCommand[] = [
  {
    name: 'where',
    text: 'show which agent answers here',
    action: () => 'workspace.read',
    async run({ place, author }, context) {
      const workspace = await findAgent(place, context)
      const agent = workspace === undefined ? NO_AGENT : `**${workspace.name}** answers here (\`${workspace.id}\`).`
      return `${agent}\nChannel \`${context.stored.name}\`, place \`${place.id}\`, you are \`${author.id}\`.`
    },
  },
  {
    name: 'model',
    text: 'show the model of the agent; the owner may change it',
    argument: 'model',
    action: (argument) => (argument === '' ? 'workspace.read' : 'workspace.model'),
    async run({ place, argument }, context) {
      const workspace = await findAgent(place, context)
      if (workspace === undefined) return NO_AGENT
      if (argument === '') return `**${workspace.name}** uses ${workspace.model ?? 'the default model of its agent'}.`
      const changed = await context.lifecycle.change(workspace.id, { model: argument })
      return `**${changed.name}** uses ${changed.model ?? argument} from the next message on.`
    },
  },
  {
    name: 'agents',
    text: 'list the agents',
    action: () => 'workspace.read',
    async run(_, { workspaces }) {
      const { workspaces: all, next } = await workspaces.list({ limit: AGENTS_LISTED_MAX })
      if (all.length === 0) return 'There are no agents.'
      const more = next === undefined ? '' : '\n...'
      return (
        all
          .map(({ name, role, status }) => `- **${name}** ${status}${role === '' ? '' : `: ${firstLine(role)}`}`)
          .join('\n') + more
      )
    },
  },
  {
    name: 'bind',
    text: 'let an agent answer in this chat; for the owner',
    argument: 'workspace',
    action: () => 'channel.bind',
    async run({ place, argument }, context) {
      if (argument === '') return 'Name the workspace: `/bind <workspace>`; `/agents` lists them.'
      const workspaceId = await findWorkspace(argument, context)
      const { channels, chatLog, stored } = context
      await channels.bind({ channel: stored.name, place: place.id, workspaceId })
      // Messages of a downtime count from now on, also when nothing was said here before it.
      await chatLog.place({ channel: stored.name, place: place.id }, JSON.stringify(place))
      return `**${argument}** answers every message in this chat from now on.`
    },
  },
]

const firstLine = (text: string): string => (text.split('\n')[0] ?? '').slice(0, 80)

/** By id or by a name that only one workspace has. */
async function findWorkspace(text: string, { workspaces }: SessionContext): Promise<Workspace['id']> {
  if ((await workspaces.get(text)) !== undefined) return text
  const [id, ...others] = await workspaces.idsNamed(text)
  if (id === undefined) throw new MoleculeError('not_found', `there is no workspace "${text.slice(0, 100)}"`)
  if (others.length > 0) throw new MoleculeError('invalid_request', 'several workspaces have this name; give the id')
  return id
}
