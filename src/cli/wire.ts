/**
 * The parts list of the platform: the only place where parts are joined. It reads from the bottom of the house up,
 * and closing goes the other way round: no new work, then running turns, then the answers to whoever waits for them.
 */
import { join } from 'node:path'
import { loadAdapters } from '../backends/adapters.ts'
import type { BackendContext } from '../backends/backend.ts'
import { type BackendRegistry, builtinBackends, createBackendRegistry } from '../backends/backends.ts'
import { createOutbound } from '../client/outbound.ts'
import { systemClock } from '../clock.ts'
import type { PlatformConfig } from '../config/config.ts'
import { createHttpDoor } from '../doors/http/http.ts'
import { createWebhooks } from '../doors/webhooks/webhooks.ts'
import { MoleculeError } from '../errors.ts'
import { ulid } from '../ids.ts'
import type { KeepSessionOn } from '../inbox/context.ts'
import type { Checkpoint } from '../inbox/inbox.ts'
import { createLocalInbox, type LocalInbox, type LocalInboxOptions } from '../inbox/local-inbox.ts'
import { type MaskingLog, secretValues } from '../log.ts'
import { createMetrics } from '../metrics.ts'
import { createProcesses } from '../process/create-processes.ts'
import { reapOrphans } from '../process/orphan-records.ts'
import { createRuntime } from '../runtime/runtime.ts'
import { keepSession } from '../sessions/sessions.ts'
import { openSqlite } from '../store/sqlite/sqlite.ts'
import { type Store, sql } from '../store/store.ts'
import {
  type ConversationSubject,
  createConversationTokens,
  ensureConversationSecret,
} from '../workspaces/tokens/conversation-tokens.ts'
import { createTokens } from '../workspaces/tokens/token-store.ts'
import type { BackendCheck } from '../workspaces/workspace.ts'
import { childEnvironmentOf } from './child-environment.ts'
import { ensureHostId } from './data-folder/host-id.ts'
import { readVersion } from './version.ts'
import { wireWorkspaces } from './wire-workspaces.ts'

/** How long a backend may take to say whether it can run here. */
const VALIDATE_TIMEOUT_MS = 10_000

export interface Platform {
  readonly url: string
  /** Logs a browser in once. */
  readonly loginUrl: string
  /** Processes of an earlier run that were still alive and have been killed. */
  readonly orphansReaped: number
  close(drainMs: number): Promise<void>
}

export interface WireOptions {
  readonly config: PlatformConfig
  readonly adminToken: string
  readonly log: MaskingLog
  /** What this process inherited; children of turns get it stripped. */
  readonly environment: Readonly<Record<string, string | undefined>>
  /** Told at each moment at which a crash matters; for crash tests. */
  readonly onCheckpoint?: (checkpoint: Checkpoint) => void
}

/** Needs the data folder's lock to be held: what an earlier process left there is taken to be dead. */
export async function wire(options: WireOptions): Promise<Platform> {
  const { config, adminToken, log, environment, onCheckpoint = () => undefined } = options
  const [clock, metrics] = [systemClock, createMetrics()]
  const host = ensureHostId(config.dataDir)
  const { processes, orphansReaped, build, check, backendTraits } = await wireBackends(options, host)

  const store = await openStore(config, log)
  const localInbox = await wireInbox({ store, clock, log, host, onCheckpoint })
  const conversations = createConversationTokens(await ensureConversationSecret(store))
  const childEnvironment = (key: ConversationSubject, backend: string) => {
    if (backendTraits.startsNothing(backend)) return {}
    const path = environment['PATH']
    return childEnvironmentOf({ ...key, apiUrl: door.url, token: conversations.issue(key), path })
  }
  const parts = { store, clock, log, host, dataDir: config.dataDir, check, childEnvironment }
  const wired = wireWorkspaces({ ...parts, ...backendTraits })
  const runtime = createRuntime({
    inbox: localInbox.inbox,
    worker: { id: `${host}.${ulid()}`, workspaces: 'hosted' },
    clock,
    log,
    brief: wired.brief,
    build,
    mask: log.mask,
    metrics,
    onCheckpoint,
  })
  const { webhooks, push } = wireWebhooks(options, localInbox)
  const tokens = createTokens({ store, clock, adminToken, log, conversations })
  let draining = false
  const door = createHttpDoor({
    reception: localInbox.reception,
    deadLetters: localInbox.deadLetters,
    metrics,
    load: localInbox.load,
    workspaces: wired.workspaces,
    ...wired.createDoorParts({ localInbox, runtime, tokens }),
    tokens,
    log,
    clock,
    host: config.host,
    port: config.port,
    version: readVersion(),
    maxBlockMs: config.maxBlockMs,
    push,
    unready: async () => (draining ? 'shutting down' : unreadyReason(store)),
  })
  const close = async (drainMs: number) => {
    draining = true
    await runtime.drain(drainMs)
    await webhooks.close()
    await wired.upkeep.stop()
    localInbox.close()
    await door.close()
    await processes.close()
    await store.close()
  }
  try {
    await door.start()
    await webhooks.start()
  } catch (error) {
    await close(0)
    throw error
  }
  runtime.start()
  wired.upkeep.start()
  return { url: door.url, loginUrl: `${door.url}/#${tokens.issueLoginCode()}`, orphansReaped, close }
}

/** The inbox, after what an earlier process held has been set free. */
async function wireInbox(options: Omit<LocalInboxOptions, 'keepSession' | 'keepSessionOn'>): Promise<LocalInbox> {
  const { host, log } = options
  const keepSessionOn: KeepSessionOn = (place) => (key, token) => keepSession(place, key, token)
  const localInbox = createLocalInbox({ ...options, keepSession: keepSessionOn(host), keepSessionOn })
  const lost = await localInbox.recover()
  if (lost > 0) log.warn({ turns: lost }, 'turns that a crash cut off will run again')
  return localInbox
}

/** The door that calls callers back, and what the HTTP door needs of it. */
function wireWebhooks({ config, log }: WireOptions, { pushConfigs: configs, reception }: LocalInbox) {
  const outbound = createOutbound({ allow: config.allowOutbound })
  const webhooks = createWebhooks({ configs, reception, outbound, clock: systemClock, log })
  return { webhooks, push: { configs, check: outbound.check, wake: webhooks.wake } }
}

/** Processes and the backends that run on them; what an earlier process left running is ended first. */
async function wireBackends({ config, log, environment }: WireOptions, host: string) {
  for (const secret of secretValues(environment)) log.hide(secret)
  const recordsDir = join(config.dataDir, 'processes')
  const orphansReaped = await reapOrphans({ recordsDir, owner: host, log })
  const processes = createProcesses({ owner: host, recordsDir, clock: systemClock, log })
  const taken = builtinBackends.map(({ name }) => name)
  const adapters = await loadAdapters({ dir: join(config.dataDir, 'adapters'), taken, log })
  const registry = createBackendRegistry([...builtinBackends, ...adapters])
  const outbound = createOutbound({ allow: config.allowOutbound })
  const context: BackendContext = {
    processes,
    environment: withoutUndefined(environment),
    clock: systemClock,
    log,
    outbound,
  }
  const build = ({ runtime, options }: BackendChoice) => registry.build(runtime, options, context)
  const check = (runtime: string, options: BackendChoice['options']) =>
    checkBackend(registry, { runtime, options }, context)
  const find = (runtime: string) => (registry.names().includes(runtime) ? registry.get(runtime) : undefined)
  const backendTraits = {
    startsNothing: (runtime: string) => find(runtime)?.startsNothing === true,
    usesHistory: (runtime: string) => find(runtime)?.usesHistory === true,
    // A runtime that is not here runs elsewhere, and is counted where it is paid for.
    isMetered: (runtime: string) => find(runtime) !== undefined && find(runtime)?.isFree !== true,
  }
  return { processes, orphansReaped, build, check, backendTraits }
}

function withoutUndefined(environment: WireOptions['environment']): Record<string, string> {
  const entries = Object.entries(environment).filter((entry): entry is [string, string] => entry[1] !== undefined)
  return Object.fromEntries(entries)
}

interface BackendChoice {
  readonly runtime: string
  readonly options: Readonly<Record<string, string>>
}

/** Builds the backend only to ask whether it can run; throws `bad_config` for options it refuses. */
async function checkBackend(
  registry: BackendRegistry,
  { runtime, options }: BackendChoice,
  context: BackendContext,
): Promise<BackendCheck> {
  const backend = registry.build(runtime, options, context)
  try {
    const validation = await backend.validate(AbortSignal.timeout(VALIDATE_TIMEOUT_MS))
    return validation.ok ? { ok: true } : { ok: false, reason: `${validation.problem} ${validation.remedy}` }
  } finally {
    await backend.close()
  }
}

/** The engine is loaded only where it is used: most have no PostgreSQL. */
async function openStore({ dataDir, database: url }: PlatformConfig, log: MaskingLog): Promise<Store> {
  if (url === undefined) return openSqlite({ path: join(dataDir, 'molecule.db'), clock: systemClock })
  log.hide(url)
  log.hide(decodeURIComponent(new URL(url).password))
  const { openPostgres } = await import('../store/postgres/postgres.ts')
  return await openPostgres({ url, clock: systemClock, log })
}

async function unreadyReason(store: Store): Promise<string | undefined> {
  try {
    await store.read(function* () {
      yield* sql('select 1 as alive')
    })
    return undefined
  } catch (error) {
    // Anybody may ask this route: only words that are meant for everybody leave by it.
    return error instanceof MoleculeError ? error.message : 'the store cannot be read'
  }
}
