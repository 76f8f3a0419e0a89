/**
 * A connection that comes back: made when first needed and made again after it was lost, by whoever asks next or by
 * itself in the background. While the database cannot be had, whoever asks is told so at once. Nothing that was sent
 * over a lost connection is ever sent again.
 */
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'
import type { PostgresConnection } from './connection.ts'
import type { Connector } from './connector.ts'
import { unavailable } from './errors.ts'

/** The wait after a first failure, doubled up to the limit; each time between half of it and all of it. */
const RETRY_MS_MIN = 100
const RETRY_MS_MAX = 2000
/** A connection that was lost sooner counts as a failure to connect: else a server that dies at once is hammered. */
const CONNECTED_MS_MIN = 1000

export interface ReconnectingLink {
  get(): Promise<PostgresConnection>
  close(): Promise<void>
}

export interface ReconnectingLinkOptions {
  readonly connector: Connector
  readonly clock: Clock
  readonly log: Log
  /** What its connection is for, for the log. */
  readonly name: string
  /** Makes a new connection ready for use; a failure counts as one of connecting. */
  readonly prepare?: (connection: PostgresConnection) => Promise<void>
}

export function createReconnectingLink({
  connector,
  clock,
  log,
  name,
  prepare,
}: ReconnectingLinkOptions): ReconnectingLink {
  let current: PostgresConnection | undefined
  let connecting: Promise<PostgresConnection> | undefined
  let refusal: unknown
  let cancelRetry: (() => void) | undefined
  let failures = 0
  let closed = false

  const connect = async (): Promise<PostgresConnection> => {
    try {
      const connection = await connector.connect()
      await makeReady(connection, prepare)
      connection.onLost(lost(connection, clock.monotonicMs()))
      if (failures > 0) log.info({ connection: name, failures }, 'the database is back')
      failures = 0
      current = connection
      return connection
    } catch (error) {
      retryLater(error)
      throw error
    } finally {
      connecting = undefined
    }
  }
  const retryLater = (error: unknown) => {
    failures += 1
    if (failures === 1) log.warn({ connection: name, err: error }, 'the database cannot be reached')
    refusal = error
    const waitMs = Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** (failures - 1))
    if (!closed) cancelRetry = clock.after(waitMs * (0.5 + Math.random() / 2), retry)
  }
  const retry = () => {
    cancelRetry = undefined
    // A failure has been noted for whoever asks.
    start().catch(() => undefined)
  }
  const start = () => {
    connecting = connect()
    return connecting
  }
  const lost = (connection: PostgresConnection, sinceMs: number) => () => {
    current = undefined
    if (closed) return
    log.warn({ connection: name, err: connection.lost }, 'the connection to the database was lost')
    if (clock.monotonicMs() - sinceMs < CONNECTED_MS_MIN) retryLater(connection.lost)
    else retry()
  }
  return {
    async get() {
      if (current !== undefined) return current
      if (closed) throw unavailable('the store is closed')
      if (connecting !== undefined) return await connecting
      if (cancelRetry !== undefined) throw refusal
      return await start()
    },
    async close() {
      closed = true
      cancelRetry?.()
      await connecting?.catch(() => undefined)
      await current?.close()
    },
  }
}

async function makeReady(connection: PostgresConnection, prepare: ReconnectingLinkOptions['prepare']): Promise<void> {
  try {
    await prepare?.(connection)
    if (connection.lost !== undefined) throw connection.lost
  } catch (error) {
    connection.lose(unavailable('the connection could not be made ready', error))
    throw error
  }
}
