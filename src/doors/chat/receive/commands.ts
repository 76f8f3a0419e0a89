/** The commands of a chat: /new, /stop, /status, /where, /model, /agents, /bind. Each answers with one text. */
import { type Action, requireChatAccess } from '../../../api/who-may.ts'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import { isFinal } from '../../../protocol/a2a.ts'
import type { Workspace } from '../../../workspaces/workspace.ts'
import { publicReason } from '../../public-reason.ts'
import { chatRoleOf, type Standing } from '../access.ts'
import type { Author, ChannelConnectOptions, Place } from '../channel.ts'
import { answeringWorkspace, type SessionContext } from '../chat-context.ts'

export interface CommandInput {
  readonly place: Place
  readonly author: Author
  readonly standing: Standing
  readonly name: string
  readonly argument: string
}

export interface Commands {
  /** The command that a text is; undefined for a text that is none. */
  parse(text: string): Pick<CommandInput, 'name' | 'argument'> | undefined
  /** Markdown. Never rejects. */
  run(command: CommandInput): Promise<string>
}

export const CHAT_COMMANDS: ChannelConnectOptions['commands'] = [
  { name: 'new', text: 'begin a new conversation: the agent forgets what was said here' },
  { name: 'stop', text: 'stop what the agent does for this chat' },
  { name: 'status', text: 'show what the agent is doing' },
  { name: 'where', text: 'show which agent answers here' },
  { name: 'model', text: 'show the model of the agent; the owner may change it', argument: 'model' },
  { name: 'agents', text: 'list the agents' },
  { name: 'bind', text: 'let an agent answer in this chat; for the owner', argument: 'workspace' },
]

/** The action that a person needs for a command. */
export const COMMAND_ACTIONS = {
  new: () => 'message.send',
  stop: () => 'task.cancel',
  status: () => 'workspace.read',
  where: () => 'workspace.read',
  model: (argument: string) => (argument === '' ? 'workspace.read' : 'workspace.model'),
  agents: () => 'workspace.read',
  bind: () => 'channel.bind',
} as const satisfies Readonly<Record<string, (argument: string) => Action>>

export type CommandName = keyof typeof COMMAND_ACTIONS

const AGENTS_LISTED_MAX = 30

type Run = (command: CommandInput, context: SessionContext) => Promise<string>

const RUNS: Readonly<Record<CommandName, Run>> = {
  async new({ place }, { chatLog, stored }) {
    await chatLog.place({ channel: stored.name, place: place.id }, JSON.stringify(place))
    await chatLog.newContext({ channel: stored.name, place: place.id })
    return 'A new conversation begins: the agent no longer knows what was said before.'
  },
  async stop({ place }, { chatLog, reception, stored }) {
    const here = await chatLog.openIn({ channel: stored.name, place: place.id })
    let stopped = 0
    for (const taskId of new Set(here.map((message) => message.taskId))) {
      if (taskId === undefined) continue
      const state = (await reception.task(taskId, { historyLength: 0, artifacts: false }))?.status.state
      if (state === undefined || isFinal(state)) continue
      await reception.cancel(taskId)
      stopped += 1
    }
    if (stopped === 0) return 'Nothing runs for this chat.'
    return stopped === 1 ? 'Stopped.' : `Stopped ${stopped} tasks.`
  },
  async status({ place, standing }, context) {
    const { chatLog, reception, stored } = context
    const workspace = await findAgent(place, context)
    if (workspace === undefined) return NO_AGENT
    const here = await chatLog.openIn({ channel: stored.name, place: place.id })
    const states = await Promise.all(
      here.map(
        async ({ taskId = '' }) => (await reception.task(taskId, { historyLength: 0, artifacts: false }))?.status,
      ),
    )
    const running = states.filter((status) => status !== undefined && !isFinal(status.state)).length
    const shown = sayTo({ place, standing }, workspace.statusReason ?? '')
    const reason = shown === '' ? '' : ` (${shown})`
    const load = `${workspace.running} running and ${workspace.queueDepth} waiting in all`
    return `**${workspace.name}** is ${workspace.status}${reason}: ${running} of this chat, ${load}.`
  },
  async where({ place, author }, context) {
    const workspace = await findAgent(place, context)
    const agent = workspace === undefined ? NO_AGENT : `**${workspace.name}** answers here (\`${workspace.id}\`).`
    return `${agent}\nChannel \`${context.stored.name}\`, place \`${place.id}\`, you are \`${author.id}\`.`
  },
  async model({ place, argument }, context) {
    const workspace = await findAgent(place, context)
    if (workspace === undefined) return NO_AGENT
    if (argument === '') return `**${workspace.name}** uses ${workspace.model ?? 'the default model of its agent'}.`
    const changed = await context.lifecycle.change(workspace.id, { model: argument })
    return `**${changed.name}** uses ${changed.model ?? argument} from the next message on.`
  },
  async agents(_, { workspaces }) {
    const { workspaces: all, next } = await workspaces.list({ limit: AGENTS_LISTED_MAX })
    if (all.length === 0) return 'There are no agents.'
    const more = next === undefined ? '' : '\n...'
    return (
      all
        .map(({ name, role, status }) => `- **${name}** ${status}${role === '' ? '' : `: ${firstLine(role)}`}`)
        .join('\n') + more
    )
  },
  async bind({ place, argument }, context) {
    if (argument === '') return 'Name the workspace: `/bind <workspace>`; `/agents` lists them.'
    const workspaceId = await findWorkspace(argument, context)
    const { channels, chatLog, stored } = context
    await channels.bind({ channel: stored.name, place: place.id, workspaceId })
    // Messages of a downtime count from now on, also when nothing was said here before it.
    await chatLog.place({ channel: stored.name, place: place.id }, JSON.stringify(place))
    return `**${argument}** answers every message in this chat from now on.`
  },
}

const NO_AGENT = 'No agent answers in this chat.'

const firstLine = (text: string): string => (text.split('\n')[0] ?? '').slice(0, 80)

const isCommand = (name: string): name is CommandName => Object.hasOwn(RUNS, name)

export function createCommands(context: SessionContext): Commands {
  return {
    parse(text) {
      const [, name = '', argument = ''] = /^\/(\w{1,20})(?:\s+([\s\S]*))?$/.exec(text.trim()) ?? []
      return isCommand(name) ? { name, argument: argument.trim() } : undefined
    },
    async run(command) {
      const { name, standing } = command
      if (!isCommand(name)) return `I know no command /${name}.`
      const argument = command.argument.trim()
      try {
        requireChatAccess(chatRoleOf(standing), COMMAND_ACTIONS[name](argument))
        return await RUNS[name]({ ...command, argument }, context)
      } catch (thrown) {
        const error = toMoleculeError(thrown)
        if (error.code === 'internal') context.log.warn({ err: error, command: command.name }, 'a chat command failed')
        return error.code === 'internal'
          ? 'That failed unexpectedly; the log says more.'
          : `That is not possible: ${sayTo(command, error.message)}.`
      }
    },
  }
}

/** Paths describe the disk of the platform: only an owner sees them, and only in a direct chat. */
const sayTo = ({ place, standing }: Pick<CommandInput, 'place' | 'standing'>, text: string): string =>
  standing === 'owner' && place.isDirect ? text : publicReason(text)

async function findAgent(place: Place, context: SessionContext) {
  const id = await answeringWorkspace(place, context)
  return id === undefined ? undefined : await context.workspaces.get(id)
}

/** By id or by a name that only one workspace has. */
async function findWorkspace(text: string, { workspaces }: SessionContext): Promise<Workspace['id']> {
  if ((await workspaces.get(text)) !== undefined) return text
  const [id, ...others] = await workspaces.idsNamed(text)
  if (id === undefined) throw new MoleculeError('not_found', `there is no workspace "${text.slice(0, 100)}"`)
  if (others.length > 0) throw new MoleculeError('invalid_request', 'several workspaces have this name; give the id')
  return id
}
