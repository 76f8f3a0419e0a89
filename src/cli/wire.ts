/**
 * Joins the parts of the platform, from the lowest layer up: store, processes and backends, inbox, workspaces, runtime,
 * doors; `wire/` joins the parts of each. Closing drains the runtime first, then ends the callers' waits and the doors,
 * then the store.
 */
import type { BackendRegistry } from '../backends/backends.ts'
import { systemClock } from '../clock.ts'
import type { PlatformConfig } from '../config/config.ts'
import { ulid } from '../ids.ts'
import type { KeepSessionOn } from '../inbox/commands/record-outcome.ts'
import { createLocalInbox, type LocalInbox, type LocalInboxOptions } from '../inbox/local/local-inbox.ts'
import type { Checkpoint } from '../inbox/worker.ts'
import type { MaskingLog } from '../log.ts'
import { createMetrics } from '../metrics.ts'
import { createRuntime } from '../runtime/runtime.ts'
import type { Store } from '../store/store.ts'
import { sleep } from '../wait.ts'
import type { ChildEnvironment } from '../workspaces/brief/brief-maker.ts'
import { keepSession } from '../workspaces/sessions.ts'
import {
  beginTokenRun,
  type ConversationTokens,
  createConversationTokens,
  ensureConversationSecret,
} from '../workspaces/tokens/conversation-tokens.ts'
import { createTokens } from '../workspaces/tokens/token-store.ts'
import type { Workspaces } from '../workspaces/workspace.ts'
import { childEnvironmentOf } from './child-environment.ts'
import type { SettledFolder } from './data-folder/folder-standing.ts'
import { watchFreeSpace } from './data-folder/free-space.ts'
import { createReadiness } from './data-folder/readiness.ts'
import type { Environment } from './terminal/terminal.ts'
import { noteAdapterChanges, wireBackends } from './wire/wire-backends.ts'
import { wireDoors } from './wire/wire-doors.ts'
import { wireStore } from './wire/wire-store.ts'
import { wireWorkspaces } from './wire/wire-workspaces.ts'

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
  close(drainMs: number): Promise<readonly string[]>
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
  const { config, log, folder, environment, onCheckpoint = () => undefined } = options
  const { host } = folder
  const { clock, metrics, backends, space, readiness, inbox, conversations, tokens } = await wireBase(options)
  const { store, unready } = readiness
  const childEnvironment: ChildEnvironment = (key, { runtime: backend, tokenGeneration: generation, isForBridge }) => {
    if (backends.traits.startsNothing(backend)) return {}
    const token = conversations.issue(key, { generation, isForBridge })
    return childEnvironmentOf({ ...key, apiUrl: doors.http.url, token, path: environment['PATH'] })
  }
  const { dataDir } = config
  const workspaces = wireWorkspaces({ store, clock, log, host, dataDir, inbox, backends, childEnvironment })
  await noteAdapterChanges(backends.adapterChanges, workspaces.workspaces, inbox.activity)
  const runtime = createRuntime({
    inbox: inbox.inbox,
    worker: { id: `${host}.${ulid()}`, workspaces: 'hosted' },
    brief: workspaces.brief,
    build: backends.build,
    onTurnEnd: workspaces.onTurnEnd,
    mask: log.mask,
    clock,
    log,
    metrics,
    onCheckpoint,
  })
  const lifecycle = workspaces.createLifecycle({ queues: inbox.queues, retireBackend: runtime.retireBackend, tokens })
  const reception = space.guard(inbox.reception)
  const doors = await wireDoors({
    config,
    log,
    metrics,
    store,
    inbox,
    reception,
    workspaces,
    lifecycle,
    backends,
    tokens,
    host,
    unready,
  })
  const close = async (drainMs: number) => {
    readiness.shutDown()
    space.stop()
    const cutOff = await namesOf(await runtime.drain(drainMs), workspaces.workspaces)
    await Promise.all(doors.active.map((door) => door.close()))
    await workspaces.upkeep.stop()
    inbox.close()
    await Promise.all([doors.http.close(), doors.grpc?.close()])
    await backends.processes.close()
    await store.close()
    return cutOff
  }
  const beforeWork = { start: () => options.beforeWork?.({ url: doors.http.url, backends: backends.registry }) }
  await startAll([doors.http, beforeWork, doors.grpc, ...doors.active], close)
  runtime.start()
  workspaces.upkeep.start()
  return {
    url: doors.http.url,
    publicUrl: config.publicUrls[0],
    grpcPort: doors.grpc?.port,
    loginUrl: `${config.publicUrls[0] ?? doors.http.url}/#${tokens.issueLoginCode()}`,
    orphansReaped: backends.orphansReaped,
    runningTurns: () => namesOf(runtime.runningTurns(), workspaces.workspaces),
    close,
  }
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

/** What comes before the workspaces: store, processes and backends, inbox, tokens. */
async function wireBase(options: WireOptions) {
  const { config, adminToken, folder, log, environment, onCheckpoint = () => undefined } = options
  const { host, formerHost } = folder
  const clock = systemClock
  const metrics = createMetrics()
  // The store first: a copy on the database of its original is refused there, before it could kill any process.
  const opened = await wireStore({ config, folder, log, metrics })
  const backends = await closingOnFailure(opened, wireBackends({ config, log, environment, host }))
  const space = await watchFreeSpace({ dataDir: config.dataDir, bytesMin: config.minFreeBytes, clock, log })
  const readiness = createReadiness({ store: opened, clock, host, lowSpace: space.reason })
  const { store } = readiness
  const inbox = await wireInbox({ store, clock, log, host, formerHost, onCheckpoint })
  const conversations = await wireConversationTokens(store, host)
  const tokens = createTokens({ store, clock, adminToken, log, conversations })
  return { clock, metrics, backends, space, readiness, inbox, conversations, tokens }
}

async function closingOnFailure<Part>(store: Store, part: Promise<Part>): Promise<Part> {
  try {
    return await part
  } catch (error) {
    await store.close()
    throw error
  }
}

/** The inbox, after the leases of an earlier platform have been released. */
async function wireInbox(options: Omit<LocalInboxOptions, 'keepSession' | 'keepSessionOn'>): Promise<LocalInbox> {
  const { store, clock, log, host, formerHost, onCheckpoint } = options
  const keepSessionOn: KeepSessionOn = (place) => (key, token) => keepSession(place, key, token)
  const inbox = createLocalInbox({
    store,
    clock,
    log,
    host,
    formerHost,
    onCheckpoint,
    keepSession: keepSessionOn(host),
    keepSessionOn,
  })
  const lost = await inbox.recover()
  if (lost > 0) log.warn({ turns: lost }, 'turns interrupted by a crash will run again')
  return inbox
}

/** A new run of this host begins: its processes of an earlier run are dead, so their tokens are refused. */
async function wireConversationTokens(store: Store, host: string): Promise<ConversationTokens> {
  const secret = await ensureConversationSecret(store)
  return createConversationTokens({ secret, run: await beginTokenRun(store, host), nowMs: systemClock.nowMs })
}
