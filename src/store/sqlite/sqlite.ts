/**
 * The embedded engine: node:sqlite, WAL, synchronous=FULL. All writes go through one queue and share commits (group
 * commit): an fsync costs a millisecond, so thirty operations in one transaction cost what one would alone. One that
 * fails takes nothing of the others with it, and every promise resolves only after the COMMIT of its group.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../../clock.ts'
import { GROUP_MS_MAX, GROUP_OPERATIONS_MAX, type Row, type Store, type Transaction } from '../store.ts'
import { openConnection, type SqliteConnection } from './connection.ts'
import { asStoreError } from './errors.ts'
import { migrate } from './migrate.ts'

/** How long a group may gather: while each turn of the event loop brings more, and never longer than this. */
const GATHER_MS_MAX = 1

export interface SqliteOptions {
  readonly path: string
  readonly clock: Clock
}

interface SqliteOperation {
  readonly transaction: () => Transaction<unknown>
  readonly resolve: (value: never) => void
  readonly reject: (error: unknown) => void
}

type OperationResult = { readonly value: unknown } | { readonly error: unknown }

export function openSqlite({ path, clock }: SqliteOptions): Store {
  const now = databaseTime(clock)
  const connection = openConnection(path, now)
  migrate(connection)
  const queue: SqliteOperation[] = []
  let scheduled = false
  let closed = false

  const flush = () => {
    scheduled = false
    if (queue.length === 0) return
    commitGroup(connection, queue, clock)
    schedule()
  }
  /** What arrives together is committed together: one more turn of the event loop costs far less than one more commit. */
  const gather = (known: number, sinceMs: number) => {
    const grows = queue.length > known && queue.length < GROUP_OPERATIONS_MAX
    if (!grows || clock.monotonicMs() - sinceMs > GATHER_MS_MAX) return flush()
    setImmediate(gather, queue.length, sinceMs)
  }
  const schedule = () => {
    if (scheduled || queue.length === 0) return
    scheduled = true
    setImmediate(gather, 0, clock.monotonicMs())
  }

  return {
    engine: 'sqlite',
    // One queue keeps the order of every key.
    write: (transaction) =>
      new Promise((resolve, reject) => {
        if (closed) return reject(asStoreError(new Error('the store is closed')))
        queue.push({ transaction, resolve, reject })
        schedule()
      }),
    read: async (transaction) => readSnapshot(connection, transaction),
    // One process a data folder: there is nobody to tell and nobody to hear from.
    notify: () => undefined,
    listen: () => () => undefined,
    async close() {
      if (closed) return
      closed = true
      while (queue.length > 0) flush()
      connection.database.close()
    },
  }
}

/** Runs one group and answers its callers. What does not fit stays in the queue. */
function commitGroup(connection: SqliteConnection, queue: SqliteOperation[], clock: Clock): void {
  const group: SqliteOperation[] = []
  try {
    resolveGroup(
      group,
      inTransaction(connection, () => runWithoutSavepoints(connection, { queue, group, clock })),
    )
  } catch (error) {
    if (group.length === 0) group.push(...queue.splice(0))
    if (error instanceof FailedAfterWrite) commitWithSavepoints(connection, group)
    else rejectGroup(group, error)
  }
}

/** An operation threw after it had written, and what it wrote cannot be told from what the others did. */
class FailedAfterWrite extends Error {}

/**
 * Without a savepoint each, which would cost as much as a write: an operation that fails nearly always does so before
 * it has written anything. When one does not, the group is rolled back and run again, the slow way.
 */
function runWithoutSavepoints(
  connection: SqliteConnection,
  { queue, group, clock }: { queue: SqliteOperation[]; group: SqliteOperation[]; clock: Clock },
): OperationResult[] {
  const results: OperationResult[] = []
  const startMs = clock.monotonicMs()
  while (queue.length > 0 && group.length < GROUP_OPERATIONS_MAX && clock.monotonicMs() - startMs < GROUP_MS_MAX) {
    const operation = queue.shift() as SqliteOperation
    group.push(operation)
    let wrote = false
    try {
      const value = runTransaction(connection, operation.transaction, () => {
        wrote = true
      })
      results.push({ value })
      assertInTransaction(connection.database)
    } catch (error) {
      assertInTransaction(connection.database, error)
      if (wrote) throw new FailedAfterWrite('an operation failed after it had written', { cause: error })
      results.push({ error: asStoreError(error) })
    }
  }
  return results
}

/** The same operations, each under a savepoint of its own, so that the one that fails takes back only what it wrote. */
function commitWithSavepoints(connection: SqliteConnection, group: readonly SqliteOperation[]): void {
  try {
    const results = inTransaction(connection, () =>
      group.map(({ transaction }) => runUnderSavepoint(connection, transaction)),
    )
    resolveGroup(group, results)
  } catch (error) {
    rejectGroup(group, error)
  }
}

function inTransaction<T>({ database }: SqliteConnection, work: () => T): T {
  try {
    database.exec('begin immediate')
    const result = work()
    database.exec('commit')
    return result
  } catch (error) {
    if (database.isTransaction) database.exec('rollback')
    throw error
  }
}

function resolveGroup(group: readonly SqliteOperation[], results: readonly OperationResult[]): void {
  for (const [index, operation] of group.entries()) {
    const result = results[index] as OperationResult
    if ('error' in result) operation.reject(result.error)
    else operation.resolve(result.value as never)
  }
}

function rejectGroup(group: readonly SqliteOperation[], error: unknown): void {
  const failure = asStoreError(error)
  for (const operation of group) operation.reject(failure)
}

function runUnderSavepoint(connection: SqliteConnection, transaction: () => Transaction<unknown>): OperationResult {
  const { database } = connection
  connection.run('savepoint operation', [])
  try {
    const value = runTransaction(connection, transaction, () => undefined)
    assertInTransaction(database)
    connection.run('release operation', [])
    return { value }
  } catch (error) {
    assertInTransaction(database, error)
    connection.run('rollback to operation', [])
    connection.run('release operation', [])
    return { error: asStoreError(error) }
  }
}

/**
 * A full disk inside a savepoint rolls back the whole group, and the next statement would silently commit alone.
 * Then every operation of the group must be told that nothing of it was kept.
 */
function assertInTransaction(database: DatabaseSync, cause?: unknown): void {
  if (!database.isTransaction) throw cause ?? new Error('the transaction was rolled back by the database')
}

/**
 * One snapshot without a transaction, on the writer's connection: this thread has no commit open while it reads, none
 * can come between two statements, and no other process uses the store. A second connection would lose all its cached
 * pages with every commit, which made a read three times as dear.
 */
function readSnapshot<T>(connection: SqliteConnection, transaction: () => Transaction<T>): T {
  try {
    return runTransaction(connection, transaction, refuseWrite)
  } catch (error) {
    throw asStoreError(error)
  }
}

const refuseWrite = () => {
  throw new Error('a read of the store must not write')
}

/** All statements see one time. `beforeWrite` is called before each that does more than read. */
function runTransaction<T>(
  connection: SqliteConnection,
  transaction: () => Transaction<T>,
  beforeWrite: () => void,
): T {
  const nowMs = connection.nowMs()
  const steps = transaction()
  let step = steps.next([])
  while (!step.done) {
    const answers: Row[][] = []
    for (const { text, values } of step.value) {
      const statement = connection.prepare(text)
      if (!statement.reads) beforeWrite()
      answers.push(statement.run(values, nowMs))
    }
    step = steps.next(answers)
  }
  return step.value
}

/** Wall time at start plus monotonic time since: a stored time never goes backwards while the process lives. */
function databaseTime(clock: Clock): () => bigint {
  const offsetMs = clock.nowMs() - clock.monotonicMs()
  return () => BigInt(Math.floor(offsetMs + clock.monotonicMs()))
}
