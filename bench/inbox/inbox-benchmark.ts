/**
 * A benchmark for messages: an inbox on some store with callers on one side and a worker on the other that settles each
 * lease at once. What it takes is what the inbox takes, for nothing else is done. Each message is a conversation of
 * its own; with as many slots as callers nobody waits for anything but the store.
 */
import { systemClock } from '../../src/clock.ts'
import { workspaceId } from '../../src/ids.ts'
import type { Directive, Letter, Outcome } from '../../src/inbox/inbox.ts'
import { createLocalInbox } from '../../src/inbox/local-inbox.ts'
import { silentLog } from '../../src/log.ts'
import { keepSession } from '../../src/sessions/sessions.ts'
import { type Store, sql } from '../../src/store/store.ts'
import { letterTo } from '../../test/fakes/letters.ts'

export const CALLERS = 32
export const HOST = 'bench'
export const DONE: Outcome = { type: 'done', finality: 'completed', parts: [{ text: 'hello back' }], artifacts: [] }

export interface InboxBenchmark {
  /** The first of its workspaces. */
  readonly workspaceId: string
  /** So many messages are admitted, and nobody works. Gives the milliseconds it took. */
  admit(count: number): Promise<number>
  /** A worker leases and settles all that waits. Gives the milliseconds from its first lease to its last settle. */
  settle(count: number): Promise<number>
  /** Each caller admits a message and waits until it is settled, and then the next. From then on a worker is there. */
  serve(count: number): Promise<number>
  close(): Promise<void>
}

export interface InboxBenchmarkOptions {
  readonly workspaces: number
  /** Of each workspace. */
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

  /** Settles whatever comes and says of which task, until the signal aborts. Gives the time of the first lease. */
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
  const waiting = createTaskWaiters()
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
      const enough = new AbortController()
      let left = count
      const startMs = await work(enough.signal, () => {
        left -= 1
        if (left === 0) enough.abort()
      })
      return performance.now() - startMs
    },
    async serve(count) {
      serving ??= work(stop.signal, waiting.settled)
      const letters = lettersFor(count)
      const startMs = performance.now()
      await inParallel(letters, async (letter) => waiting.until((await reception.admit(letter)).taskId))
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

/** Callers that wait for their task, which may have been settled before they know its name. */
function createTaskWaiters() {
  const callers = new Map<string, () => void>()
  const early = new Set<string>()
  return {
    settled(taskId: string) {
      const wake = callers.get(taskId)
      if (wake === undefined) early.add(taskId)
      else wake()
      callers.delete(taskId)
    },
    async until(taskId: string) {
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

/** So many callers, each taking the next when its last is done. */
export async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  const left = items.values()
  const caller = async () => {
    for (const item of left) await work(item)
  }
  await Promise.all(Array.from({ length: CALLERS }, caller))
}
