/**
 * One connection to PostgreSQL, which sends the statements of a step together. Invariant: a connection that failed once
 * is lost for good. All its pending calls reject, and it is not used again.
 */
import type { Client } from 'pg'
import type { Clock } from '../../clock.ts'
import type { MoleculeError } from '../../errors.ts'
import type { Row, Statement } from '../store.ts'
import { createBatch, type PreparedColumns, type Query, type QueryResult } from './batch.ts'
import { asConnectionError, closesConnection, unavailable } from './errors.ts'
import type { Translate } from './statements.ts'

const CLOSE_MS_MAX = 1000
const COMMIT: Statement = { text: 'commit', values: [] }

export interface PostgresConnection {
  /** The server's id of this connection; a notification carries the id of its sender. */
  readonly processId: number
  /** Why the connection is lost; undefined while it can be used. */
  readonly lost: MoleculeError | undefined
  /**
   * Sends all statements in one round trip, `before` first, and returns the rows of each. Rejects with the first
   * failure; the statements after it have not run.
   */
  send(statements: readonly Statement[], before?: readonly string[]): Promise<Row[][]>
  /** Runs plain SQL. */
  control(text: string): Promise<void>
  /** Resolves only when the server confirms the commit. */
  commit(): Promise<void>
  /** Ends a transaction that failed or only read. Never rejects: if it fails, the connection is lost. */
  rollback(): Promise<void>
  onLost(callback: () => void): void
  onNotification(callback: (payload: string, processId: number) => void): void
  /** Drops the connection at once; pending calls reject. */
  lose(reason: MoleculeError): void
  /** Closes after all pending calls are answered. */
  close(): Promise<void>
}

export interface PostgresConnectionOptions {
  readonly clock: Clock
  readonly address: string
  readonly translate: Translate
  /** A connection that does not answer within this time is lost. */
  readonly answerMs: number
  /** Called with the duration of each commit. */
  readonly onCommit: (tookMs: number) => void
}

/** Wraps a client that has not connected yet. */
export function createConnection(client: Client, options: PostgresConnectionOptions): PostgresConnection {
  const { clock, address, translate, answerMs } = options
  const lossCallbacks: (() => void)[] = []
  let lost: MoleculeError | undefined
  const end = (reason: MoleculeError) => {
    if (lost !== undefined) return
    lost = reason
    for (const callback of lossCallbacks) callback()
  }
  const lose = (reason: MoleculeError) => {
    end(reason)
    client.connection.stream.destroy()
  }
  client.on('error', (error) => lose(asConnectionError(error, address)))
  client.on('end', () => lose(unavailable(`PostgreSQL at ${address} closed the connection`)))

  const prepared: PreparedColumns = new Map()
  /** A call that is not answered in time loses the connection. */
  const withTimeout = async <T>(request: () => Promise<T>): Promise<T> => {
    if (lost !== undefined) throw lost
    const cancelTimer = clock.after(answerMs, () => lose(answerTimeout(address, answerMs)))
    try {
      return await request()
    } catch (error) {
      // The server reports a fatal error shortly before it closes the connection: no call may use it in between.
      if (closesConnection(error)) lose(asConnectionError(error, address))
      throw lost ?? error
    } finally {
      cancelTimer()
    }
  }
  const sendAll = (queries: readonly Query[]): Promise<QueryResult[]> =>
    new Promise((resolve, reject) => {
      const done = (error: Error | undefined, results: QueryResult[]) =>
        error === undefined ? resolve(results) : reject(error)
      client.query(createBatch({ queries, prepared, done }))
    })
  return {
    // pg sets it while connecting; its types do not declare it.
    get processId() {
      return (client as unknown as { processID: number }).processID
    },
    get lost() {
      return lost
    },
    async send(statements, before = []) {
      const queries = [...before.map((text) => translate({ text, values: [] })), ...statements.map(translate)]
      const results = await withTimeout(() => sendAll(queries))
      return results.slice(before.length).map(({ rows }) => rows)
    },
    async commit() {
      const [result] = await timed(options.onCommit, () => withTimeout(() => sendAll([translate(COMMIT)])))
      // PostgreSQL answers COMMIT of a failed transaction with "ROLLBACK" and no error: lost writes would count as
      // stored.
      if (result?.command !== 'COMMIT') throw unavailable('the transaction was rolled back by the database')
    },
    rollback: () =>
      withTimeout(() => client.query('rollback')).then(
        () => undefined,
        () => undefined,
      ),
    async control(text) {
      await withTimeout(() => client.query(text))
    },
    onLost: (callback) => void lossCallbacks.push(callback),
    onNotification(callback) {
      client.on('notification', ({ payload, processId }) => callback(payload ?? '', processId))
    },
    lose,
    async close() {
      end(unavailable('the store is closed'))
      const cancelTimer = clock.after(CLOSE_MS_MAX, () => client.connection.stream.destroy())
      await client.end()
      cancelTimer()
    },
  }
}

async function timed<T>(onEnd: (tookMs: number) => void, work: () => Promise<T>): Promise<T> {
  const startMs = performance.now()
  const result = await work()
  onEnd(performance.now() - startMs)
  return result
}

export const answerTimeout = (address: string, waitedMs: number): MoleculeError =>
  unavailable(`PostgreSQL at ${address} did not answer within ${waitedMs} ms`)
