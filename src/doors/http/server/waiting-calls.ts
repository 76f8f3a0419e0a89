/**
 * Calls that wait for their task. The wait ends when the client disconnects, its token is revoked or the door closes;
 * the task goes on. A platform that stops answers its waiting callers at once with the unfinished task, and they can
 * wait again later. A caller whose token was revoked receives only that error.
 */
import { MoleculeError } from '../../../errors.ts'
import type { Identity, Tokens } from '../../../workspaces/tokens.ts'
import type { ClosingResponse } from '../../a2a-calls.ts'

/** Event streams of one token at a time; one more gets 429. Each holds a socket and a reader. An admin is exempt. */
export const STREAMS_PER_TOKEN_MAX = 256
const STREAMS_RETRY_AFTER_MS = 10_000

/** A call that waits: its response, and the caller's token. */
export interface WaitingCall {
  readonly response: ClosingResponse
  readonly identity: Identity
}

export interface WaitingCalls {
  /**
   * Runs `wait` with a signal that ends it; `wait` must then resolve, not reject. Throws `unauthenticated` when the
   * token was revoked meanwhile.
   */
  run<T>(waitingCall: WaitingCall, wait: (signal: AbortSignal) => Promise<T>): Promise<T>
  /**
   * Counts an event stream until its response closes. Call it before anything is stored or sent. Throws
   * `too_many_requests` past the limit of the token.
   */
  countStream(response: ClosingResponse, identity: Pick<Identity, 'tokenId' | 'role'>): void
  /** Ends all waits, and every later one at once. */
  end(): void
}

export function createWaitingCalls(tokens: Pick<Tokens, 'onRevoked'>): WaitingCalls {
  const open = new Set<AbortController>()
  const streams = new Map<string, number>()
  let ended = false
  return {
    countStream(response, { tokenId, role }) {
      const own = streams.get(tokenId) ?? 0
      if (own >= STREAMS_PER_TOKEN_MAX && role !== 'admin') {
        const details = { retryAfterMs: STREAMS_RETRY_AFTER_MS }
        const message = `this token has ${own} event streams open; close some first`
        throw new MoleculeError('too_many_requests', message, { retryable: true, details })
      }
      streams.set(tokenId, own + 1)
      response.once('close', () => {
        const left = (streams.get(tokenId) ?? 1) - 1
        if (left > 0) streams.set(tokenId, left)
        else streams.delete(tokenId)
      })
    },
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
