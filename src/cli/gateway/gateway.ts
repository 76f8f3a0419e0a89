/**
 * `molecule gateway`: the platform with one workspace and the bots that the environment names. It checks the tokens and the
 * backend before it starts anything, so that a wrong one ends with exit code 1 and one sentence.
 */
import { builtinBackends, createBackendRegistry } from '../../backends/backends.ts'
import { createPlatformClient, type PlatformClient } from '../../client/platform-client.ts'
import { systemClock } from '../../clock.ts'
import { ulid } from '../../ids.ts'
import { createLog } from '../../log.ts'
import { createProcesses } from '../../process/create-processes.ts'
import { requireRunnable } from '../bridge/bridge.ts'
import { CHANNEL_KINDS } from '../channel-kinds.ts'
import { ownCommand } from '../terminal/own-command.ts'
import { type Terminal, withoutUndefined } from '../terminal/terminal.ts'
import { up } from '../up/up.ts'
import { type GatewayChannel, type GatewaySettings, readGatewaySettings } from './gateway-settings.ts'

/** The workspace that the bots of the environment talk to. */
const WORKSPACE_NAME = 'gateway'
const CHECK_MS_MAX = 30_000

export interface GatewayOptions {
  readonly terminal: Terminal
  readonly verbose: boolean
}

export async function gateway({ terminal, verbose }: GatewayOptions): Promise<void> {
  const registry = createBackendRegistry(builtinBackends)
  const kinds = await Promise.all(Object.values(CHANNEL_KINDS).map((load) => load()))
  const given = readGatewaySettings({
    ...{ env: terminal.env, kinds, backends: registry.names() },
    warn: (sentence) => terminal.err(`warning: ${sentence}\n`),
  })
  const known = Object.keys(registry.get(given.backend).options)
  const options = Object.fromEntries(Object.entries(given.options).filter(([key]) => known.includes(key)))
  const settings: GatewaySettings = { ...given, options }
  const log = createLog('silent', { write: () => undefined })
  for (const { kind, token, apiUrl } of settings.channels) {
    const service = { token, ...(apiUrl !== undefined && { apiUrl }), clock: systemClock, log }
    const { steps } = await kind.check(service, AbortSignal.timeout(CHECK_MS_MAX))
    for (const step of steps) terminal.err(`${step}\n`)
  }
  const processes = createProcesses({ owner: `gateway-${ulid()}`, clock: systemClock, log })
  try {
    const context = { processes, environment: withoutUndefined(terminal.env), clock: systemClock, log }
    await requireRunnable(settings.backend, registry.build(settings.backend, settings.options, context))
  } finally {
    await processes.close()
  }
  // The gateway is reached by its bots: its port matters only to commands, which find it by the data folder.
  const port = terminal.env['MOLECULE_PORT'] || '0'
  await up({
    ...{ flags: { port }, verbose, terminal },
    async onStarted(access) {
      const names = await setUp(createPlatformClient(access), settings)
      const approve = `${ownCommand(terminal.env)} pair approve <code>`
      terminal.out(
        `${names.join(', ')}: ${settings.backend} answers, in ${settings.workingDir}\nPeople who write to the bot get a code. Let them in: ${approve}\n`,
      )
    },
  })
}

/** Makes the workspace and the channels equal to the settings; the names of the bots. */
async function setUp(platform: PlatformClient, settings: GatewaySettings): Promise<string[]> {
  const { backend, model, permission, workingDir, options } = settings
  const body = {
    ...{ runtime: backend, working_dir: workingDir, runtime_config: options },
    ...(model !== undefined && { model }),
    ...(permission !== undefined && { permission }),
  }
  const existing = (await platform.listWorkspaces()).find(({ name }) => name === WORKSPACE_NAME)
  const { id } =
    existing === undefined
      ? await platform.createWorkspace({ name: WORKSPACE_NAME, ...body })
      : await platform.changeWorkspace(existing.id, body)
  const bots: string[] = []
  for (const channel of settings.channels) bots.push(await addChannel(platform, channel, id))
  return bots
}

async function addChannel(platform: PlatformClient, channel: GatewayChannel, workspaceId: string): Promise<string> {
  const { kind, token, apiUrl, allowedPeople, allowedPlaces } = channel
  const { account } = await platform.addChannel({
    ...{ kind: kind.kind, token, workspace_id: workspaceId, replace: true },
    ...(apiUrl !== undefined && { api_url: apiUrl }),
    ...(allowedPeople !== undefined && { allowed_people: allowedPeople }),
    ...(allowedPlaces !== undefined && { allowed_places: allowedPlaces }),
  })
  return `${kind.kind} bot ${account ?? ''}`
}
