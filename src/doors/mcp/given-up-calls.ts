/**
 * Calls that their client has cancelled. Clients of the revisions before 2026 give up a call with a notification and
 * leave its connection open, so the call cannot see it. The notification is a request of its own; this finds its call.
 */
import { isJsonObject, type JsonObject } from '../../protocol/json.ts'
import type { McpCall } from '../mcp-calls.ts'

export interface GivenUpCalls {
  /** If the request has the notification of a cancel, the running call that it names is given up. */
  note(request: Pick<McpCall, 'identity' | 'body'>): void
  /** Runs the work of a call, which can ask whether the call is given up. */
  run<T>(call: CancelableCall, work: (isGivenUp: () => boolean) => Promise<T>): Promise<T>
}

interface CancelableCall extends Pick<McpCall, 'identity'> {
  /** The id of its JSON-RPC request. */
  readonly id: unknown
}

export function createGivenUpCalls(): GivenUpCalls {
  /** By token and id. Two clients with one token may use one id at the same time: then both calls are given up. */
  const running = new Map<string, Set<{ isGivenUp: boolean }>>()
  const keyOf = ({ identity, id }: CancelableCall) => JSON.stringify([identity.tokenId, id])
  return {
    note({ identity, body }) {
      for (const message of Array.isArray(body) ? body : [body]) {
        const { method, params } = objectIn(message)
        if (method !== 'notifications/cancelled') continue
        const id = objectIn(params)['requestId']
        for (const call of running.get(keyOf({ identity, id })) ?? []) call.isGivenUp = true
      }
    },
    async run(call, work) {
      const own = { isGivenUp: false }
      const key = keyOf(call)
      const calls = running.get(key) ?? new Set()
      running.set(key, calls.add(own))
      try {
        return await work(() => own.isGivenUp)
      } finally {
        calls.delete(own)
        if (calls.size === 0) running.delete(key)
      }
    },
  }
}

const objectIn = (value: unknown): JsonObject => (isJsonObject(value) ? value : {})
