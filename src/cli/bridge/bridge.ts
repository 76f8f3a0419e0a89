/**
 * The parts list of a bridge: the same runtime as the platform's, over an inbox at the other end of a wire. It begins
 * with what an earlier run left: processes are ended, outcomes are posted; only then is work asked for.
 */
import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import type { Backend, BackendContext } from '../../backends/backend.ts'
import type { BackendRegistry } from '../../backends/backends.ts'
import { createPlatformConnection } from '../../client/platform-connection.ts'
import { createRemoteInbox } from '../../client/remote-inbox.ts'
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import type { MaskingLog } from '../../log.ts'
import { createProcesses } from '../../process/create-processes.ts'
import { reapOrphans } from '../../process/orphan-records.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import { sleep } from '../../wait.ts'
import { childEnvironmentOf } from '../child-environment.ts'
import type { Display } from './display.ts'
import { createHeartbeat } from './heartbeat.ts'
import { createSpool, type PostResult } from './spool.ts'
import type { StateFolder } from './state-folder.ts'
import type { TokenSource } from './token-source.ts'
import { watchInbox } from './watch-inbox.ts'

export interface BridgeSettings {
  readonly workspaceId: string
  readonly apiUrl: string
  readonly tokens: TokenSource
  readonly backend: string
  readonly options: Readonly<Record<string, string>>
  readonly dir: string
  readonly concurrency: number
}

export interface BridgeParts {
  readonly state: StateFolder
  readonly registry: BackendRegistry
  readonly clock: Clock
  readonly log: MaskingLog
  readonly display: Display
  /** What this process inherited; children get it stripped. */
  readonly environment: Readonly<Record<string, string>>
}

export interface Bridge {
  /** No new message; running turns have so long to finish, then they are killed and their messages released. */
  close(drainMs: number): Promise<void>
}

/** How long a backend may take to say whether it can run here. */
const VALIDATE_TIMEOUT_MS = 10_000
/** After the drain: for what is still on the wire. */
const LEAVE_TIMEOUT_MS = 6_000

/** Refuses what cannot work; waits for a platform that is not there yet, until the signal aborts. */
export async function startBridge(settings: BridgeSettings, parts: BridgeParts, signal: AbortSignal): Promise<Bridge> {
  const { workspaceId, apiUrl, backend, options, dir } = settings
  const { state, clock, log, display, environment } = parts
  await reapEarlierRuns(state, log)
  const processes = createProcesses({ owner: state.bridgeId, recordsDir: state.recordsDir, clock, log })
  const context: BackendContext = { processes, environment, clock, log }
  const build = (): Backend => parts.registry.build(backend, options, context)
  const connection = openLine(settings, parts)
  const remote = createRemoteInbox({
    ...{ connection, workspaceId, log },
    host: sessionHost(state.hostId, settings),
    backend: settings.backend,
    concurrency: settings.concurrency,
    startedText: `started on ${hostname()}`,
  })
  const heartbeat = createHeartbeat({ connection, workspaceId, clock, log })
  const spool = createSpool({ dir: state.spoolDir, log })
  const worker = { id: state.bridgeId, workspaces: [workspaceId] }
  const runtime = createRuntime({
    inbox: watchInbox(spool.wrapInbox(remote), createWatcher(display, heartbeat)),
    ...{ worker, clock, log, mask: log.mask },
    brief: async (lease) => {
      const brief = remote.brief(lease)
      const token = brief.env['MOLECULE_WORKSPACE_TOKEN']
      const env = childEnvironmentOf({ apiUrl, workspaceId, token, path: environment['PATH'] })
      return { ...brief, runtime: backend, options, workingDir: dir, env }
    },
    build,
  })
  let taking = false
  const close = async (drainMs: number) => {
    heartbeat.stop()
    connection.beginClosing()
    // What is still on a wire that has gone silent must not keep us.
    const tooLong = new AbortController()
    void sleep(clock, drainMs + LEAVE_TIMEOUT_MS, tooLong.signal).then(() => connection.close())
    await runtime.drain(drainMs)
    if (taking) await remote.leave(worker).catch((err: unknown) => log.info({ err }, 'nobody heard that we left'))
    await processes.close()
    const kept = await spool.count()
    if (kept > 0) display.print(`answers that the platform has not got: ${kept}; they are posted at the next start`)
    tooLong.abort()
    connection.close()
  }
  try {
    await requireRunnable(backend, build())
    await heartbeat.register(signal)
    await spool.post(remote, (posted, what) => display.print(postResultText(posted, what)), signal)
    // Asked for work with outcomes unposted, the platform would take their messages to be lost and run them again.
    signal.throwIfAborted()
  } catch (error) {
    await close(0)
    throw error
  }
  taking = true
  runtime.start()
  return { close }
}

/** What this bridge, or one that is gone, had running when it was killed. */
async function reapEarlierRuns(state: StateFolder, log: MaskingLog): Promise<void> {
  await reapOrphans({ recordsDir: state.recordsDir, owner: state.bridgeId, log })
  for (const { bridgeId, recordsDir, release } of state.gone) {
    await reapOrphans({ recordsDir, owner: bridgeId, log })
    release()
  }
}

function openLine({ apiUrl, tokens }: BridgeSettings, { clock, log, display }: BridgeParts) {
  return createPlatformConnection({
    url: apiUrl,
    token() {
      const token = tokens.read()
      log.hide(token)
      return token
    },
    clock,
    onBackoff(error, backoffMs) {
      const advice = error?.code === 'unauthenticated' ? `; ${tokens.advice}` : ''
      display.connectionChanged(error && `${error.message}${advice}`, backoffMs)
    },
  })
}

/** A session is known to one agent, in one folder, on one machine: elsewhere another is begun. */
function sessionHost(hostId: string, { backend, dir }: BridgeSettings): string {
  return `${hostId}:${backend}:${createHash('sha256').update(dir).digest('hex').slice(0, 12)}`
}

function createWatcher(display: Display, heartbeat: ReturnType<typeof createHeartbeat>) {
  const watcher: Parameters<typeof watchInbox>[1] = {
    begun(lease) {
      heartbeat.begun()
      display.begun(lease)
    },
    ended(key, outcome, answer) {
      heartbeat.ended(outcome)
      display.ended(key, outcome, answer)
    },
    lost(key) {
      heartbeat.lost()
      display.lost(key)
    },
  }
  return watcher
}

/** Refuses to start with a backend that cannot run: every message would fail. */
export async function requireRunnable(name: string, backend: Backend): Promise<string | undefined> {
  try {
    const validation = await backend.validate(AbortSignal.timeout(VALIDATE_TIMEOUT_MS))
    if (validation.ok) return validation.version ?? validation.note
    const message = `the backend ${name} cannot run here: ${validation.problem}; ${validation.remedy}`
    throw new MoleculeError('backend_missing', message)
  } finally {
    await backend.close()
  }
}

function postResultText(posted: PostResult, what: string): string {
  if (posted === 'settled') return `posted the answer that an earlier run had kept (task ${what})`
  if (posted === 'stale') return `an answer of an earlier run came too late and is kept as a late result (task ${what})`
  return `the platform refuses an answer that an earlier run had kept; it lies in ${what}`
}
