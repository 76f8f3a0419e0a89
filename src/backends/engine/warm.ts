/**
 * Warm agents: processes kept between turns, one a conversation, or one for many sessions where the agent can. At most
 * `max` are alive at any time, starting and ending ones included; only those whose turn waits for a person do not
 * count. An idle one is closed after `idleMs`, or at once for a newcomer, least recently used first. Invariant: a
 * conversation never has two, and whoever waits for a place waits in line and can be cancelled.
 */
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'

/** What is kept warm: a process, with whatever its backend keeps beside it. */
export interface WarmAgent {
  /** Never rejects; by then no process of it is left. */
  readonly ended: Promise<unknown>
  stop(): Promise<unknown>
}

export interface Launch<A extends WarmAgent> {
  /** All that the process was started with, its secrets too: only ever compared. An agent with another one is replaced. */
  readonly fingerprint: string
  /** What else must hold of one that is there, or it is replaced: that it is in the right session, for one. */
  readonly fits?: (agent: A) => boolean
  /** At once; what takes time (a handshake) is for whoever holds the lease to wait for. */
  readonly start: () => A
}

export interface WarmLease<A extends WarmAgent> {
  readonly agent: A
  /** The process was started for this lease. */
  readonly isFresh: boolean
  /** Gives up the place while a person is asked, and takes one again before it resolves. */
  suspended<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>
  /** Back to the pool, to be used again. Once. */
  giveBack(): void
  /** Ends the process: for one that cannot be trusted any more. */
  discard(): Promise<void>
}

export interface Warm<A extends WarmAgent> {
  /** Waits for the agent of that key to be free, or for a place. Rejects as `canceled` when the signal aborts. */
  take(key: string, launch: Launch<A>, signal: AbortSignal): Promise<WarmLease<A>>
  /** How many processes there are, for a look from outside. */
  readonly size: number
  /** Ends all and lets nothing start. Idempotent. */
  close(): Promise<void>
}

export interface WarmOptions {
  readonly max: number
  readonly idleMs: number
  readonly clock: Clock
  /** How many leases one process may have at once: 1, or more where it holds many sessions. */
  readonly sessionsMax: number
}

interface Kept<A extends WarmAgent> {
  readonly key: string
  readonly fingerprint: string
  readonly agent: A
  leases: number
  suspended: number
  /** It is being stopped, or its last lease will stop it: nobody new gets it. */
  leaving: boolean
  usedAt: number
  cancelIdle: () => void
}

export function createWarm<A extends WarmAgent>(options: WarmOptions): Warm<A> {
  return new Pool<A>(options)
}

class Pool<A extends WarmAgent> implements Warm<A> {
  private readonly options: WarmOptions
  private readonly live = new Set<Kept<A>>()
  /** Who needs a place, in order. */
  private readonly line: object[] = []
  private uses = 0
  private closed = false
  private changed = Promise.withResolvers<void>()

  constructor(options: WarmOptions) {
    this.options = options
  }

  get size(): number {
    return this.live.size
  }

  async take(key: string, launch: Launch<A>, signal: AbortSignal): Promise<WarmLease<A>> {
    const ticket = {}
    try {
      for (;;) {
        if (signal.aborted || this.closed) throw canceled()
        const kept = this.current(key)
        if (kept !== undefined && this.isUsable(kept, launch)) return this.lease(kept, false)
        const mustWait = kept !== undefined && this.makeWay(kept, launch)
        if (!mustWait && this.hasPlaceFor(ticket)) return this.lease(this.start(key, launch), true)
        await this.change(signal)
      }
    } finally {
      this.leaveLine(ticket)
    }
  }

  async close(): Promise<void> {
    this.closed = true
    this.tell()
    await Promise.all([...this.live].map((kept) => this.end(kept)))
  }

  /** The one that stands under this key, but for a shared one that is only finishing what it has. */
  private current(key: string): Kept<A> | undefined {
    const isDraining = (kept: Kept<A>) => kept.leaving && kept.leases > 0 && this.options.sessionsMax > 1
    return [...this.live].find((kept) => kept.key === key && !isDraining(kept))
  }

  private isUsable(kept: Kept<A>, launch: Launch<A>): boolean {
    return !kept.leaving && kept.leases < this.options.sessionsMax && isSame(kept, launch)
  }

  /** For one that cannot be had as it is: whether to wait for it to be free or gone. */
  private makeWay(kept: Kept<A>, launch: Launch<A>): boolean {
    if (kept.leaving || isSame(kept, launch)) return true
    if (kept.leases === 0) void this.end(kept)
    // Of many sessions some still run: they finish with it, and new ones begin with its successor.
    else if (this.options.sessionsMax > 1) kept.leaving = true
    return kept.leases === 0 || this.options.sessionsMax === 1
  }

  private hasPlaceFor(ticket: object): boolean {
    if (!this.line.includes(ticket)) this.line.push(ticket)
    const isFirst = this.line[0] === ticket
    if (isFirst && this.placesTaken() < this.options.max) return true
    this.evict()
    return false
  }

  private placesTaken(): number {
    return [...this.live].filter((kept) => kept.suspended === 0 || kept.suspended < kept.leases).length
  }

  /** As many idle ones as there are waiting for a place, less those that are leaving already. */
  private evict(): void {
    const idle = [...this.live].filter((kept) => kept.leases === 0 && !kept.leaving)
    const leaving = [...this.live].filter((kept) => kept.leases === 0 && kept.leaving).length
    const free = Math.max(0, this.options.max - this.placesTaken())
    const wanted = Math.max(0, this.line.length - leaving - free)
    for (const kept of idle.sort((a, b) => a.usedAt - b.usedAt).slice(0, wanted)) void this.end(kept)
  }

  private start(key: string, launch: Launch<A>): Kept<A> {
    const kept: Kept<A> = {
      key,
      fingerprint: launch.fingerprint,
      agent: launch.start(),
      leases: 0,
      suspended: 0,
      leaving: false,
      usedAt: 0,
      cancelIdle: () => undefined,
    }
    this.live.add(kept)
    void kept.agent.ended.then(() => this.remove(kept))
    return kept
  }

  private lease(kept: Kept<A>, isFresh: boolean): WarmLease<A> {
    kept.leases += 1
    kept.cancelIdle()
    let isOut = true
    const back = () => {
      if (!isOut) return
      isOut = false
      kept.leases -= 1
      this.uses += 1
      kept.usedAt = this.uses
      this.rest(kept)
    }
    return {
      agent: kept.agent,
      isFresh,
      suspended: (work, signal) => this.suspend(kept, work, signal),
      giveBack: back,
      discard: async () => {
        const ended = this.end(kept)
        back()
        await ended
      },
    }
  }

  private async suspend<T>(kept: Kept<A>, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const ticket = {}
    kept.suspended += 1
    this.tell()
    try {
      const result = await work()
      // Before those who have not begun: this turn holds a process already.
      this.line.unshift(ticket)
      while (!signal.aborted && !this.closed && this.live.has(kept) && !this.mayGoOn(kept, ticket)) {
        await this.change(signal)
      }
      return result
    } finally {
      kept.suspended -= 1
      this.leaveLine(ticket)
    }
  }

  private mayGoOn(kept: Kept<A>, ticket: object): boolean {
    // One of many sessions of a process that counts already.
    if (kept.suspended < kept.leases) return true
    return this.hasPlaceFor(ticket)
  }

  private rest(kept: Kept<A>): void {
    if (kept.leases === 0 && this.live.has(kept)) {
      if (kept.leaving) void this.end(kept)
      else kept.cancelIdle = this.options.clock.after(this.options.idleMs, () => void this.end(kept))
    }
    this.tell()
  }

  private async end(kept: Kept<A>): Promise<void> {
    kept.leaving = true
    kept.cancelIdle()
    await kept.agent.stop()
    await kept.agent.ended
    this.remove(kept)
  }

  private remove(kept: Kept<A>): void {
    kept.leaving = true
    kept.cancelIdle()
    if (this.live.delete(kept)) this.tell()
  }

  private leaveLine(ticket: object): void {
    const at = this.line.indexOf(ticket)
    if (at < 0) return
    this.line.splice(at, 1)
    this.tell()
  }

  private tell(): void {
    this.changed.resolve()
    this.changed = Promise.withResolvers()
  }

  private async change(signal: AbortSignal): Promise<void> {
    const aborted = Promise.withResolvers<void>()
    const onAbort = () => aborted.resolve()
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    await Promise.race([this.changed.promise, aborted.promise])
    signal.removeEventListener('abort', onAbort)
  }
}

function isSame<A extends WarmAgent>(kept: Kept<A>, { fingerprint, fits }: Launch<A>): boolean {
  return kept.fingerprint === fingerprint && (fits?.(kept.agent) ?? true)
}

const canceled = () => new MoleculeError('canceled', 'the turn was cancelled while it waited for an agent')
