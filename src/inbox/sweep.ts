/**
 * The sweep: everything that must happen though nobody asks. Ready work is handed out, leases that ran out are taken
 * over, messages expire, questions are denied, old rows go. Wake-ups make the first quick; the timer makes all sure.
 */
import { toMoleculeError } from '../errors.ts'
import { denyAsk, findUnanswered } from './ask.ts'
import { CLAIMS_MAX, type Claim, claimReady, LEASE_MS, openWorkspaces } from './claim.ts'
import type { Desk } from './desks.ts'
import { expire, findExpired } from './expire.ts'
import type { Handout } from './inbox.ts'
import type { Office } from './office.ts'
import { prune, RETENTION } from './retention.ts'
import { findLapsed, freeLapsed, type Lapsed, takeLapsed } from './takeover.ts'
import { createUnheard, type GiveBack } from './unheard.ts'
import { findWords } from './words.ts'

/** How late a missed wake-up can be. */
const SWEEP_MS = 5000
const PRUNE_MS = 3600_000
/** Workspaces served by one look for ready work; the next look serves the rest. */
const FILL_WORKSPACES_MAX = 50

export interface Sweep {
  /** Leases all that is ready to the worker, as far as slots allow. */
  fill(desk: Desk): Promise<void>
  /** Looks for ready work soon. */
  look(): void
  lookAfter(delayMs: number): void
  start(): void
  stop(): void
}

export type HandOut = (workerId: string, handout: Handout) => void

export function createSweep(office: Office, handOut: () => HandOut, giveBack: GiveBack): Sweep {
  const { clock, log, desks } = office
  const stopped = new AbortController()
  const timers = new Set<() => void>()
  let steadySinceMs = clock.monotonicMs()
  let looking = false

  const later = (delayMs: number, work: () => Promise<unknown>) => {
    if (stopped.signal.aborted) return
    const cancel = clock.after(delayMs, () => {
      timers.delete(cancel)
      if (stopped.signal.aborted) return
      work().catch((error) => {
        // Others' leases are taken over only after one unbroken lease time: an outage must not expire everything.
        steadySinceMs = clock.monotonicMs()
        log.warn({ err: toMoleculeError(error) }, 'looking after the inbox failed; trying again')
      })
    })
    timers.add(cancel)
  }
  const lookForUnheard = createUnheard(office, giveBack)
  const fill = (desk: Desk) => fillDesk(office, handOut(), desk)
  const fillAll = async () => {
    for (const desk of desks.all()) await fill(desk)
  }
  const sweep = async () => {
    await lookForUnheard()
    if (clock.monotonicMs() - steadySinceMs >= LEASE_MS) await takeOver(office, handOut())
    await tidy(office, handOut())
    await fillAll()
  }
  const every = (delayMs: number, work: () => Promise<unknown>) =>
    later(delayMs, () => {
      every(delayMs, work)
      return work()
    })
  return {
    fill,
    look() {
      // Many wake-ups in one moment are one look.
      if (looking) return
      looking = true
      later(0, () => {
        looking = false
        return fillAll()
      })
    },
    lookAfter: (delayMs) => later(delayMs, fillAll),
    start() {
      every(SWEEP_MS, sweep)
      every(PRUNE_MS, () => prune(office.store, RETENTION, stopped.signal))
    },
    stop() {
      stopped.abort()
      for (const cancel of timers) cancel()
    },
  }
}

async function fillDesk(office: Office, handOut: HandOut, desk: Desk): Promise<void> {
  const { store, desks } = office
  const { worker } = desk
  const hosted = worker.workspaces === 'hosted'
  const open = hosted ? await store.read(() => openWorkspaces(FILL_WORKSPACES_MAX)) : worker.workspaces
  for (const workspaceId of open) {
    // A worker that left meanwhile gives back what it is handed, and would be handed it again without end.
    for (let wanted = wantedBy(desk); wanted > 0 && desks.get(worker.id) === desk; ) {
      const most = wanted
      const claims = await store.write(() => claimReady(workspaceId, worker.id, most), workspaceId)
      for (const claim of claims) announce(office, handOut, { claim, worker: worker.id })
      wanted = claims.length < most ? 0 : wantedBy(desk)
    }
  }
}

const wantedBy = (desk: Desk): number => Math.min(desk.free(), CLAIMS_MAX)

function announce(office: Office, handOut: HandOut, { claim, worker }: { claim: Claim; worker: string }): void {
  const { lease } = claim
  office.changed(lease.workspaceId, lease.taskId)
  handOut(worker, { type: 'lease', lease })
}

async function takeOver(office: Office, handOut: HandOut): Promise<void> {
  const { store, desks, log } = office
  const named = [...desks.all()].flatMap(({ worker }) => (worker.workspaces === 'hosted' ? [] : worker.workspaces))
  for (const lapsed of await store.read(() => findLapsed(named))) {
    // A worker of this process is alive, however late its renewal: nobody takes over from himself.
    if (desks.get(lapsed.worker) !== undefined) continue
    const worker = takerOf(office, lapsed)
    if (lapsed.stopping) await store.write(() => freeLapsed(lapsed), lapsed.workspaceId)
    else if (worker !== undefined) {
      const claim = await store.write(() => takeLapsed(lapsed, worker), lapsed.workspaceId)
      log.warn({ worker: lapsed.worker, conversationId: lapsed.conversationId }, 'a silent worker lost its lease')
      if (claim !== undefined) announce(office, handOut, { claim, worker })
    }
  }
}

function takerOf({ desks }: Office, { workspaceId, hosted }: Lapsed): string | undefined {
  const ready = desks.ready(workspaceId)
  return hosted ? ready.hosted : ready.named
}

/** Expired messages, unanswered questions, and what was said to turns of this process in another one. */
async function tidy(office: Office, handOut: HandOut): Promise<void> {
  const { store, desks } = office
  for (const expired of await store.read(findExpired)) {
    const gone = await store.write(() => expire(expired), expired.workspaceId)
    if (gone) office.changed(expired.workspaceId, expired.taskId)
  }
  for (const asked of await store.read(findUnanswered)) {
    const denied = await store.write(() => denyAsk(asked), asked.key.workspaceId)
    if (!denied) continue
    office.changed(asked.key.workspaceId, asked.key.taskId)
    handOut(asked.worker, { type: 'answer', key: asked.key, askId: asked.id, parts: undefined })
  }
  for (const { worker, handout } of await store.read(findWords)) {
    if (desks.get(worker) !== undefined) handOut(worker, handout)
  }
}
