/**
 * Calls that wait for their task. The wait ends when the client disconnects, its token is revoked or the door closes;
 * the task goes on. A platform that stops answers its waiting callers at once with the unfinished task, and they can
 * wait again later. A caller whose token was revoked receives only that error.
 */
import type { ServerResponse } from 'node:http'
import { MoleculeError } from '../../../errors.ts'
import type { Identity, Tokens } from '../../../workspaces/tokens.ts'

/** A call that waits: its response, and the caller's token. */
export interface WaitingCall {
  readonly response: ServerResponse
  readonly identity: Identity
}

export interface WaitingCalls {
  /**
   * Runs `wait` with a signal that ends it; `wait` must then resolve, not reject. Throws `unauthenticated` when the
   * token was revoked meanwhile.
   */
  run<T>(waitingCall: WaitingCall, wait: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** Ends all waits, and every later one at once. */
  end(): void
}

export function createWaitingCalls(tokens: Pick<Tokens, 'onRevoked'>): WaitingCalls {
  const open = new Set<AbortController>()
  let ended = false
  return {
    async run({ response, identity }, wait) {
      const controller = new AbortController()
      const abort = () => controller.abort()
      let revoked = false
      const stopWatching = tokens.onRevoked(identity, () => {
        revoked = true
        abort()
      })
      if (ended) abort()
      open.add(controller)
      response.once('close', abort)
      try {
        const result = await wait(controller.signal)
        if (revoked) throw new MoleculeError('unauthenticated', 'this token was revoked while its call waited')
        return result
      } finally {
        stopWatching()
        open.delete(controller)
        response.off('close', abort)
      }
    },
    end() {
      ended = true
      for (const controller of open) controller.abort()
    },
  }
}
