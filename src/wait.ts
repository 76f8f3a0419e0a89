/**
 * Every way to wait that an AbortSignal can end: a callback, a promise, a sleep, a wake-up, a queue.
 * Invariant: when a wait ends, in whatever way, its listener is removed from the signal. A signal of the platform
 * outlives millions of messages, and a listener left by each of them would leak memory.
 */

const ONCE = { once: true } as const

/** The part of a `Clock` that a wait needs. */
interface Timer {
  after(delayMs: number, callback: () => void): () => void
}

/** Calls back once when the signal aborts, or at once if it is aborted. The returned function removes the listener. */
export function onAbort(signal: AbortSignal | undefined, callback: () => void): () => void {
  if (signal === undefined) return () => undefined
  if (signal.aborted) {
    callback()
    return () => undefined
  }
  signal.addEventListener('abort', callback, ONCE)
  return () => signal.removeEventListener('abort', callback)
}

/** The promise's value, or a rejection with the signal's reason on abort. The promise itself is not cancelled. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const release = onAbort(signal, () => reject(signal.reason))
    promise.then(resolve, reject).finally(release)
  })
}

/** The promise's value, or `fallback` on abort. The promise itself is not cancelled. */
export function abortableOr<T, F>(promise: Promise<T>, signal: AbortSignal, fallback: F): Promise<T | F> {
  return new Promise((resolve, reject) => {
    const release = onAbort(signal, () => resolve(fallback))
    promise.then(resolve, reject).finally(release)
  })
}

/** Resolves after `delayMs`, or as soon as the signal aborts; never rejects. The caller checks the signal. */
export function sleep(clock: Timer, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const end = () => {
      cancel()
      signal?.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.after(delayMs, end)
    signal?.addEventListener('abort', end)
  })
}

/**
 * Contract: one waiter at a time. `wake` ends the current wait; without one, it ends the next wait at once, so that a
 * change between two waits is not missed. `wait` resolves on a wake-up, on abort, or when the timer that `startTimer`
 * starts calls back; it never rejects.
 */
export interface WakeUp {
  wake(): void
  wait(signal?: AbortSignal, startTimer?: (callback: () => void) => () => void): Promise<void>
}

/** Uses no AbortController: every blocking call waits on one of these, and an abort costs as much as a query. */
export function createWakeUp(): WakeUp {
  let isAwake = false
  let resolveWait: (() => void) | undefined
  return {
    wake() {
      isAwake = true
      resolveWait?.()
    },
    async wait(signal, startTimer) {
      if (!isAwake && !signal?.aborted) {
        const woken = Promise.withResolvers<void>()
        resolveWait = woken.resolve
        const stopTimer = startTimer?.(woken.resolve)
        signal?.addEventListener('abort', resolveWait)
        await woken.promise
        signal?.removeEventListener('abort', resolveWait)
        stopTimer?.()
        resolveWait = undefined
      }
      isAwake = false
    },
  }
}

/** Contract: one reader at a time takes the items in the order they were put. */
export interface WaitQueue<T> {
  put(item: T): void
  /** The next item; undefined once the signal has aborted, even when items are left, or when the timer calls back. */
  take(signal: AbortSignal, startTimer?: (callback: () => void) => () => void): Promise<T | undefined>
  /** Removes and returns the items that were not taken. */
  clear(): T[]
}

export function createWaitQueue<T>(): WaitQueue<T> {
  const items: T[] = []
  const added = createWakeUp()
  return {
    put(item) {
      items.push(item)
      added.wake()
    },
    async take(signal, startTimer) {
      let timedOut = false
      const start =
        startTimer &&
        ((callback: () => void) =>
          startTimer(() => {
            timedOut = true
            callback()
          }))
      while (items.length === 0 && !signal.aborted && !timedOut) await added.wait(signal, start)
      return signal.aborted ? undefined : items.shift()
    },
    clear: () => items.splice(0),
  }
}

/** Runs the works of one key in the order of their calls, one at a time. A work that fails does not stop the next. */
export function createKeyedQueue(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>()
  return (key, work) => {
    const done = (last.get(key) ?? Promise.resolve()).then(work)
    const settled = done
      .catch(() => undefined)
      .then(() => {
        if (last.get(key) === settled) last.delete(key)
      })
    last.set(key, settled)
    return done
  }
}
