/**
 * An inbox on a store, with callers on one side and a worker on the other that settles each lease at once. So the
 * measured time is the time of the inbox. Each message has its own conversation; with as many slots as callers, a
 * message waits only for the store.
 */
import { systemClock } from '../../src/clock.ts'
import { workspaceId } from '../../src/ids.ts'
import { createLocalInbox } from '../../src/inbox/local/local-inbox.ts'
import type { Letter } from '../../src/inbox/reception.ts'
import type { Directive, Outcome } from '../../src/inbox/worker.ts'
import { silentLog } from '../../src/log.ts'
import { type Store, sql } from '../../src/store/store.ts'
import { keepSession } from '../../src/workspaces/sessions.ts'
import { letterTo } from '../../test/fakes/letters.ts'

export const CALLERS = 32
export const HOST = 'bench'
export const DONE: Outcome = { type: 'done', finality: 'completed', parts: [{ text: 'hello back' }], artifacts: [] }

export interface InboxBenchmark {
  /** The first of its workspaces. */
  readonly workspaceId: string
  /** Admits messages without a worker. Returns the milliseconds it took. */
  admit(count: number): Promise<number>
  /**
   * A worker leases and settles the waiting messages. Returns the milliseconds from its first lease to its last
   * settle.
   */
  settle(count: number): Promise<number>
  /**
   * Each caller admits a message, waits for its settle and takes the next one. Starts a worker that runs until
   * `close`.
   */
  serve(count: number): Promise<number>
  close(): Promise<void>
}

export interface InboxBenchmarkOptions {
  readonly workspaces: number
  /** Slots of each workspace. */
  readonly slots: number
}

export async function openInboxBenchmark(store: Store, options: InboxBenchmarkOptions): Promise<InboxBenchmark> {
  const workspaces = await makeWorkspaces(store, options)
  const { inbox, reception, close } = createLocalInbox({
    store,
    clock: systemClock,
    log: silentLog,
    host: HOST,
    keepSession: (key, token) => keepSession(HOST, key, token),
  })
  const lettersFor = (count: number): Letter[] =>
    Array.from({ length: count }, (_, index) => letterTo(workspaces[index % workspaces.length] as string))
  let workers = 0

  /** Settles every lease and calls `settled`, until the signal aborts. Returns the time of the first lease. */
  const work = async (signal: AbortSignal, settled: (taskId: string) => void) => {
    const worker = { id: `${HOST}.${++workers}`, workspaces: 'hosted' } as const
    const settleOne = async ({ lease }: Directive & { type: 'lease' }) => {
      await inbox.settle(lease, DONE)
      settled(lease.taskId)
    }
    let startMs = 0
    for await (const directive of inbox.leases(worker, signal)) {
      startMs ||= performance.now()
      if (directive.type === 'lease') void settleOne(directive)
    }
    return startMs
  }
  const waiters = createTaskWaiters()
  const stop = new AbortController()
  let serving: Promise<unknown> | undefined
  return {
    workspaceId: workspaces[0] as string,
    async admit(count) {
      const letters = lettersFor(count)
      const startMs = performance.now()
      await inParallel(letters, (letter) => reception.admit(letter))
      return performance.now() - startMs
    },
    async settle(count) {
      const allSettled = new AbortController()
      let left = count
      const startMs = await work(allSettled.signal, () => {
        left -= 1
        if (left === 0) allSettled.abort()
      })
      return performance.now() - startMs
    },
    async serve(count) {
      serving ??= work(stop.signal, waiters.settled)
      const letters = lettersFor(count)
      const startMs = performance.now()
      await inParallel(letters, async (letter) => waiters.wait((await reception.admit(letter)).taskId))
      return performance.now() - startMs
    },
    async close() {
      stop.abort()
      await serving
      close()
      await store.close()
    },
  }
}

/** Callers that wait for their task. It may be settled before the caller knows its id. */
function createTaskWaiters() {
  const callers = new Map<string, () => void>()
  const early = new Set<string>()
  return {
    settled(taskId: string) {
      const resolve = callers.get(taskId)
      if (resolve === undefined) early.add(taskId)
      else resolve()
      callers.delete(taskId)
    },
    async wait(taskId: string) {
      if (!early.delete(taskId)) await new Promise<void>((resolve) => callers.set(taskId, resolve))
    },
  }
}

async function makeWorkspaces(store: Store, { workspaces, slots }: InboxBenchmarkOptions): Promise<string[]> {
  const ids = Array.from({ length: workspaces }, workspaceId)
  await store.write(function* () {
    for (const id of ids) {
      yield* sql('insert into workspace_load (workspace_id, hosted, slots) values ($1, 1, $2)', [id, slots])
    }
  })
  return ids
}

/** `CALLERS` callers, each takes the next item when its last one is done. */
export async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const left = items.values()
  const caller = async () => {
    for (const item of left) await work(item)
  }
  await Promise.all(Array.from({ length: CALLERS }, caller))
}
