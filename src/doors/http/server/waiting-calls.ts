/**
 * Calls that wait for their task. Waiting ends when the client goes away, its token is revoked or the door closes; the
 * task does not. So a platform that stops answers its waiting callers at once with the task as it is, and they attach
 * again later; a revoked one is answered with nothing but that.
 */
import type { ServerResponse } from 'node:http'
import { MoleculeError } from '../../../errors.ts'
import type { Identity, Tokens } from '../../../workspaces/tokens.ts'

/** Whoever waits: where the answer goes, and by whose token. */
export interface WaitingCall {
  readonly response: ServerResponse
  readonly identity: Pick<Identity, 'tokenId'>
}

export interface WaitingCalls {
  /**
   * Runs `wait` with a signal that ends it; it is expected to resolve then, not to throw. Throws `unauthenticated`
   * when the token was revoked meanwhile.
   */
  during<T>(waitingCall: WaitingCall, wait: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** Ends all waiting, now and from now on. */
  end(): void
}

export function createWaitingCalls(tokens: Pick<Tokens, 'onRevoked'>): WaitingCalls {
  const open = new Set<AbortController>()
  let ended = false
  return {
    async during({ response, identity }, wait) {
      const controller = new AbortController()
      const leave = () => controller.abort()
      let revoked = false
      const stopWatching = tokens.onRevoked(identity.tokenId, () => {
        revoked = true
        leave()
      })
      if (ended) leave()
      open.add(controller)
      response.once('close', leave)
      try {
        const result = await wait(controller.signal)
        if (revoked) throw new MoleculeError('unauthenticated', 'this token was revoked while its call waited')
        return result
      } finally {
        stopWatching()
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
