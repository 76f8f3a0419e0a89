/** Readers of this process that wait for a task, or a whole workspace, to change. A wake-up is a hint only: readers look in the store. */
import type { TaskResult } from '../settle/task-result.ts'

export interface Watchers {
  /** Calls back after each change of what has this id until the returned function is called. */
  watch(id: string, callback: (result?: TaskResult) => void): () => void
  /** Calls back after each change with the id of what changed, without one where that is not known. */
  watchAll(callback: (id?: string) => void): () => void
  /** `result` spares whoever waits for the task's end the look, where it says all that there is to see. */
  changed(id: string, result?: TaskResult): void
  /** Something changed elsewhere, and it is not known what: every reader looks. */
  changedElsewhere(): void
}

export function createWatchers(): Watchers {
  const byId = new Map<string, Set<(result?: TaskResult) => void>>()
  const ofAll = new Set<(id?: string) => void>()
  const wake = (callbacks: Iterable<(result?: TaskResult) => void>, result?: TaskResult) => {
    for (const callback of callbacks) callback(result)
  }
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
      wake(byId.get(id) ?? [], result)
      for (const callback of ofAll) callback(id)
    },
    changedElsewhere() {
      for (const callbacks of byId.values()) wake(callbacks)
      for (const callback of ofAll) callback()
    },
  }
}
