/**
 * Warm agents: processes kept between turns, one a conversation, or one for many sessions where the agent can. At most
 * `max` are alive at any time, starting and ending ones included; only those whose turn waits for a person do not
 * count. An idle one is closed after `idleMs`, or at once for a newcomer, least recently used first. Invariant: a
 * conversation never has two, and whoever waits for a place waits in line and can be cancelled.
 */
import type { Clock } from '../../../clock.ts'
import { MoleculeError } from '../../../errors.ts'

/** What is kept warm: a process, with whatever its backend keeps beside it. */
export interface PooledProcess {
  /** Never rejects; by then no process of it is left. */
  readonly ended: Promise<unknown>
  stop(): Promise<unknown>
}

export interface WarmLaunch<A extends PooledProcess> {
  /** All that the process was started with, its secrets too: only ever compared. An agent with another one is replaced. */
  readonly fingerprint: string
  /** What else must hold of one that is there, or it is replaced: that it is in the right session, for one. */
  readonly fits?: (agent: A) => boolean
  /** At once; what takes time (a handshake) is for whoever holds the lease to wait for. */
  readonly start: () => A
}

export interface WarmAgent<A extends PooledProcess> {
  readonly agent: A
  /** The process was started for this lease. */
  readonly isFresh: boolean
  /** Gives up the place while a person is asked, and takes one again before it resolves. */
  suspendDuring<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>
  /** Back to the pool, to be used again. Once. */
  giveBack(): void
  /** Ends the process: for one that cannot be trusted any more. */
  discard(): Promise<void>
}

export interface WarmPool<A extends PooledProcess> {
  /** Waits for the agent of that key to be free, or for a place. Rejects as `canceled` when the signal aborts. */
  take(key: string, launch: WarmLaunch<A>, signal: AbortSignal): Promise<WarmAgent<A>>
  /** How many processes there are, for a look from outside. */
  readonly size: number
  /** Ends all and lets nothing start. Idempotent. */
  close(): Promise<void>
}

export interface WarmPoolOptions {
  readonly processesMax: number
  readonly idleMs: number
  readonly clock: Clock
  /** How many leases one process may have at once: 1, or more where it holds many sessions. */
  readonly turnsPerProcessMax: number
}

interface PoolEntry<A extends PooledProcess> {
  readonly key: string
  readonly fingerprint: string
  readonly agent: A
  users: number
  suspended: number
  /** It is being stopped, or its last lease will stop it: nobody new gets it. */
  isLeaving: boolean
  usedAt: number
  cancelIdle: () => void
}

export function createWarmPool<A extends PooledProcess>(options: WarmPoolOptions): WarmPool<A> {
  return new Pool<A>(options)
}

class Pool<A extends PooledProcess> implements WarmPool<A> {
  private readonly options: WarmPoolOptions
  private readonly live = new Set<PoolEntry<A>>()
  /** Who needs a place, in order. */
  private readonly queue: object[] = []
  private uses = 0
  private closed = false
  private changed = Promise.withResolvers<void>()

  constructor(options: WarmPoolOptions) {
    this.options = options
  }

  get size(): number {
    return this.live.size
  }

  async take(key: string, launch: WarmLaunch<A>, signal: AbortSignal): Promise<WarmAgent<A>> {
    const ticket = {}
    try {
      for (;;) {
        if (signal.aborted || this.closed) throw canceled()
        const kept = this.current(key)
        if (kept !== undefined && this.isUsable(kept, launch)) return this.lend(kept, false)
        const mustWait = kept !== undefined && this.makeWay(kept, launch)
        if (!mustWait && this.hasPlaceFor(ticket)) return this.lend(this.start(key, launch), true)
        await this.waitForChange(signal)
      }
    } finally {
      this.leaveQueue(ticket)
    }
  }

  async close(): Promise<void> {
    this.closed = true
    this.wakeWaiters()
    await Promise.all([...this.live].map((kept) => this.end(kept)))
  }

  /** The one that stands under this key, but for a shared one that is only finishing what it has. */
  private current(key: string): PoolEntry<A> | undefined {
    const isDraining = (kept: PoolEntry<A>) => kept.isLeaving && kept.users > 0 && this.options.turnsPerProcessMax > 1
    return [...this.live].find((kept) => kept.key === key && !isDraining(kept))
  }

  private isUsable(kept: PoolEntry<A>, launch: WarmLaunch<A>): boolean {
    return !kept.isLeaving && kept.users < this.options.turnsPerProcessMax && matchesLaunch(kept, launch)
  }

  /** For one that cannot be had as it is: whether to wait for it to be free or gone. */
  private makeWay(kept: PoolEntry<A>, launch: WarmLaunch<A>): boolean {
    if (kept.isLeaving || matchesLaunch(kept, launch)) return true
    if (kept.users === 0) void this.end(kept)
    // Of many sessions some still run: they finish with it, and new ones begin with its successor.
    else if (this.options.turnsPerProcessMax > 1) kept.isLeaving = true
    return kept.users === 0 || this.options.turnsPerProcessMax === 1
  }

  private hasPlaceFor(ticket: object): boolean {
    if (!this.queue.includes(ticket)) this.queue.push(ticket)
    const isFirst = this.queue[0] === ticket
    if (isFirst && this.countPlacesTaken() < this.options.processesMax) return true
    this.evict()
    return false
  }

  private countPlacesTaken(): number {
    return [...this.live].filter((kept) => kept.suspended === 0 || kept.suspended < kept.users).length
  }

  /** As many idle ones as there are waiting for a place, less those that are leaving already. */
  private evict(): void {
    const idle = [...this.live].filter((kept) => kept.users === 0 && !kept.isLeaving)
    const leaving = [...this.live].filter((kept) => kept.users === 0 && kept.isLeaving).length
    const free = Math.max(0, this.options.processesMax - this.countPlacesTaken())
    const wanted = Math.max(0, this.queue.length - leaving - free)
    for (const kept of idle.sort((a, b) => a.usedAt - b.usedAt).slice(0, wanted)) void this.end(kept)
  }

  private start(key: string, launch: WarmLaunch<A>): PoolEntry<A> {
    const kept: PoolEntry<A> = {
      key,
      fingerprint: launch.fingerprint,
      agent: launch.start(),
      users: 0,
      suspended: 0,
      isLeaving: false,
      usedAt: 0,
      cancelIdle: () => undefined,
    }
    this.live.add(kept)
    void kept.agent.ended.then(() => this.remove(kept))
    return kept
  }

  private lend(kept: PoolEntry<A>, isFresh: boolean): WarmAgent<A> {
    kept.users += 1
    kept.cancelIdle()
    let isOut = true
    const back = () => {
      if (!isOut) return
      isOut = false
      kept.users -= 1
      this.uses += 1
      kept.usedAt = this.uses
      this.returnToPool(kept)
    }
    return {
      agent: kept.agent,
      isFresh,
      suspendDuring: (work, signal) => this.suspend(kept, work, signal),
      giveBack: back,
      discard: async () => {
        const ended = this.end(kept)
        back()
        await ended
      },
    }
  }

  private async suspend<T>(kept: PoolEntry<A>, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const ticket = {}
    kept.suspended += 1
    this.wakeWaiters()
    try {
      const result = await work()
      // Before those who have not begun: this turn holds a process already.
      this.queue.unshift(ticket)
      while (!signal.aborted && !this.closed && this.live.has(kept) && !this.mayResume(kept, ticket)) {
        await this.waitForChange(signal)
      }
      return result
    } finally {
      kept.suspended -= 1
      this.leaveQueue(ticket)
    }
  }

  private mayResume(kept: PoolEntry<A>, ticket: object): boolean {
    // One of many sessions of a process that counts already.
    if (kept.suspended < kept.users) return true
    return this.hasPlaceFor(ticket)
  }

  private returnToPool(kept: PoolEntry<A>): void {
    if (kept.users === 0 && this.live.has(kept)) {
      if (kept.isLeaving) void this.end(kept)
      else kept.cancelIdle = this.options.clock.after(this.options.idleMs, () => void this.end(kept))
    }
    this.wakeWaiters()
  }

  private async end(kept: PoolEntry<A>): Promise<void> {
    kept.isLeaving = true
    kept.cancelIdle()
    await kept.agent.stop()
    await kept.agent.ended
    this.remove(kept)
  }

  private remove(kept: PoolEntry<A>): void {
    kept.isLeaving = true
    kept.cancelIdle()
    if (this.live.delete(kept)) this.wakeWaiters()
  }

  private leaveQueue(ticket: object): void {
    const at = this.queue.indexOf(ticket)
    if (at < 0) return
    this.queue.splice(at, 1)
    this.wakeWaiters()
  }

  private wakeWaiters(): void {
    this.changed.resolve()
    this.changed = Promise.withResolvers()
  }

  private async waitForChange(signal: AbortSignal): Promise<void> {
    const aborted = Promise.withResolvers<void>()
    const onAbort = () => aborted.resolve()
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    await Promise.race([this.changed.promise, aborted.promise])
    signal.removeEventListener('abort', onAbort)
  }
}

function matchesLaunch<A extends PooledProcess>(kept: PoolEntry<A>, { fingerprint, fits }: WarmLaunch<A>): boolean {
  return kept.fingerprint === fingerprint && (fits?.(kept.agent) ?? true)
}

const canceled = () => new MoleculeError('canceled', 'the turn was cancelled while it waited for an agent')
