/**
 * Calls that wait for their task. Waiting ends when the client goes away or the door closes; the task does not. So a
 * platform that stops answers its waiting callers at once with the task as it is, and they attach again later.
 */
import type { ServerResponse } from 'node:http'

export interface Waiting {
  /** Runs `wait` with a signal that ends it; it is expected to resolve then, not to throw. */
  during<T>(response: ServerResponse, wait: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** Ends all waiting, now and from now on. */
  end(): void
}

export function createWaiting(): Waiting {
  const open = new Set<AbortController>()
  let ended = false
  return {
    async during(response, wait) {
      const controller = new AbortController()
      const leave = () => controller.abort()
      if (ended) leave()
      open.add(controller)
      response.once('close', leave)
      try {
        return await wait(controller.signal)
      } finally {
        open.delete(controller)
        response.off('close', leave)
      }
    },
    end() {
      ended = true
      for (const controller of open) controller.abort()
    },
  }
}
