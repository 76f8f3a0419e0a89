/**
 * `molecule init`: creates a first workspace that answers. At a terminal it asks which agent of this machine to use, in
 * which folder, and for the name; elsewhere it takes flags and defaults. It never makes a second workspace of a name,
 * and prints how to talk to the new one.
 */
import { mkdirSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import type { PlatformClient } from '../../../client/platform-client.ts'
import { readReadiness } from '../../../client/readiness.ts'
import { createWorkspace } from '../../../client/workspaces.ts'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import { withoutControls } from '../../../printable.ts'
import { NAME_CHARACTERS_MAX } from '../../../workspaces/workspace.ts'
import type { CommandContext, DefineCommand } from '../../command-context.ts'
import { findInstalledAgents } from '../../doctor/agents.ts'
import { shellQuoted } from '../../terminal/own-command.ts'
import { workspaceSentence } from '../../terminal/task-text.ts'
import {
  type CreateWorkspaceOptions,
  collectValues,
  isOnThisMachine,
  printWarnings,
  toCreateBody,
  toFolder,
} from '../workspaces/workspace-create.ts'

export const define: DefineCommand = (command, openContext) => {
  command
    .option('--name <name>', 'name of the workspace (the name of its folder or agent)')
    .option('--runtime <name>', 'the backend (an agent that the platform finds, best one that is logged in; else mock)')
    .option('--dir <folder>', 'folder the agent works in (a new one of its own)')
    .option('--set <key=value>', 'an option of the backend; may be repeated', collectValues)
    .option('--allow-duplicate', 'also take a name that another workspace has')
    .option('--yes', 'do not ask; take the defaults')
    .action(async (options: InitOptions) => init(await openContext(), options))
}

interface InitOptions extends Pick<CreateWorkspaceOptions, 'runtime' | 'dir' | 'set' | 'allowDuplicate'> {
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
  const { ready, reason } = await readReadiness(client)
  if (!ready) throw new MoleculeError('store_unavailable', `the platform at ${apiUrl} is not ready yet: ${reason}`)
  if (options.name !== undefined && options.allowDuplicate !== true) await requireFreeName(client, options.name)
  const agents = await findAgents(context, client)
  const isInteractive = options.yes !== true && terminal.keyboard !== undefined && terminal.screen !== undefined
  const plan = isInteractive
    ? await promptForPlan(context, options, agents)
    : await withDefaults(client, options, agents)
  if (plan === undefined) throw new MoleculeError('canceled', 'nothing was created')
  await createAndShow(context, client, plan)
}

interface InstalledAgent {
  readonly bin: string
  readonly backend: string
  /** What the platform knows of its log-in. */
  readonly hint: string
}

type InstalledAgents = readonly InstalledAgent[]

/**
 * The agents that the platform can start, those with a log-in first: its PATH and its log-ins count, not those of this
 * shell. A token that may not ask gets those of this shell.
 */
async function findAgents(context: CommandContext, client: PlatformClient): Promise<InstalledAgents> {
  try {
    const found = (await client.call('GET /agents')).agents.filter(
      ({ installed, problem }) => installed && problem === undefined,
    )
    return found
      .toSorted((a, b) => Number(b.logged_in) - Number(a.logged_in))
      .map(({ program: bin, backend, logged_in: isLoggedIn, remedy = '' }) => {
        return { bin, backend, hint: isLoggedIn ? 'installed and logged in' : `not logged in: ${remedy}` }
      })
  } catch (thrown) {
    if (toMoleculeError(thrown).code !== 'forbidden' || !isOnThisMachine(context)) throw thrown
    const found = await findInstalledAgents(context.terminal.env)
    return found.map(({ bin, backend }) => ({ bin, backend, hint: 'found by this shell' }))
  }
}

async function withDefaults(client: PlatformClient, options: InitOptions, agents: InstalledAgents): Promise<Plan> {
  const runtime = options.runtime ?? agents[0]?.backend ?? 'mock'
  const name = options.name ?? (await findFreeName(client, nameFrom(options.dir, runtime)))
  return { ...options, runtime, name }
}

async function promptForPlan(
  context: CommandContext,
  options: InitOptions,
  agents: InstalledAgents,
): Promise<Plan | undefined> {
  const { intro, isCancel, log, select } = await import('@clack/prompts')
  intro('A first workspace: an agent with an address')
  if (agents.length === 0)
    log.info(`The platform finds no supported agent on its PATH; "${context.command} doctor" shows more.`)
  const runtime =
    options.runtime ??
    (await select({
      message: 'What should answer?',
      options: [
        ...agents.map(({ bin, backend, hint }) => ({ value: backend, label: bin, hint })),
        { value: 'exec', label: 'a shell command', hint: 'the message on stdin, the answer on stdout' },
        { value: 'mock', label: 'mock', hint: 'answers without a model, to try things out' },
      ],
    }))
  if (isCancel(runtime)) return undefined
  const cmd = await promptForCommand(runtime, options)
  if (typeof cmd === 'symbol') return undefined
  const dir = await promptForFolder(context, options)
  if (typeof dir === 'symbol') return undefined
  const name = await promptForName(context.platform(), options, nameFrom(dir, runtime))
  if (typeof name === 'symbol') return undefined
  const set = cmd === undefined ? [] : [`cmd=${cmd}`]
  return { ...options, name, runtime, ...(dir !== undefined && { dir }), set: [...(options.set ?? []), ...set] }
}

/** Asks for the one option without which a backend of the list cannot run: the command of `exec`. */
async function promptForCommand(runtime: string, { set = [] }: InitOptions): Promise<string | symbol | undefined> {
  if (runtime !== 'exec' || set.some((pair) => pair.startsWith('cmd='))) return undefined
  const { text } = await import('@clack/prompts')
  const validate = (value: string | undefined) => (value?.trim() ? undefined : 'A command is needed.')
  return await text({ message: 'Which command?', placeholder: 'python handler.py', validate })
}

/** The folder, absolute on the machine of the platform; undefined = a new folder of the workspace's own. */
async function promptForFolder(context: CommandContext, options: InitOptions): Promise<string | symbol | undefined> {
  if (options.dir !== undefined) return toFolder(options.dir, context)
  const { confirm, isCancel, text } = await import('@clack/prompts')
  const typed = await text({
    message: 'In which folder does it work?',
    placeholder: 'press Enter for a new folder of its own; . is this one',
    validate: (value) => folderProblem(value ?? '', context),
  })
  if (isCancel(typed)) return typed
  if (!typed?.trim()) return undefined
  const folder = toFolder(typed.trim(), context)
  if (!isOnThisMachine(context) || statSync(folder, { throwIfNoEntry: false }) !== undefined) return folder
  const creates = await confirm({ message: `There is no folder ${folder}. Create it?` })
  if (isCancel(creates)) return creates
  if (!creates) return await promptForFolder(context, options)
  mkdirSync(folder, { recursive: true })
  return folder
}

function folderProblem(typed: string, context: CommandContext): string | undefined {
  if (typed.trim() === '') return undefined
  try {
    const folder = toFolder(typed.trim(), context)
    if (!isOnThisMachine(context)) return undefined
    const found = statSync(folder, { throwIfNoEntry: false })
    return found === undefined || found.isDirectory() ? undefined : `${folder} is not a folder.`
  } catch (thrown) {
    return toMoleculeError(thrown).message
  }
}

async function promptForName(client: PlatformClient, options: InitOptions, wanted: string): Promise<string | symbol> {
  if (options.name !== undefined) return options.name
  const { isCancel, log, text } = await import('@clack/prompts')
  for (;;) {
    const free = await findFreeName(client, wanted)
    const validate = (value: string | undefined) =>
      (value ?? '').trim().length > NAME_CHARACTERS_MAX ? `At most ${NAME_CHARACTERS_MAX} characters.` : undefined
    const name = await text({ message: 'What is it called?', placeholder: free, defaultValue: free, validate })
    if (isCancel(name)) return name
    if (!(await isNameTaken(client, name.trim()))) return name.trim()
    log.warn(`There is a workspace called "${withoutControls(name.trim())}" already.`)
  }
}

/** The last part of the folder, else the runtime. */
const nameFrom = (dir: string | undefined, runtime: string): string =>
  (dir === undefined ? '' : basename(dir).slice(0, NAME_CHARACTERS_MAX - NUMBER_CHARACTERS)) || runtime

/** Room for the number that makes a name free. */
const NUMBER_CHARACTERS = 5
/** Tried names; then the person chooses one. */
const NAMES_TRIED_MAX = 100

/** The name, or with the lowest number that makes it free: `claude-code-2`. */
async function findFreeName(client: PlatformClient, wanted: string): Promise<string> {
  for (let number = 1; number <= NAMES_TRIED_MAX; number++) {
    const name = number === 1 ? wanted : `${wanted}-${number}`
    if (!(await isNameTaken(client, name))) return name
  }
  throw new MoleculeError('invalid_request', `there are many workspaces called "${wanted}"; choose a name with --name`)
}

async function requireFreeName(client: PlatformClient, name: string): Promise<void> {
  if (!(await isNameTaken(client, name))) return
  const message = `there is a workspace called "${name}" already; choose another --name, or talk to it: "molecule chat ${shellQuoted(name)}"`
  throw new MoleculeError('unsupported_operation', message)
}

async function isNameTaken(client: PlatformClient, name: string): Promise<boolean> {
  try {
    await client.call('GET /workspaces/{id}', { id: name })
    return true
  } catch (thrown) {
    const { code } = toMoleculeError(thrown)
    if (code === 'not_found') return false
    // Two workspaces have it.
    if (code === 'invalid_request') return true
    throw thrown
  }
}

async function createAndShow(context: CommandContext, client: PlatformClient, plan: Plan): Promise<void> {
  const { name, ...options } = plan
  const workspace = await createWorkspace(client, await toCreateBody(context, name, options))
  printWarnings(context.terminal, workspace)
  const { working_dir: folder } = workspace
  const typed = shellQuoted(name)
  await context.show(workspace, () => {
    const state = workspaceSentence({ ...workspace, name: `The workspace "${name}"` })
    const created = `${state}. It works in ${folder}.\n`
    const { command } = context
    const next = `\n  ${command} chat ${typed}\n  ${command} workspace inspect ${typed}\n`
    return withoutControls(created) + next
  })
}
