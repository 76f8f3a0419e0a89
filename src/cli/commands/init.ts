/**
 * `molecule init`: from nothing to a first workspace that answers. With a person at the keyboard it asks; without one
 * it takes flags and defaults and asks nothing. It looks at which agents this machine has, and says how to talk to what
 * it made.
 */
import type { PlatformClient } from '../../client/platform-client.ts'
import { MoleculeError } from '../../errors.ts'
import type { CommandContext, DefineCommand } from '../command-context.ts'
import { findInstalledAgents } from '../doctor/agents.ts'
import { type CreateWorkspaceOptions, collectValues, toCreateBody } from './workspace-create.ts'

export const define: DefineCommand = (command, openContext) => {
  command
    .option('--name <name>', 'what the workspace is called (the name of its agent)')
    .option('--runtime <name>', 'the backend (the first agent found on this machine, else mock)')
    .option('--dir <folder>', 'where its agent works')
    .option('--set <key=value>', 'an option of the backend; may be given several times', collectValues, [])
    .option('--yes', 'ask nothing, take the defaults')
    .action(async (options: InitOptions) => init(await openContext(), options))
}

interface InitOptions extends Pick<CreateWorkspaceOptions, 'runtime' | 'dir' | 'set'> {
  readonly name?: string
  readonly yes?: boolean
}

interface Plan extends InitOptions {
  readonly name: string
  readonly runtime: string
}

async function init(context: CommandContext, options: InitOptions): Promise<void> {
  const { terminal, apiUrl } = context
  const client = context.platform()
  const { ready, reason } = await client.ready()
  if (!ready) throw new MoleculeError('store_unavailable', `the platform at ${apiUrl} takes no work yet: ${reason}`)
  const agents = await findInstalledAgents(terminal.env)
  const asks = options.yes !== true && terminal.keyboard !== undefined && terminal.screen !== undefined
  const plan = asks ? await promptForPlan(options, agents) : withDefaults(options, agents)
  if (plan === undefined) throw new MoleculeError('canceled', 'nothing was made')
  await createAndShow(context, client, plan)
}

type InstalledAgents = Awaited<ReturnType<typeof findInstalledAgents>>

function withDefaults(options: InitOptions, agents: InstalledAgents): Plan {
  const runtime = options.runtime ?? agents[0]?.backend ?? 'mock'
  return { ...options, runtime, name: options.name ?? runtime }
}

async function promptForPlan(options: InitOptions, agents: InstalledAgents): Promise<Plan | undefined> {
  const { intro, isCancel, log, select, text } = await import('@clack/prompts')
  intro('A first workspace: an agent with an address')
  if (agents.length === 0) log.info('No agent that Molecule drives was found on PATH; "molecule doctor" tells more.')
  const runtime =
    options.runtime ??
    (await select({
      message: 'What should answer?',
      options: [
        ...agents.map(({ bin, backend }) => ({ value: backend, label: bin, hint: 'found on this machine' })),
        { value: 'exec', label: 'a shell command', hint: 'the message on stdin, the answer on stdout' },
        { value: 'mock', label: 'mock', hint: 'answers by itself, to try things out' },
      ],
    }))
  if (isCancel(runtime)) return undefined
  const cmd = await promptForCommand(runtime, options)
  if (isCancel(cmd)) return undefined
  const name =
    options.name ?? (await text({ message: 'What is it called?', placeholder: runtime, defaultValue: runtime }))
  if (isCancel(name)) return undefined
  const set = cmd === undefined ? [] : [`cmd=${String(cmd)}`]
  return { ...options, name, runtime, set: [...(options.set ?? []), ...set] }
}

/** The one option without which a backend that the list offers cannot begin. */
async function promptForCommand(runtime: string, { set = [] }: InitOptions): Promise<string | symbol | undefined> {
  if (runtime !== 'exec' || set.some((pair) => pair.startsWith('cmd='))) return undefined
  const { text } = await import('@clack/prompts')
  const validate = (value: string | undefined) => (value?.trim() ? undefined : 'A command is needed.')
  return await text({ message: 'Which command?', placeholder: 'python handler.py', validate })
}

async function createAndShow(
  { show }: CommandContext,
  client: PlatformClient,
  { name, ...options }: Plan,
): Promise<void> {
  const workspace = await client.createWorkspace(await toCreateBody(client, name, options))
  const { id, status, status_reason: reason } = workspace
  await show(workspace, () => {
    const made = `The workspace "${name}" is ${status}${reason ? `: ${reason}` : ''}.\n`
    return `${made}\n  molecule chat ${id}\n  molecule workspace inspect ${id}\n`
  })
}
