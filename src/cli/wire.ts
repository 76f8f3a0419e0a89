/**
 * Joins the parts of the platform, from the lowest layer up: processes and backends, store, inbox, workspaces, runtime,
 * doors. No other file does. Closing drains the runtime first, then ends the callers' waits and the doors, then the store.
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
import { type Environment, withoutUndefined } from './terminal/terminal.ts'
import { validateAndClose } from './validate-backend.ts'
import { readVersion } from './version.ts'
import { wireWorkspaces } from './wire-workspaces.ts'

export interface Platform {
  readonly url: string
  /** Logs in one browser, once. */
  readonly loginUrl: string
  /** Processes of an earlier run that were still alive and have been killed. */
  readonly orphansReaped: number
  close(drainMs: number): Promise<void>
}

export interface WireOptions {
  readonly config: PlatformConfig
  readonly adminToken: string
  readonly log: MaskingLog
  /** The environment of this process; processes of turns get a stripped copy. */
  readonly environment: Environment
  /** Called where a crash is most likely to lose something; for crash tests. */
  readonly onCheckpoint?: (checkpoint: Checkpoint) => void
}

/** The caller holds the lock of the data folder, so processes and leases of an earlier platform are dead. */
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

/** The inbox, after the leases of an earlier platform have been released. */
async function wireInbox(options: Omit<LocalInboxOptions, 'keepSession' | 'keepSessionOn'>): Promise<LocalInbox> {
  const { host, log } = options
  const keepSessionOn: KeepSessionOn = (place) => (key, token) => keepSession(place, key, token)
  const localInbox = createLocalInbox({ ...options, keepSession: keepSessionOn(host), keepSessionOn })
  const lost = await localInbox.recover()
  if (lost > 0) log.warn({ turns: lost }, 'turns interrupted by a crash will run again')
  return localInbox
}

/** The door that calls webhooks, and the parts of it that the HTTP door needs. */
function wireWebhooks({ config, log }: WireOptions, { pushConfigs: configs, reception }: LocalInbox) {
  const outbound = createOutbound({ allow: config.allowOutbound })
  const webhooks = createWebhooks({ configs, reception, outbound, clock: systemClock, log })
  return { webhooks, push: { configs, check: outbound.check, wake: webhooks.wake } }
}

/** Processes and backends, after the processes of an earlier platform have been killed. */
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
    // A runtime that is no backend of this platform is not metered here.
    isMetered: (runtime: string) => find(runtime) !== undefined && find(runtime)?.isFree !== true,
  }
  return { processes, orphansReaped, build, check, backendTraits }
}

interface BackendChoice {
  readonly runtime: string
  readonly options: Readonly<Record<string, string>>
}

/** Builds a backend only to validate it; throws `bad_config` for options that the backend refuses. */
async function checkBackend(
  registry: BackendRegistry,
  { runtime, options }: BackendChoice,
  context: BackendContext,
): Promise<BackendCheck> {
  const validation = await validateAndClose(registry.build(runtime, options, context))
  return validation.ok ? { ok: true } : { ok: false, reason: `${validation.problem} ${validation.remedy}` }
}

/** Loads the PostgreSQL client only when it is used: most installations have none. */
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
    // This route needs no token, so it shows only messages that are written for callers.
    return error instanceof MoleculeError ? error.message : 'the store cannot be read'
  }
}
