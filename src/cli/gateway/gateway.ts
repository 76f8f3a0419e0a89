/**
 * `molecule gateway`: the platform with one workspace and the bots that the environment names. It checks the tokens and the
 * backend before it takes any message, so that a wrong one ends with exit code 1 and one sentence. At each start the
 * environment is the whole truth: an option that no variable sets has its default again.
 */
import { listAdapterFolders } from '../../backends/adapters.ts'
import type { BackendDefinition } from '../../backends/backend.ts'
import {
  type BackendRegistry,
  builtinBackends,
  createBackendRegistry,
  longBackendName,
} from '../../backends/backends.ts'
import { createPlatformClient } from '../../client/platform-client.ts'
import {
  changeWorkspace,
  checkNewWorkspace,
  checkWorkspaceChange,
  createWorkspace,
  listWorkspaces,
  type WorkspaceChangeBody,
} from '../../client/workspaces.ts'
import { systemClock } from '../../clock.ts'
import { loadDataDir } from '../../config/config.ts'
import { MoleculeError } from '../../errors.ts'
import { ulid } from '../../ids.ts'
import { silentLog } from '../../log.ts'
import { platformEnvironment } from '../../process/child-environment.ts'
import { createProcesses } from '../../process/create-processes.ts'
import { requireRunnable } from '../bridge/bridge.ts'
import { CHANNEL_KINDS } from '../channel-kinds.ts'
import { adaptersDirOf } from '../data-folder/adapter-record.ts'
import { ownCommand } from '../terminal/own-command.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { type StartedPlatform, up } from '../up/up.ts'
import { setUpBots } from './gateway-bots.ts'
import { offerOwners, ownerText } from './gateway-owners.ts'
import {
  agentSettingsFor,
  type GatewaySettings,
  programOption,
  readGatewaySettings,
  variableOfOption,
} from './gateway-settings.ts'

/** The workspace that the bots of the environment talk to. */
const WORKSPACE_NAME = 'gateway'
const CHECK_MS_MAX = 30_000

export interface GatewayOptions {
  readonly terminal: Terminal
  readonly verbose: boolean
}

export async function gateway({ terminal, verbose }: GatewayOptions): Promise<void> {
  const kinds = await Promise.all(Object.values(CHANNEL_KINDS).map((load) => load()))
  const warnings: string[] = []
  const settings = readGatewaySettings({ env: terminal.env, kinds, warn: (sentence) => warnings.push(sentence) })
  const names = settings.channels.map(({ kind }) => kind.kind)
  for (const warning of warnings) terminal.err(`warning: ${warning}\n`)
  await checkBefore(settings, terminal)
  // The gateway is reached by its bots: its port matters only to commands, which find it by the data folder.
  const port = terminal.env['MOLECULE_PORT'] || '0'
  await up({
    flags: { port },
    verbose,
    terminal,
    async beforeWork(started) {
      const backend = started.backends.resolve(settings.backend)
      const bots = await setUp(started, { ...settings, backend })
      const approve = `${ownCommand(terminal.env)} pair approve <code>`
      const text = `${bots.join(', ')}: ${backend} answers, in ${settings.workingDir}\nPeople who write to the bot get a code. Let them in: ${approve}\n`
      return text + (await ownerText(createPlatformClient(started), names, { terminal, approve }))
    },
    async whileRunning(started, signal) {
      if (terminal.keyboard === undefined) return
      await offerOwners({ platform: createPlatformClient(started), names, terminal }, signal)
    },
  })
}

/** Everything that can be checked without a platform. */
async function checkBefore(settings: GatewaySettings, { env, err }: Terminal): Promise<void> {
  const registry = createBackendRegistry(builtinBackends)
  const isBuiltin = settings.backend === undefined || registry.names().includes(longBackendName(settings.backend))
  const folders = isBuiltin ? [] : await listAdapterFolders(adaptersDirOf(loadDataDir({ flags: {}, env })))
  // Adapters are loaded by the platform alone, after it has named those that have changed.
  const backend = folders.length > 0 ? undefined : registry.resolve(settings.backend)
  for (const { kind, token, settings: ofKind, apiUrl } of settings.channels) {
    const service = { token, settings: ofKind, apiUrl, clock: systemClock, log: silentLog }
    const { steps } = await kind.check(service, AbortSignal.timeout(CHECK_MS_MAX))
    for (const step of steps) err(`${step}\n`)
  }
  if (backend !== undefined) await checkBackend(registry, { ...settings, backend }, platformEnvironment(env))
}

type NamedSettings = GatewaySettings & { readonly backend: string }

async function checkBackend(
  registry: BackendRegistry,
  settings: NamedSettings,
  environment: Readonly<Record<string, string>>,
): Promise<void> {
  const definition = registry.get(settings.backend)
  const { options } = agentSettingsFor(definition, settings)
  const processes = createProcesses({ owner: `gateway-${ulid()}`, clock: systemClock, log: silentLog })
  try {
    const context = { processes, environment, clock: systemClock, log: silentLog }
    await requireRunnable(settings.backend, registry.build(settings.backend, withoutNulls(options), context))
  } catch (thrown) {
    throw namingVariable(thrown, definition)
  } finally {
    await processes.close()
  }
}

/** Prevents advice that does not work here: the gateway takes variables and no options. */
function namingVariable(thrown: unknown, definition: BackendDefinition): unknown {
  if (!(thrown instanceof MoleculeError)) return thrown
  const { code, message, details } = thrown
  const key = code === 'backend_missing' ? programOption(definition) : details['key']
  if (typeof key !== 'string') return thrown
  const variable = variableOfOption(key)
  const way =
    variable === undefined
      ? `no variable sets the option ${key}: use "molecule up" and bind the bot to a workspace with "molecule channel add"`
      : `here ${variable} is the option ${key}`
  return new MoleculeError(code, `${message.replace(/\.$/, '')}; ${way}`, { details, cause: thrown })
}

/** Makes the workspace and the channels equal to the settings; the names of the bots. */
async function setUp(started: StartedPlatform, settings: NamedSettings): Promise<string[]> {
  const { backends, log } = started
  const { backend, workingDir } = settings
  const { options, ignored } = agentSettingsFor(backends.get(backend), settings)
  for (const name of ignored) log.warn({}, `the backend ${backend} does not support ${name} and ignores it`)
  const platform = createPlatformClient(started)
  const { model, permission: allowed, ...others } = options
  // As it was written: the platform refuses other words.
  const permission = (allowed ?? null) as Exclude<WorkspaceChangeBody['permission'], undefined>
  if (permission === 'bypass')
    log.warn({}, `the backend ${backend} uses every tool without asking, because PERMISSION is bypass`)
  const body = { runtime: backend, working_dir: workingDir }
  const existing = (await listWorkspaces(platform)).find(({ name }) => name === WORKSPACE_NAME)
  const change = {
    ...body,
    model: model ?? null,
    permission,
    // Keys that would win over those above.
    runtime_config: { ...others, model: null, permission: null, working_dir: null },
  }
  const creation = {
    ...body,
    name: WORKSPACE_NAME,
    runtime_config: withoutNulls(others),
    model: model ?? undefined,
    permission: permission ?? undefined,
  }
  const check =
    existing === undefined
      ? await checkNewWorkspace(platform, creation)
      : await checkWorkspaceChange(platform, existing.id, change)
  if (!check.ok) throw new MoleculeError('backend_missing', `the backend ${backend} cannot run here: ${check.reason}`)
  const { id } =
    existing === undefined
      ? await createWorkspace(platform, creation)
      : await changeWorkspace(platform, existing.id, change)
  return await setUpBots(platform, settings.channels, { workspaceId: id, log })
}

const withoutNulls = (values: Readonly<Record<string, string | null>>): Record<string, string> =>
  Object.fromEntries(Object.entries(values).filter((entry): entry is [string, string] => entry[1] !== null))
