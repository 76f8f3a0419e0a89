/** Commands for the agent of a chat: /where, /model, /agents, /usage, /bind, /unbind. */
import { MoleculeError } from '../../../errors.ts'
import { usdText } from '../../../usd.ts'
import { readChatUsage, type UsageSum } from '../../../views/usage.ts'
import type { Workspace } from '../../../workspaces/workspace.ts'
import { answeringWorkspace, type SessionContext } from '../chat-context.ts'
import { chatPrincipal } from '../store/channels.ts'
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
    name: 'usage',
    text: 'show what the agent used today and in this conversation',
    action: () => 'activity.read',
    async run({ place }, context) {
      const { chatLog, store, stored } = context
      const workspace = await findAgent(place, context)
      if (workspace === undefined) return NO_AGENT
      const { contextId } = await chatLog.place({ channel: stored.name, place: place.id }, JSON.stringify(place))
      const principal = chatPrincipal(stored.name, place.id)
      const { today, conversation } = await readChatUsage(store, { workspaceId: workspace.id, principal, contextId })
      return `**${workspace.name}** today (UTC): ${usageText(today)}.\nThis conversation: ${usageText(conversation)}.`
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
  {
    name: 'unbind',
    text: 'end what /bind has set in this chat; for the owner',
    action: () => 'channel.bind',
    async run({ place }, context) {
      const { channels, stored, workspaces } = context
      const bound = await channels.bindings(stored.name)
      if (!bound.some((binding) => binding.place === place.id)) return 'No agent is bound to this chat.'
      await channels.unbind(stored.name, place.id)
      const id = await answeringWorkspace(place, context)
      const next = id === undefined ? undefined : await workspaces.get(id)
      if (next === undefined) return 'No agent answers in this chat any more. `/bind <workspace>` chooses another one.'
      return place.isDirect
        ? `This chat is unbound. **${next.name}** answers here.`
        : `This chat is unbound. **${next.name}** answers here when the bot is mentioned.`
    },
  },
]

/** What is not known is said to be unknown: it is not 0. */
function usageText({ turns, input_tokens: input, output_tokens: output, ...sum }: UsageSum): string {
  if (turns === 0) return 'no turn has reported what it used'
  const count = (tokens: number | null) => (tokens === null ? 'unknown' : tokens.toLocaleString('en-US'))
  const { cost_usd: cost, unknown_cost_turns: unpriced, unknown_turns: unknown } = sum
  const missing = [
    ...(unknown > 0 && input !== null ? [`tokens of ${turnsText(unknown)} are unknown`] : []),
    ...(unpriced > 0 && cost !== null ? [`the cost of ${turnsText(unpriced)} is unknown`] : []),
  ]
  const amounts = `tokens in: ${count(input)}, out: ${count(output)}, cost: ${cost === null ? 'unknown' : usdText(cost)}`
  return [`${turnsText(turns)}, ${amounts}`, ...missing].join('; ')
}

const turnsText = (turns: number): string => `${turns} ${turns === 1 ? 'turn' : 'turns'}`

const firstLine = (text: string): string => (text.split('\n')[0] ?? '').slice(0, 80)

/** By id or by a name that only one workspace has. */
async function findWorkspace(text: string, { workspaces }: SessionContext): Promise<Workspace['id']> {
  if ((await workspaces.get(text)) !== undefined) return text
  const [id, ...others] = await workspaces.idsNamed(text)
  if (id === undefined) throw new MoleculeError('not_found', `there is no workspace "${text.slice(0, 100)}"`)
  if (others.length > 0) throw new MoleculeError('invalid_request', 'several workspaces have this name; give the id')
  return id
}
