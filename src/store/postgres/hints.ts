/**
 * Hints between the processes on one store: which workspaces changed. They use their own connection, are merged
 * for 5 ms (a NOTIFY for each write halves the throughput) and carry no data. Correctness does not depend on them:
 * every waiter also polls.
 */
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'
import { sleep } from '../../wait.ts'
import { statement } from '../store.ts'
import type { PostgresConnection } from './connection.ts'
import type { Connector } from './connector.ts'
import { createReconnectingLink } from './reconnecting-link.ts'

const CHANNEL = 'molecule_workspaces'
const MERGE_MS = 5
/** The server accepts 8,000. A longer list is sent as `*`. */
const PAYLOAD_BYTES_MAX = 7000
const ANY_WORKSPACE = '*'
/**
 * A hint may be lost in a crash, so its commit need not wait for the disk. Not for the connection: behind a pooler, that
 * setting would stay on a connection that later commits messages.
 */
const BEGIN = ['begin', 'set local synchronous_commit = off']

type HintCallback = (workspaceIds: readonly string[] | typeof ANY_WORKSPACE) => void

export interface Hints {
  /** Resolves when every later hint will be received. */
  start(): Promise<void>
  notify(workspaceIds: readonly string[]): void
  listen(callback: HintCallback): () => void
  /** Sends the pending hints, then closes. */
  close(): Promise<void>
}

export interface HintsOptions {
  readonly connector: Connector
  readonly clock: Clock
  readonly log: Log
  /** Prepares the connection further: it is open as long as this process runs. */
  readonly prepare?: ((connection: PostgresConnection) => Promise<void>) | undefined
}

export function createHints({ connector, clock, log, prepare: prepareFurther }: HintsOptions): Hints {
  const callbacks = new Set<HintCallback>()
  let pending = new Set<string>()
  let sending: Promise<void> | undefined
  let hasListened = false

  const notifyListeners: HintCallback = (workspaceIds) => {
    for (const callback of callbacks) callback(workspaceIds)
  }
  const prepare = async (connection: PostgresConnection) => {
    connection.onNotification((payload, processId) => {
      if (processId === connection.processId) return
      notifyListeners(payload === ANY_WORKSPACE ? ANY_WORKSPACE : payload.split(','))
    })
    await connection.control(`listen ${CHANNEL}`)
    await prepareFurther?.(connection)
    // Hints from the time without a connection are lost: any workspace may have changed.
    if (hasListened) notifyListeners(ANY_WORKSPACE)
    hasListened = true
  }
  const link = createReconnectingLink({ connector, clock, log, name: 'hints', prepare })

  const sendPending = async () => {
    while (pending.size > 0) {
      await sleep(clock, MERGE_MS)
      const payload = payloadOf(pending)
      pending = new Set()
      try {
        const connection = await link.get()
        await connection.send([statement('select pg_notify($1, $2)', [CHANNEL, payload])], BEGIN)
        await connection.commit()
      } catch (error) {
        log.debug({ err: error }, 'a hint to other nodes was lost; they will poll')
      }
    }
    sending = undefined
  }
  return {
    async start() {
      await link.get()
    },
    notify(workspaceIds) {
      for (const id of workspaceIds) pending.add(id)
      sending ??= sendPending()
    },
    listen(callback) {
      callbacks.add(callback)
      return () => void callbacks.delete(callback)
    },
    async close() {
      await sending
      await link.close()
    },
  }
}

function payloadOf(workspaceIds: ReadonlySet<string>): string {
  const payload = [...workspaceIds].join(',')
  return Buffer.byteLength(payload) > PAYLOAD_BYTES_MAX ? ANY_WORKSPACE : payload
}
