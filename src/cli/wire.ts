/**
 * Joins the parts of the platform, from the lowest layer up: processes and backends, store, inbox, workspaces, runtime,
 * doors. No other file does. Closing drains the runtime first, then ends the callers' waits and the doors, then the store.
 */
import { join } from 'node:path'
import type { BackendRegistry } from '../backends/backends.ts'
import { createOutbound } from '../client/outbound.ts'
import { systemClock } from '../clock.ts'
import type { PlatformConfig } from '../config/config.ts'
import { createClockDoor } from '../doors/clock/clock.ts'
import type { GrpcDoor } from '../doors/grpc/grpc.ts'
import { createHttpDoor, type HttpDoor, type HttpDoorOptions } from '../doors/http/http.ts'
import { createMcp } from '../doors/mcp/mcp.ts'
import { createWebhooks } from '../doors/webhooks/webhooks.ts'
import { ulid } from '../ids.ts'
import type { KeepSessionOn } from '../inbox/local/context.ts'
import { createLocalInbox, type LocalInbox, type LocalInboxOptions } from '../inbox/local/local-inbox.ts'
import type { Checkpoint } from '../inbox/worker.ts'
import type { MaskingLog } from '../log.ts'
import { createMetrics, type Metrics } from '../metrics.ts'
import { createRuntime } from '../runtime/runtime.ts'
import { openSqlite } from '../store/sqlite/sqlite.ts'
import type { Store } from '../store/store.ts'
import { sleep } from '../wait.ts'
import type { ChildEnvironment } from '../workspaces/brief/brief-maker.ts'
import { makeFoldersRelative } from '../workspaces/homes/stored-folders.ts'
import { keepSession } from '../workspaces/sessions.ts'
import {
  beginTokenRun,
  type ConversationTokens,
  createConversationTokens,
  ensureConversationSecret,
} from '../workspaces/tokens/conversation-tokens.ts'
import { createTokens } from '../workspaces/tokens/token-store.ts'
import type { Workspaces } from '../workspaces/workspace.ts'
import { CHANNEL_KINDS } from './channel-kinds.ts'
import { childEnvironmentOf } from './child-environment.ts'
import { writeHostFolder } from './data-folder/host-id.ts'
import type { Environment } from './terminal/terminal.ts'
import { holdCopy, type SettledFolder } from './up/folder-standing.ts'
import { watchFreeSpace } from './up/free-space.ts'
import { refuseLostStore } from './up/lost-store.ts'
import { createReadiness } from './up/readiness.ts'
import { readVersion } from './version.ts'
import { noteAdapterChanges, wireBackends } from './wire-backends.ts'
import { wireChat } from './wire-chat.ts'
import { wireWorkspaces } from './wire-workspaces.ts'

export interface Platform {
  /** For commands and agents on this machine. */
  readonly url: string
  /** The first one; undefined without `--public-url`. */
  readonly publicUrl: string | undefined
  /** Undefined without `--grpc-port`. */
  readonly grpcPort: number | undefined
  /** Logs in one browser, once. */
  readonly loginUrl: string
  /** Processes of an earlier run that were still alive and have been killed. */
  readonly orphansReaped: number
  /** The name of the workspace of each running turn. */
  runningTurns(): Promise<readonly string[]>
  close(drainMs: number): Promise<void>
}

export interface WireOptions {
  readonly config: PlatformConfig
  readonly adminToken: string
  /** The id of the data folder, and whether it is a copy. */
  readonly folder: SettledFolder
  readonly log: MaskingLog
  /** The environment of this process; processes of turns get a stripped copy. */
  readonly environment: Environment
  /** Runs when the platform answers over HTTP and before it takes any work; the start fails when it rejects. */
  readonly beforeWork?:
    | ((access: { readonly url: string; readonly backends: BackendRegistry }) => Promise<void>)
    | undefined
  /** Called where a crash is most likely to lose something; for crash tests. */
  readonly onCheckpoint?: (checkpoint: Checkpoint) => void
}

/** The caller holds the lock of the data folder, so processes and leases of an earlier platform are dead. */
export async function wire(options: WireOptions): Promise<Platform> {
  const { config, adminToken, folder, log, environment, onCheckpoint = () => undefined } = options
  const [clock, metrics] = [systemClock, createMetrics()]
  const { host, formerHost } = folder
  const opened = await openStoreAndBackends(options, metrics)
  const { processes, orphansReaped, build, checks, backendTraits, adapterChanges, agents, runtimes } = opened

  const space = await watchFreeSpace({ ...config, bytesMin: config.minFreeBytes, clock, log })
  const readiness = createReadiness({ store: opened.store, clock, host, lowSpace: space.reason })
  const { store } = readiness
  const localInbox = await wireInbox({ store, clock, log, host, formerHost, onCheckpoint })
  const conversations = await wireConversationTokens(store, host)
  const childEnvironment: ChildEnvironment = (key, { runtime: backend, tokenGeneration: generation, isForBridge }) => {
    if (backendTraits.startsNothing(backend)) return {}
    const token = conversations.issue(key, { generation, isForBridge })
    return childEnvironmentOf({ ...key, apiUrl: door.url, token, path: environment['PATH'] })
  }
  const { addNote } = localInbox.activity
  const parts = { store, clock, log, host, dataDir: config.dataDir, ...checks, childEnvironment, addNote }
  const wired = wireWorkspaces({ ...parts, ...backendTraits, ...limitsOf(localInbox) })
  await noteAdapterChanges(adapterChanges, { workspaces: wired.workspaces, addNote })
  const runtime = createRuntime({
    inbox: localInbox.inbox,
    worker: { id: `${host}.${ulid()}`, workspaces: 'hosted' },
    ...{ clock, log, build, metrics, onCheckpoint },
    ...{ brief: wired.brief, onTurnEnd: wired.onTurnEnd, mask: log.mask },
  })
  const { webhooks, push } = wireWebhooks(options, localInbox)
  const tokens = createTokens({ store, clock, adminToken, log, conversations })
  const reception = space.guard(localInbox.reception)
  const doorParts = wired.createDoorParts({ localInbox, runtime, tokens })
  const clockDoor = createClockDoor({ ...doorParts, reception, clock, log })
  const { chatDoor, chat } = wireChat({ ...wired, ...doorParts, store, localInbox, reception, log, host })
  const door = wireHttp({
    deadLetters: localInbox.deadLetters,
    workspaces: wired.workspaces,
    ...doorParts,
    ...{ reception, clockDoor, agents, runtimes, chat, tokens, metrics, push, log, clock },
    ...{ ...addressesOf(config), version: readVersion(), maxBlockMs: config.maxBlockMs },
    ...{ grpcPort: () => grpcDoor?.port, unready: readiness.unready },
  })
  const grpcDoor = await wireGrpc(config, { httpDoor: door, metrics })
  const close = async (drainMs: number) => {
    readiness.shutDown()
    space.stop()
    await runtime.drain(drainMs)
    await Promise.all([webhooks.close(), clockDoor.close(), chatDoor.close()])
    await wired.upkeep.stop()
    localInbox.close()
    await Promise.all([door.close(), grpcDoor?.close()])
    await processes.close()
    await store.close()
  }
  const beforeWork = { start: () => options.beforeWork?.({ url: door.url, backends: opened.registry }) }
  await startAll([door, beforeWork, grpcDoor, webhooks, clockDoor, chatDoor], close)
  runtime.start()
  wired.upkeep.start()
  const urls = { url: door.url, publicUrl: config.publicUrls[0] }
  const loginUrl = `${urls.publicUrl ?? urls.url}/#${tokens.issueLoginCode()}`
  const runningTurns = () => namesOf(runtime.runningTurns(), wired.workspaces)
  return { ...urls, grpcPort: grpcDoor?.port, loginUrl, orphansReaped, runningTurns, close }
}

/** After a failed start nothing runs. */
async function startAll(
  doors: readonly ({ start(): Promise<void> | void | undefined } | undefined)[],
  close: Platform['close'],
): Promise<void> {
  try {
    for (const door of doors) await door?.start()
  } catch (error) {
    await close(0)
    throw error
  }
}

/** Prevents that a store that hangs also holds up the line that says what the platform waits for. */
const NAMES_MS_MAX = 1000

/** The names of the workspaces, in the given order; their ids where the store does not answer in time. */
async function namesOf(ids: readonly string[], { get }: Pick<Workspaces, 'get'>): Promise<readonly string[]> {
  const read = Promise.all(ids.map(async (id) => (await get(id))?.name ?? id))
  return await Promise.race([read.catch(() => ids), sleep(systemClock, NAMES_MS_MAX).then(() => ids)])
}

const addressesOf = ({ host, port, publicUrls, trustedProxies }: PlatformConfig) => ({
  ...{ host, port, publicUrls, trustedProxies },
})

/** The store first: a copy on the database of its original is refused there, before it could kill any process. */
async function openStoreAndBackends(options: WireOptions, metrics: Metrics) {
  const store = await openStore(options.config, { ...options, metrics })
  try {
    return { store, ...(await wireBackends(options, options.folder.host)) }
  } catch (error) {
    await store.close()
    throw error
  }
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

/** How the workspaces ask for a budget, and say that a limit has changed. */
const limitsOf = ({ budgets, queues }: LocalInbox) => ({
  checkBudget: budgets.check,
  limitsChanged: queues.limitsChanged,
})

/** A new run of this host begins: its processes of an earlier run are dead, so their tokens are refused. */
async function wireConversationTokens(store: Store, host: string): Promise<ConversationTokens> {
  const [secret, run] = [await ensureConversationSecret(store), await beginTokenRun(store, host)]
  return createConversationTokens({ secret, run, nowMs: systemClock.nowMs })
}

/** The door that calls webhooks, and the parts of it that the HTTP door needs. */
function wireWebhooks({ config, log }: WireOptions, { pushConfigs: configs, reception }: LocalInbox) {
  const outbound = createOutbound({ allow: config.allowOutbound })
  const webhooks = createWebhooks({ configs, reception, outbound, clock: systemClock, log })
  return { webhooks, push: { configs, check: outbound.check, wake: webhooks.wake } }
}

/** The HTTP door, with the MCP servers of the workspaces behind it. */
function wireHttp({ runtimes, ...parts }: WireHttpOptions): HttpDoor {
  const knownNames = { runtimes, channelKinds: Object.keys(CHANNEL_KINDS) }
  return createHttpDoor({ ...parts, knownNames, mcp: createMcp(parts) })
}

type WireHttpOptions = Omit<HttpDoorOptions, 'mcp' | 'knownNames'> & { readonly runtimes: readonly string[] }

/** Loads the libraries of gRPC only when the door is used: that takes 0.3 s. */
async function wireGrpc(
  { host, grpcPort: port }: PlatformConfig,
  doorParts: { readonly httpDoor: HttpDoor; readonly metrics: Metrics },
): Promise<GrpcDoor | undefined> {
  if (port === undefined) return undefined
  const { createGrpcDoor } = await import('../doors/grpc/grpc.ts')
  return createGrpcDoor({ ...doorParts, host, port, clock: systemClock })
}

interface StoreParts extends Pick<WireOptions, 'folder' | 'log'> {
  readonly metrics: Metrics
}

/** The store, ready for this data folder. */
async function openStore({ dataDir, database: url }: PlatformConfig, parts: StoreParts): Promise<Store> {
  const { folder, log, metrics } = parts
  const path = join(dataDir, 'molecule.db')
  const store =
    url === undefined ? openSqlite({ path, clock: systemClock, log, metrics }) : await openDatabase(url, parts)
  try {
    await refuseLostStore({ store, dataDir, storeName: url === undefined ? `the store ${path}` : 'the database' })
    if (folder.standing === 'copy') await holdCopy(store)
    await makeFoldersRelative(store, [dataDir, ...(folder.formerPath === undefined ? [] : [folder.formerPath])])
    // Written last: a copy that is not held yet must be found to be one at the next start too.
    writeHostFolder(dataDir, folder.host)
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}

/** Loads the PostgreSQL client only when it is used: most installations have none. */
async function openDatabase(url: string, { folder: { host }, log, metrics }: StoreParts): Promise<Store> {
  log.hide(url)
  const { password, searchParams } = new URL(url)
  log.hide(decodeURIComponent(password))
  log.hide(searchParams.get('password') ?? '')
  const { openPostgres } = await import('../store/postgres/postgres.ts')
  return await openPostgres({ url, clock: systemClock, log, metrics, host })
}
