/**
 * Readers of this process that wait for a task or a workspace to change. A wake-up is a hint only: after it the reader
 * reads the store.
 */
import type { Clock } from '../../clock.ts'
import { createWakeUp } from '../../wait.ts'
import type { TaskResult } from '../rows/task.ts'

/** A reader reads the store again after this time, so a missed wake-up delays it by no more. */
export const RECHECK_MS = 5000

export interface Watchers {
  /** Calls back after each change of the task or workspace with this id, until the returned function is called. */
  watch(id: string, callback: (result?: TaskResult) => void): () => void
  /** Calls back after each change, with the id of the task or workspace where it is known. */
  watchAll(callback: (id?: string) => void): () => void
  /** With the `result` of a task, callers that wait for it need not read the store. */
  changed(id: string, result?: TaskResult): void
  /** Another process changed something unknown: wakes every reader. */
  changedElsewhere(): void
}

export function createWatchers(): Watchers {
  const byId = new Map<string, Set<(result?: TaskResult) => void>>()
  const ofAll = new Set<(id?: string) => void>()
  return {
    watch(id, callback) {
      const callbacks = byId.get(id) ?? new Set()
      byId.set(id, callbacks.add(callback))
      return () => {
        callbacks.delete(callback)
        if (callbacks.size === 0 && byId.get(id) === callbacks) byId.delete(id)
      }
    },
    watchAll(callback) {
      ofAll.add(callback)
      return () => void ofAll.delete(callback)
    },
    changed(id, result) {
      for (const callback of byId.get(id) ?? []) callback(result)
      for (const callback of ofAll) callback(id)
    },
    changedElsewhere() {
      for (const callbacks of byId.values()) for (const callback of callbacks) callback()
      for (const callback of ofAll) callback()
    },
  }
}

export interface ChangeListener {
  /** Resolves on a change, after `maxMs`, or on abort; with the task's result, where the change was a settle. */
  next(maxMs: number, signal: AbortSignal): Promise<TaskResult | undefined>
  stop(): void
}

/** Listens to one task or workspace. A change between two waits is not lost: it ends the next wait at once. */
export function listenForChanges(
  { clock, watchers }: { readonly clock: Clock; readonly watchers: Watchers },
  id: string,
): ChangeListener {
  const change = createWakeUp()
  let result: TaskResult | undefined
  const stop = watchers.watch(id, (given) => {
    result = given
    change.wake()
  })
  return {
    stop,
    async next(maxMs, signal) {
      await change.wait(signal, (callback) => clock.after(maxMs, callback))
      return result
    },
  }
}
