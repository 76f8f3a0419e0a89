/**
 * One connection to PostgreSQL, over which steps of several statements travel together. A connection that failed once
 * is lost for good: whoever waits for an answer is told, and nobody uses it again.
 */
import type { Client } from 'pg'
import type { Clock } from '../../clock.ts'
import type { MoleculeError } from '../../errors.ts'
import type { Row, Statement } from '../store.ts'
import { createBatch, type PreparedColumns, type Query, type QueryResult } from './batch.ts'
import { asConnectionError, closesConnection, unavailable } from './errors.ts'
import type { Translate } from './statements.ts'

const CLOSE_MS_MAX = 1000

export interface PostgresConnection {
  /** The server's name for this session; a notification carries that of its sender. */
  readonly processId: number
  /** Why it can no longer be used; undefined while it can. */
  readonly lost: MoleculeError | undefined
  /**
   * Sends all at once, `before` first, and gives the rows of each statement; one round trip. Rejects with the first
   * failure, behind which nothing was run.
   */
  send(statements: readonly Statement[], before?: readonly string[]): Promise<Row[][]>
  /** Runs plain SQL. */
  control(text: string): Promise<void>
  /** Resolves only when the server says that it committed. */
  commit(): Promise<void>
  /** Ends what has failed or has only read. Never rejects: it fails with the connection, which whoever is next hears. */
  rollback(): Promise<void>
  onLost(callback: () => void): void
  onNotification(callback: (payload: string, processId: number) => void): void
  /** Gives it up at once; what is in flight rejects. */
  lose(why: MoleculeError): void
  /** Takes leave of the server when everything has been answered. */
  close(): Promise<void>
}

export interface PostgresConnectionOptions {
  readonly clock: Clock
  readonly address: string
  readonly translate: Translate
  /** How long it may owe an answer before it is taken to be dead. */
  readonly answerMs: number
}

/** Around a client that is about to connect. */
export function createConnection(client: Client, options: PostgresConnectionOptions): PostgresConnection {
  const { clock, address, translate, answerMs } = options
  const lossCallbacks: (() => void)[] = []
  let lost: MoleculeError | undefined
  const end = (why: MoleculeError) => {
    if (lost !== undefined) return
    lost = why
    for (const callback of lossCallbacks) callback()
  }
  const lose = (why: MoleculeError) => {
    end(why)
    client.connection.stream.destroy()
  }
  client.on('error', (error) => lose(asConnectionError(error, address)))
  client.on('end', () => lose(unavailable(`PostgreSQL at ${address} closed the connection`)))

  const prepared: PreparedColumns = new Map()
  /** Whatever is asked is answered in time, or the connection is given up. */
  const withTimeout = async <T>(request: () => Promise<T>): Promise<T> => {
    if (lost !== undefined) throw lost
    const cancelTimer = clock.after(answerMs, () => lose(answerTimeout(address, answerMs)))
    try {
      return await request()
    } catch (error) {
      // The server says good-bye some moments before it hangs up: nobody may try this connection in between.
      if (closesConnection(error)) lose(asConnectionError(error, address))
      throw lost ?? error
    } finally {
      cancelTimer()
    }
  }
  const sendAll = (queries: readonly Query[]): Promise<QueryResult[]> =>
    new Promise((resolve, reject) => {
      const done = (error: Error | undefined, answers: QueryResult[]) =>
        error === undefined ? resolve(answers) : reject(error)
      client.query(createBatch({ queries, prepared, done }))
    })
  return {
    // pg fills it in while connecting; its types do not tell.
    get processId() {
      return (client as unknown as { processID: number }).processID
    },
    get lost() {
      return lost
    },
    async send(statements, before = []) {
      const queries = [...before.map((text) => translate({ text, values: [] })), ...statements.map(translate)]
      const answers = await withTimeout(() => sendAll(queries))
      return answers.slice(before.length).map(({ rows }) => rows)
    },
    async commit() {
      const [answer] = await withTimeout(() => sendAll([translate({ text: 'commit', values: [] })]))
      // A transaction that has failed answers COMMIT with "ROLLBACK" and no error: what is gone would count as kept.
      if (answer?.command !== 'COMMIT') throw unavailable('the transaction was rolled back by the database')
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

export const answerTimeout = (address: string, waitedMs: number): MoleculeError =>
  unavailable(`PostgreSQL at ${address} did not answer within ${waitedMs} ms`)
