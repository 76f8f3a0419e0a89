/**
 * A connection that reconnects: opened on first use, and opened again after a loss, by the next call or in the
 * background. While the database cannot be reached, `get` rejects at once. A statement that was sent over a lost
 * connection is never sent again.
 */
import { backoffMs } from '../../backoff.ts'
import type { Clock } from '../../clock.ts'
import type { Log } from '../../log.ts'
import type { PostgresConnection } from './connection.ts'
import type { Connector } from './connector.ts'
import { unavailable } from './errors.ts'

/** Exponential backoff with jitter: each wait is between half of its value and all of it. */
const RETRY_MS_MIN = 100
const RETRY_MS_MAX = 2000
/** A connection that is lost sooner counts as a failed connect: without a backoff it would flood a crashing server. */
const CONNECTED_MS_MIN = 1000

export interface ReconnectingLink {
  get(): Promise<PostgresConnection>
  close(): Promise<void>
}

export interface ReconnectingLinkOptions {
  readonly connector: Connector
  readonly clock: Clock
  readonly log: Log
  /** The purpose of the connection, for the log. */
  readonly name: string
  /** Prepares a new connection. A failure counts as a failed connect. */
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
  let connectError: unknown
  let cancelRetry: (() => void) | undefined
  let failures = 0
  let closed = false

  const connect = async (): Promise<PostgresConnection> => {
    try {
      const connection = await connector.connect()
      await prepareConnection(connection, prepare)
      connection.onLost(whenLost(connection, clock.monotonicMs()))
      if (failures > 0) log.info({ connection: name, failures }, 'connected to the database again')
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
    connectError = error
    const waitMs = backoffMs(failures - 1, RETRY_MS_MIN, RETRY_MS_MAX)
    if (!closed) cancelRetry = clock.after(waitMs * (0.5 + Math.random() / 2), retry)
  }
  const retry = () => {
    cancelRetry = undefined
    // `get` throws the stored error.
    start().catch(() => undefined)
  }
  const start = () => {
    connecting = connect()
    return connecting
  }
  const whenLost = (connection: PostgresConnection, connectedMs: number) => () => {
    current = undefined
    if (closed) return
    log.warn({ connection: name, err: connection.lost }, 'the connection to the database was lost')
    if (clock.monotonicMs() - connectedMs < CONNECTED_MS_MIN) retryLater(connection.lost)
    else retry()
  }
  return {
    async get() {
      if (current !== undefined) return current
      if (closed) throw unavailable('the store is closed')
      if (connecting !== undefined) return await connecting
      if (cancelRetry !== undefined) throw connectError
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

async function prepareConnection(
  connection: PostgresConnection,
  prepare: ReconnectingLinkOptions['prepare'],
): Promise<void> {
  try {
    await prepare?.(connection)
    if (connection.lost !== undefined) throw connection.lost
  } catch (error) {
    connection.lose(unavailable('the connection could not be prepared', error))
    throw error
  }
}
