/** Readers of this process that wait for a task to change. A wake-up is a hint only: readers look in the store. */

export interface Watchers {
  /** Calls back after each change of the task until the returned function is called. */
  watch(taskId: string, callback: () => void): () => void
  changed(taskId: string): void
  /** Something changed elsewhere, and it is not known what: every reader looks. */
  changedElsewhere(): void
}

export function createWatchers(): Watchers {
  const byTask = new Map<string, Set<() => void>>()
  const wake = (callbacks: Iterable<() => void>) => {
    for (const callback of callbacks) callback()
  }
  return {
    watch(taskId, callback) {
      const callbacks = byTask.get(taskId) ?? new Set()
      byTask.set(taskId, callbacks.add(callback))
      return () => {
        callbacks.delete(callback)
        if (callbacks.size === 0 && byTask.get(taskId) === callbacks) byTask.delete(taskId)
      }
    },
    changed: (taskId) => wake(byTask.get(taskId) ?? []),
    changedElsewhere() {
      for (const callbacks of byTask.values()) wake(callbacks)
    },
  }
}
