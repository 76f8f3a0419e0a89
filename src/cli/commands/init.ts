/**
 * `molecule init`: creates a first workspace that answers. At a terminal it asks which agent on this machine to use;
 * elsewhere it takes flags and defaults. It prints how to talk to the new workspace.
 */
import type { PlatformClient } from '../../client/platform-client.ts'
import { MoleculeError } from '../../errors.ts'
import type { CommandContext, DefineCommand } from '../command-context.ts'
import { findInstalledAgents } from '../doctor/agents.ts'
import { type CreateWorkspaceOptions, collectValues, toCreateBody } from './workspace-create.ts'

export const define: DefineCommand = (command, openContext) => {
  command
    .option('--name <name>', 'name of the workspace (the name of its agent)')
    .option('--runtime <name>', 'the backend (the first agent found on this machine, else mock)')
    .option('--dir <folder>', 'folder the agent works in')
    .option('--set <key=value>', 'an option of the backend; may be repeated', collectValues, [])
    .option('--yes', 'do not ask; take the defaults')
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
  if (!ready) throw new MoleculeError('store_unavailable', `the platform at ${apiUrl} is not ready yet: ${reason}`)
  const agents = await findInstalledAgents(terminal.env)
  const isInteractive = options.yes !== true && terminal.keyboard !== undefined && terminal.screen !== undefined
  const plan = isInteractive ? await promptForPlan(options, agents) : withDefaults(options, agents)
  if (plan === undefined) throw new MoleculeError('canceled', 'nothing was created')
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
  if (agents.length === 0) log.info('No supported agent was found on PATH; "molecule doctor" shows more.')
  const runtime =
    options.runtime ??
    (await select({
      message: 'What should answer?',
      options: [
        ...agents.map(({ bin, backend }) => ({ value: backend, label: bin, hint: 'found on this machine' })),
        { value: 'exec', label: 'a shell command', hint: 'the message on stdin, the answer on stdout' },
        { value: 'mock', label: 'mock', hint: 'answers without a model, to try things out' },
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

/** Asks for the one option without which a backend of the list cannot run: the command of `exec`. */
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
    const created = `The workspace "${name}" is ${status}${reason ? `: ${reason}` : ''}.\n`
    return `${created}\n  molecule chat ${id}\n  molecule workspace inspect ${id}\n`
  })
}
