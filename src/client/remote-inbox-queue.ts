/** What has come over the wire and waits for the runtime to take it, in order. */

export interface Queue<T> {
  put(item: T): void
  /** The next, or undefined once the signal has aborted. */
  take(signal: AbortSignal): Promise<T | undefined>
  clear(): T[]
}

export function createQueue<T>(): Queue<T> {
  const items: T[] = []
  let wake: (() => void) | undefined
  return {
    put(item) {
      items.push(item)
      wake?.()
    },
    async take(signal) {
      while (items.length === 0 && !signal.aborted) {
        const woken = Promise.withResolvers<void>()
        wake = woken.resolve
        signal.addEventListener('abort', wake, { once: true })
        await woken.promise
        signal.removeEventListener('abort', wake)
      }
      return signal.aborted ? undefined : items.shift()
    },
    clear: () => items.splice(0),
  }
}
