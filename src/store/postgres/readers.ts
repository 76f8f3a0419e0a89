/**
 * Reads: a few connections, each used by one reader at a time. A reader of one statement needs no transaction; a reader
 * of several needs a snapshot. Only the first step shows which one it is. So a reader that has a second step is started
 * again inside a snapshot, and its first statement is remembered for the next time.
 */
import { isReadOnly, type Row, type Statement, type Transaction } from '../store.ts'
import type { PostgresConnection } from './connection.ts'
import { asStoreError, unavailable } from './errors.ts'
import type { ReconnectingLink } from './reconnecting-link.ts'
import { advance } from './statements.ts'

/** At the limit a read rejects with `store_unavailable`. */
const QUEUE_READERS_MAX = 10_000
const REMEMBERED_TEXTS_MAX = 1000
const BEGIN = 'begin isolation level repeatable read read only'

export interface Readers {
  read<T>(transaction: () => Transaction<T>): Promise<T>
  /** Waits for the running and queued readers, then closes the connections. */
  close(): Promise<void>
}

export function createReaders(links: readonly ReconnectingLink[]): Readers {
  const free = [...links]
  const waiting: ((link: ReconnectingLink) => void)[] = []
  const longTexts = new Set<string>()

  const acquire = async (): Promise<ReconnectingLink> =>
    free.pop() ?? (await new Promise((resolve) => waiting.push(resolve)))
  const release = (link: ReconnectingLink) => {
    const next = waiting.shift()
    if (next === undefined) free.push(link)
    else next(link)
  }
  const readOn = async <T>(connection: PostgresConnection, transaction: () => Transaction<T>): Promise<T> => {
    const steps = transaction()
    const first = advance(steps, [])
    if (first.done) return first.value
    const [only, ...others] = first.value
    // Any other statement runs in the read-only snapshot, where the database refuses writes.
    const isPlainSelect = only !== undefined && others.length === 0 && isReadOnly(only.text)
    const isShort = isPlainSelect && !longTexts.has(only.text)
    if (!isShort) return await readSnapshot(connection, { steps, firstStep: first.value })
    const second = advance(steps, await connection.send(first.value))
    if (second.done) return second.value
    if (longTexts.size < REMEMBERED_TEXTS_MAX) longTexts.add(only.text)
    return await readSnapshot(connection, { steps: transaction(), firstStep: undefined })
  }
  return {
    async read(transaction) {
      if (waiting.length >= QUEUE_READERS_MAX) throw unavailable(`${waiting.length} reads are already waiting`)
      const link = await acquire()
      try {
        return await readOn(await link.get(), transaction)
      } catch (error) {
        throw asStoreError(error)
      } finally {
        release(link)
      }
    },
    async close() {
      // Acquiring every connection waits behind all readers that hold one or wait for one.
      const all = await Promise.all(links.map(acquire))
      await Promise.all(all.map((link) => link.close()))
    },
  }
}

/** `firstStep` is undefined when the transaction has not started. */
async function readSnapshot<T>(
  connection: PostgresConnection,
  { steps, firstStep }: { steps: Transaction<T>; firstStep: readonly Statement[] | undefined },
): Promise<T> {
  let before: readonly string[] = [BEGIN]
  const send = async (statements: readonly Statement[]): Promise<Row[][]> => {
    const rows = await connection.send(statements, before)
    before = []
    return rows
  }
  try {
    let step = advance(steps, firstStep === undefined ? [] : await send(firstStep))
    while (!step.done) step = advance(steps, await send(step.value))
    // No await: the server runs the next statements of this connection after it.
    void connection.rollback()
    return step.value
  } catch (error) {
    await connection.rollback()
    throw error
  }
}
