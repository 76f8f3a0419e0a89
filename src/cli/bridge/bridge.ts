/**
 * Joins the parts of a bridge: the platform's runtime over an inbox at the other end of an HTTP connection.
 * Invariant: it kills the processes and posts the outcomes of an earlier run before it asks for leases.
 */
import { createHash } from 'node:crypto'
import { hostname } from 'node:os'
import type { Backend, BackendContext } from '../../backends/backend.ts'
import type { BackendRegistry } from '../../backends/backends.ts'
import { createPlatformConnection } from '../../client/platform-connection.ts'
import { createRemoteInbox, type RemoteBrief, type RemoteInboxOptions } from '../../client/remote-inbox.ts'
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import {
  type Directive,
  type Inbox,
  type Lease,
  type LeaseKey,
  leaseId,
  type Outcome,
  type RenewedStanding,
} from '../../inbox/worker.ts'
import type { MaskingLog } from '../../log.ts'
import { openCgroups } from '../../process/cgroups.ts'
import { createProcesses } from '../../process/create-processes.ts'
import { reapOrphans } from '../../process/orphan-records.ts'
import type { Brief } from '../../protocol/brief.ts'
import { type BrokenHandler, createHandlerHealth, timeOfDay } from '../../runtime/handler-health.ts'
import { createRuntime } from '../../runtime/runtime.ts'
import { childEnvironmentOf } from '../child-environment.ts'
import { createLoginCheck } from '../login-check.ts'
import type { TokenSource } from '../platform/token-source.ts'
import { validateAndClose } from '../validate-backend.ts'
import type { Display } from './display.ts'
import { createHeartbeat, type Heartbeat } from './heartbeat.ts'
import { createSpool, type PostResult } from './spool.ts'
import type { StateFolder } from './state-folder.ts'

export interface BridgeSettings {
  readonly workspaceId: string
  readonly apiUrl: string
  readonly tokens: TokenSource
  readonly backend: string
  readonly options: Readonly<Record<string, string>>
  readonly dir: string
  readonly concurrency: number
  readonly usesCgroups: boolean
}

export interface BridgeParts {
  readonly state: StateFolder
  readonly registry: BackendRegistry
  readonly clock: Clock
  readonly log: MaskingLog
  readonly display: Display
  /** The environment of this process; processes of turns get a stripped copy. */
  readonly environment: Readonly<Record<string, string>>
}

export interface Bridge {
  /** Takes no new message. Running turns have `drainMs` to finish; then they are killed and their messages released. */
  close(drainMs: number): Promise<void>
}

/** Calls that are still open this long after the drain are aborted. */
const LEAVE_TIMEOUT_MS = 6_000

/** Throws when the backend or the token cannot work; waits for an unreachable platform until the signal aborts. */
export async function startBridge(settings: BridgeSettings, parts: BridgeParts, signal: AbortSignal): Promise<Bridge> {
  const { workspaceId, backend, options } = settings
  const { state, clock, log, display, environment } = parts
  const processes = await openProcesses(settings, parts)
  const context: BackendContext = { processes, environment, clock, log }
  const build = (): Backend => parts.registry.build(backend, options, context)
  const connection = openConnection(settings, parts)
  const check = async () => requireRunnable(backend, build())
  const handler = createHandlerHealth({
    clock,
    check,
    onChange(broken, isTrying) {
      remote.capacityChanged()
      showHandler(broken, { isTrying, heartbeat, display })
    },
  })
  const remote = openRemoteInbox(settings, parts, { connection, capacity: handler.capacity })
  const lookAtLogin = createLoginCheck(environment)
  const checkLogin = () => lookAtLogin(backend, options)
  const heartbeat = createHeartbeat({ connection, workspaceId, clock, log, checkLogin })
  const spool = createSpool({ dir: state.spoolDir, log })
  const worker = { id: state.bridgeId, workspaces: [workspaceId] }
  const runtime = createRuntime({
    inbox: watchInbox(spool.wrapInbox(remote), createWatcher(display, heartbeat)),
    worker,
    clock,
    log,
    mask: log.mask,
    build,
    handler,
    brief: async (lease) => localBrief(remote.brief(lease), settings, environment),
    onTurnEnd: (_workspace, _outcome, limits = []) => heartbeat.limited(limits),
  })
  let takesLeases = false
  const close = async (drainMs: number) => {
    heartbeat.stop()
    handler.close()
    connection.beginClosing()
    // Prevents a close that never ends when the platform no longer answers.
    const cancelTimeout = clock.after(drainMs + LEAVE_TIMEOUT_MS, () => connection.close())
    await runtime.drain(drainMs)
    const logUnheard = (err: unknown) => log.info({ err }, 'the platform did not receive that this bridge stopped')
    if (takesLeases) await remote.leave(worker).catch(logUnheard)
    await heartbeat.signOff().catch(logUnheard)
    await processes.close()
    const kept = await spool.count()
    if (kept > 0) display.print(`answers not yet posted to the platform: ${kept}; the next start posts them`)
    cancelTimeout()
    connection.close()
  }
  try {
    heartbeat.limited(await checkRunnable(backend, build()))
    await heartbeat.register(signal)
    await spool.post(remote, (result, subject) => display.print(postResultText(result, subject)), signal)
    // Prevents a second run: with outcomes unposted, the platform would treat their messages as lost at the first lease.
    signal.throwIfAborted()
  } catch (error) {
    await close(0)
    throw error
  }
  takesLeases = true
  runtime.start()
  return { close }
}

/** For the processes of turns; those of an earlier run are killed first. */
async function openProcesses({ usesCgroups }: BridgeSettings, { state, clock, log }: BridgeParts) {
  await reapEarlierRuns(state, log)
  const { bridgeId: owner, recordsDir } = state
  const { cgroups } = await openCgroups({ owner, recordsDir, log, isOff: !usesCgroups })
  return createProcesses({ owner, recordsDir, clock, log, cgroups })
}

const openRemoteInbox = (
  settings: BridgeSettings,
  { state, log }: BridgeParts,
  { connection, capacity }: Pick<RemoteInboxOptions, 'connection' | 'capacity'>,
) =>
  createRemoteInbox({
    connection,
    workspaceId: settings.workspaceId,
    log,
    host: sessionHost(state.hostId, settings),
    backend: settings.backend,
    concurrency: settings.concurrency,
    capacity,
    startedText: `started on ${hostname()}`,
  })

/** Kills the processes that this bridge, or a bridge that is gone, left running. */
async function reapEarlierRuns(state: StateFolder, log: MaskingLog): Promise<void> {
  await reapOrphans({ recordsDir: state.recordsDir, owner: state.bridgeId, log })
  for (const { bridgeId, recordsDir, release } of state.gone) {
    await reapOrphans({ recordsDir, owner: bridgeId, log })
    release()
  }
}

function openConnection({ apiUrl, tokens }: BridgeSettings, { clock, log, display }: BridgeParts) {
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

/** A session exists for one backend, in one folder, on one machine; anywhere else a new one starts. */
function sessionHost(hostId: string, { backend, dir }: BridgeSettings): string {
  return `${hostId}:${backend}:${createHash('sha256').update(dir).digest('hex').slice(0, 12)}`
}

/** The brief of the platform with what only this machine knows. */
function localBrief(
  brief: RemoteBrief,
  { apiUrl, workspaceId, backend, options, dir }: BridgeSettings,
  environment: BridgeParts['environment'],
): Brief {
  const token = brief.env['MOLECULE_WORKSPACE_TOKEN']
  const env = childEnvironmentOf({ apiUrl, workspaceId, token, path: environment['PATH'] })
  return { ...brief, runtime: backend, options, workingDir: dir, env }
}

/** The workspace shows the public reason, and this terminal the whole error. */
function showHandler(
  broken: BrokenHandler | undefined,
  { isTrying, heartbeat, display }: { isTrying: boolean; heartbeat: Heartbeat; display: Display },
): void {
  heartbeat.handlerChanged(broken && `its ${brokenText(broken, { text: broken.reason, isTrying })}`)
  if (broken === undefined) display.print('the handler works again')
  else if (!isTrying) display.print(`the ${brokenText(broken, { text: broken.detail, isTrying })}`)
}

function brokenText({ nextTryAtMs }: BrokenHandler, { text, isTrying }: { text: string; isTrying: boolean }): string {
  const next = isTrying ? 'the next one tries it' : `next try at ${timeOfDay(nextTryAtMs)}`
  return `handler cannot run: ${text.replaceAll(/\s+/g, ' ').trim()}; messages wait, ${next}`
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

/** Throws as `requireRunnable`. Returns what does not work with the program that was found. */
async function checkRunnable(name: string, backend: Backend): Promise<readonly string[]> {
  await requireRunnable(name, backend)
  return backend.limits?.() ?? []
}

/** Prevents a bridge whose every message fails: throws `backend_missing`. Returns version and note. */
export async function requireRunnable(name: string, backend: Backend): Promise<string> {
  const validation = await validateAndClose(backend)
  if (validation.ok) return [validation.version, validation.note].filter(Boolean).join('; ')
  const message = `the backend ${name} cannot run here: ${validation.problem.replace(/\.$/, '')}; ${validation.remedy}`
  throw new MoleculeError('backend_missing', message)
}

/** `subject` is the task, or for a refused outcome its file. */
function postResultText(result: PostResult, subject: string): string {
  if (result === 'settled') return `posted the answer of an earlier run (task ${subject})`
  if (result === 'stale') return `the answer of an earlier run is too late and kept as a late result (task ${subject})`
  return `the platform refuses an answer of an earlier run; the answer is in ${subject}`
}

interface InboxWatcher {
  begun(lease: Lease): void
  ended(key: LeaseKey, outcome: Outcome, answer: 'settled' | 'stale'): void
  /** Another worker has taken over the message. */
  lost(key: LeaseKey): void
}

/** Wraps the inbox of a bridge and reports each turn's start, end and loss to the display and the heartbeat. */
function watchInbox(inbox: Inbox, watcher: InboxWatcher): Inbox {
  const running = new Set<string>()
  const reportLost = (key: LeaseKey) => {
    if (running.delete(leaseId(key))) watcher.lost(key)
  }
  const checkStanding = <S extends RenewedStanding>(key: LeaseKey, standing: S): S => {
    if (standing === 'stale') reportLost(key)
    return standing
  }
  return {
    ...inbox,
    async *leases(worker, signal): AsyncIterable<Directive> {
      for await (const directive of inbox.leases(worker, signal)) {
        if (directive.type === 'lease') {
          running.add(leaseId(directive.lease))
          watcher.begun(directive.lease)
        }
        yield directive
      }
    },
    async extend(keys) {
      const standings = await inbox.extend(keys)
      return standings.map((standing, index) => checkStanding(keys[index] as LeaseKey, standing))
    },
    append: async (key, events) => checkStanding(key, await inbox.append(key, events)),
    async settle(key, outcome, unsent) {
      const answer = await inbox.settle(key, outcome, unsent)
      if (running.delete(leaseId(key))) watcher.ended(key, outcome, answer)
      return answer
    },
  }
}
