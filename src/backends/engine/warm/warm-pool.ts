/**
 * Warm agents: processes kept between turns, one for each conversation, or one for many sessions if the agent can do
 * that. At most `processesMax` are alive at any time, including those that start or stop. A process whose turn waits for
 * a person does not count. An idle process stops after `idleMs`, or earlier if a waiting turn needs its place, least
 * recently used first. Invariant: a conversation never has two processes; turns wait for a place in order.
 */
import type { Clock } from '../../../clock.ts'
import { MoleculeError } from '../../../errors.ts'
import { abortableOr } from '../../../wait.ts'

/** A process in the pool, with the data that its backend needs for it. */
export interface PooledProcess {
  /** Never rejects. When it resolves, no process of the agent is left. */
  readonly ended: Promise<unknown>
  stop(): Promise<unknown>
}

export interface WarmLaunch<A extends PooledProcess> {
  /** All that the process was started with, including secrets. Only compared. An agent with another one is replaced. */
  readonly fingerprint: string
  /** A further condition for an existing agent, e.g. that it is in the right session. If false, it is replaced. */
  readonly fits?: (agent: A) => boolean
  /** Returns at once. The turn that takes the agent waits for anything slow, e.g. a handshake. */
  readonly start: () => A
}

export interface WarmAgent<A extends PooledProcess> {
  readonly agent: A
  /** The process was started for this turn. */
  readonly isFresh: boolean
  /** Gives up the place while a person is asked. Takes a place again before it resolves. */
  suspendDuring<T>(work: () => Promise<T>, signal: AbortSignal): Promise<T>
  /** Returns the agent to the pool for the next turn. Further calls do nothing. */
  giveBack(): void
  /** Stops the process: its state is unknown, so no further turn may use it. */
  discard(): Promise<void>
}

export interface WarmPool<A extends PooledProcess> {
  /** Waits until the agent of that key is free, or for a place. Rejects as `canceled` when the signal aborts. */
  take(key: string, launch: WarmLaunch<A>, signal: AbortSignal): Promise<WarmAgent<A>>
  /** Whether `take` would give this turn a process that runs, now or when its present turn has ended. */
  has(key: string, launch: Pick<WarmLaunch<A>, 'fingerprint' | 'fits'>): boolean
  /** The number of processes. */
  readonly size: number
  /** Stops all processes and starts no more. Idempotent. */
  close(): Promise<void>
}

export interface WarmPoolOptions {
  readonly processesMax: number
  readonly idleMs: number
  readonly clock: Clock
  /** How many turns one process may run at once: 1, or more if it holds many sessions. */
  readonly turnsPerProcessMax: number
}

interface PoolEntry<A extends PooledProcess> {
  readonly key: string
  readonly fingerprint: string
  readonly agent: A
  users: number
  suspended: number
  /** It is being stopped, or its last turn will stop it. No further turn gets it. */
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
  /** The tickets of the turns that wait for a place, in order. */
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
        const entry = this.current(key)
        if (entry !== undefined && this.isUsable(entry, launch)) return this.lend(entry, false)
        const mustWait = entry !== undefined && this.makeWay(entry, launch)
        if (!mustWait && this.hasPlaceFor(ticket)) return this.lend(this.start(key, launch), true)
        await this.waitForChange(signal)
      }
    } finally {
      this.leaveQueue(ticket)
    }
  }

  has(key: string, launch: Pick<WarmLaunch<A>, 'fingerprint' | 'fits'>): boolean {
    const entry = this.current(key)
    return entry !== undefined && !entry.isLeaving && matchesLaunch(entry, launch)
  }

  async close(): Promise<void> {
    this.closed = true
    this.wakeWaiters()
    await Promise.all([...this.live].map((entry) => this.end(entry)))
  }

  /** The entry of this key, except a shared one that only finishes its running turns. */
  private current(key: string): PoolEntry<A> | undefined {
    const isDraining = (entry: PoolEntry<A>) =>
      entry.isLeaving && entry.users > 0 && this.options.turnsPerProcessMax > 1
    return [...this.live].find((entry) => entry.key === key && !isDraining(entry))
  }

  private isUsable(entry: PoolEntry<A>, launch: WarmLaunch<A>): boolean {
    return !entry.isLeaving && entry.users < this.options.turnsPerProcessMax && matchesLaunch(entry, launch)
  }

  /** For an entry that is not usable. True if the turn must wait until it is free or gone. */
  private makeWay(entry: PoolEntry<A>, launch: WarmLaunch<A>): boolean {
    if (entry.isLeaving || matchesLaunch(entry, launch)) return true
    if (entry.users === 0) void this.end(entry)
    // Its running turns finish with it, and new turns start with its successor.
    else if (this.options.turnsPerProcessMax > 1) entry.isLeaving = true
    return entry.users === 0 || this.options.turnsPerProcessMax === 1
  }

  private hasPlaceFor(ticket: object): boolean {
    if (!this.queue.includes(ticket)) this.queue.push(ticket)
    const isFirst = this.queue[0] === ticket
    if (isFirst && this.countPlacesTaken() < this.options.processesMax) return true
    this.evict()
    return false
  }

  private countPlacesTaken(): number {
    return [...this.live].filter((entry) => entry.suspended === 0 || entry.suspended < entry.users).length
  }

  /** Stops as many idle processes as turns wait for a place, minus those that already stop. */
  private evict(): void {
    const idle = [...this.live].filter((entry) => entry.users === 0 && !entry.isLeaving)
    const leaving = [...this.live].filter((entry) => entry.users === 0 && entry.isLeaving).length
    const free = Math.max(0, this.options.processesMax - this.countPlacesTaken())
    const wanted = Math.max(0, this.queue.length - leaving - free)
    for (const entry of idle.sort((a, b) => a.usedAt - b.usedAt).slice(0, wanted)) void this.end(entry)
  }

  private start(key: string, launch: WarmLaunch<A>): PoolEntry<A> {
    const entry: PoolEntry<A> = {
      key,
      fingerprint: launch.fingerprint,
      agent: launch.start(),
      users: 0,
      suspended: 0,
      isLeaving: false,
      usedAt: 0,
      cancelIdle: () => undefined,
    }
    this.live.add(entry)
    void entry.agent.ended.then(() => this.remove(entry))
    return entry
  }

  private lend(entry: PoolEntry<A>, isFresh: boolean): WarmAgent<A> {
    entry.users += 1
    entry.cancelIdle()
    let isOut = true
    const giveBack = () => {
      if (!isOut) return
      isOut = false
      entry.users -= 1
      this.uses += 1
      entry.usedAt = this.uses
      this.returnToPool(entry)
    }
    return {
      agent: entry.agent,
      isFresh,
      suspendDuring: (work, signal) => this.suspend(entry, work, signal),
      giveBack,
      discard: async () => {
        const ended = this.end(entry)
        giveBack()
        await ended
      },
    }
  }

  private async suspend<T>(entry: PoolEntry<A>, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    const ticket = {}
    entry.suspended += 1
    this.wakeWaiters()
    try {
      const result = await work()
      // In front of the turns that have not started: this turn already holds a process.
      this.queue.unshift(ticket)
      while (!signal.aborted && !this.closed && this.live.has(entry) && !this.mayResume(entry, ticket)) {
        await this.waitForChange(signal)
      }
      return result
    } finally {
      entry.suspended -= 1
      this.leaveQueue(ticket)
    }
  }

  private mayResume(entry: PoolEntry<A>, ticket: object): boolean {
    // Another turn of the same process runs, so the process already counts.
    if (entry.suspended < entry.users) return true
    return this.hasPlaceFor(ticket)
  }

  private returnToPool(entry: PoolEntry<A>): void {
    if (entry.users === 0 && this.live.has(entry)) {
      if (entry.isLeaving) void this.end(entry)
      else entry.cancelIdle = this.options.clock.after(this.options.idleMs, () => void this.end(entry))
    }
    this.wakeWaiters()
  }

  private async end(entry: PoolEntry<A>): Promise<void> {
    entry.isLeaving = true
    entry.cancelIdle()
    await entry.agent.stop()
    await entry.agent.ended
    this.remove(entry)
  }

  private remove(entry: PoolEntry<A>): void {
    entry.isLeaving = true
    entry.cancelIdle()
    if (this.live.delete(entry)) this.wakeWaiters()
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

  private waitForChange(signal: AbortSignal): Promise<void> {
    return abortableOr(this.changed.promise, signal, undefined)
  }
}

function matchesLaunch<A extends PooledProcess>(
  entry: PoolEntry<A>,
  { fingerprint, fits }: Pick<WarmLaunch<A>, 'fingerprint' | 'fits'>,
): boolean {
  return entry.fingerprint === fingerprint && (fits?.(entry.agent) ?? true)
}

const canceled = () => new MoleculeError('canceled', 'the turn was cancelled while it waited for an agent')
