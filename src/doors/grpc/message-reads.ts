/**
 * Decides when the message of a call is read. grpc-js keeps the bytes of a message until it is complete, and a client may
 * never finish it. So a token has few messages that are read at a time; further ones wait, with their bytes at the client.
 */
export interface MessageReads {
  /** Calls `start` when the owner's turn has come. Call the result once the message is complete or its call is over. */
  begin(owner: string, start: () => void): () => void
}

/** At most 8 messages of 8 MiB. */
const READS_PER_OWNER_MAX = 8

export function createMessageReads(): MessageReads {
  const owners = new Map<string, { running: number; readonly waiting: Set<() => void> }>()
  return {
    begin(owner, start) {
      const own = owners.get(owner) ?? { running: 0, waiting: new Set() }
      owners.set(owner, own)
      let state: 'waiting' | 'running' | 'ended' = 'waiting'
      const run = () => {
        own.waiting.delete(run)
        own.running++
        state = 'running'
        start()
      }
      if (own.running < READS_PER_OWNER_MAX) run()
      else own.waiting.add(run)
      return () => {
        if (state === 'ended') return
        if (state === 'running') own.running--
        own.waiting.delete(run)
        state = 'ended'
        const [next] = own.waiting
        if (next !== undefined && own.running < READS_PER_OWNER_MAX) next()
        else if (own.running === 0) owners.delete(owner)
      }
    },
  }
}
