/**
 * The embedded engine: node:sqlite, WAL, synchronous=FULL. All writes go through one queue and share commits (group
 * commit): an fsync costs a millisecond, so thirty operations in one transaction cost as much as one alone. Invariant:
 * a failing operation does not affect the others, and every promise resolves only after the COMMIT of its group.
 */
import type { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../../clock.ts'
import { type Log, silentLog } from '../../log.ts'
import type { Metrics } from '../../metrics.ts'
import { watchSlowCommits } from '../slow-commits.ts'
import { GROUP_MS_MAX, GROUP_OPERATIONS_MAX, type Row, type Store, type Transaction } from '../store.ts'
import type { BackgroundCheck } from './background-check.ts'
import { openConnection, type SqliteConnection } from './connection.ts'
import { checkAfterCrash, startRefusal, wasNotClosed } from './damage.ts'
import { asStoreError, isDamage, isDiskFull } from './errors.ts'
import { migrate } from './migrate.ts'
import { createSqliteUpkeep } from './upkeep.ts'

/** A group waits for more operations while each turn of the event loop brings some, and at most this long. */
const GATHER_MS_MAX = 1

export interface SqliteOptions {
  readonly path: string
  readonly clock: Clock
  readonly log?: Log
  /** Counts slow commits, and a write-ahead log that cannot shrink. */
  readonly metrics?: Pick<Metrics, 'count'>
}

interface SqliteOperation {
  readonly transaction: () => Transaction<unknown>
  readonly resolve: (value: never) => void
  readonly reject: (error: unknown) => void
}

type OperationResult = { readonly value: unknown } | { readonly error: unknown }

/** Throws `store_damaged`, with the way back, for a file that is damaged or no store. */
export function openSqlite(options: SqliteOptions): Store {
  const { clock, log = silentLog } = options
  const { connection, check } = openChecked(options)
  const doUpkeep = createSqliteUpkeep(connection, options)
  const queue: SqliteOperation[] = []
  let scheduled = false
  let closed = false

  const flush = () => {
    scheduled = false
    if (queue.length === 0) return
    commitGroup(connection, queue, clock)
    schedule()
  }
  /** Waits for operations that arrive together: a turn of the event loop costs far less than a commit. */
  const gather = (lastLength: number, startMs: number) => {
    const grows = queue.length > lastLength && queue.length < GROUP_OPERATIONS_MAX
    if (!grows || clock.monotonicMs() - startMs > GATHER_MS_MAX) return flush()
    setImmediate(gather, queue.length, startMs)
  }
  const schedule = () => {
    if (scheduled || queue.length === 0) return
    scheduled = true
    setImmediate(gather, 0, clock.monotonicMs())
  }

  return {
    engine: 'sqlite',
    // One queue keeps the order of every key, so the key is not needed.
    write: (transaction) =>
      new Promise((resolve, reject) => {
        if (closed) return reject(asStoreError(new Error('the store is closed')))
        if (connection.damage.error !== undefined) return reject(connection.damage.error)
        queue.push({ transaction, resolve, reject })
        schedule()
      }),
    read: async (transaction) => readSnapshot(connection, transaction),
    // One process per data folder: there is no other process to notify.
    notify: () => undefined,
    listen: () => () => undefined,
    async upkeep() {
      if (closed || connection.damage.error !== undefined) return false
      try {
        return doUpkeep()
      } catch (error) {
        // A full disk, for example. The next slice tries again, and no message depends on it.
        if (!connection.damage.report(error)) log.warn({ err: error }, 'the store could not be tidied up')
        return false
      }
    },
    async close() {
      if (closed) return
      closed = true
      while (queue.length > 0) flush()
      await check?.stop()
      connection.database.close()
    },
  }
}

function openChecked({ path, clock, log = silentLog, metrics }: SqliteOptions): {
  readonly connection: SqliteConnection
  readonly check: BackgroundCheck | undefined
} {
  const crashed = wasNotClosed(path)
  let connection: SqliteConnection | undefined
  try {
    const onCommit = watchSlowCommits({ clock, log, metrics })
    connection = openConnection({ path, nowMs: databaseTime(clock), log, onCommit })
    const check = crashed ? checkAfterCrash(connection, { path, clock, log }) : undefined
    migrate(connection, path)
    return { connection, check }
  } catch (error) {
    connection?.database.close()
    throw isDamage(error) ? startRefusal(path, error) : error
  }
}

/** Runs one group and answers its callers. Operations that do not fit stay in the queue. */
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
    else failGroup(connection, group, error)
  }
}

/** An operation failed after it had written. Its writes cannot be separated from those of the other operations. */
class FailedAfterWrite extends Error {}

/**
 * Uses no savepoints: each would cost as much as a write, and an operation that fails nearly always fails before its
 * first write. Otherwise the group is rolled back and `commitWithSavepoints` runs it again. Adds the operations that it
 * starts to `group`.
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
      // None of the group's writes may be committed to a damaged store.
      if (connection.damage.report(error)) throw error
      if (wrote) throw new FailedAfterWrite('an operation failed after it had written', { cause: error })
      results.push({ error: asStoreError(error) })
    }
  }
  return results
}

/** Runs each operation in its own savepoint, so that a failing one rolls back only its own writes. */
function commitWithSavepoints(connection: SqliteConnection, group: readonly SqliteOperation[]): void {
  try {
    const results = inTransaction(connection, () =>
      group.map(({ transaction }) => runUnderSavepoint(connection, transaction)),
    )
    resolveGroup(group, results)
  } catch (error) {
    failGroup(connection, group, error)
  }
}

/**
 * A large reply that does not fit on the disk is tried again and again, and took every small message of its group with it.
 * So on a full disk each operation of the group gets its own transaction.
 */
function failGroup(connection: SqliteConnection, group: readonly SqliteOperation[], error: unknown): void {
  if (!isDiskFull(error) || group.length === 1) rejectGroup(connection, group, error)
  else for (const operation of group) commitWithSavepoints(connection, [operation])
}

function inTransaction<T>({ database, onCommit }: SqliteConnection, work: () => T): T {
  try {
    database.exec('begin immediate')
    const result = work()
    const startMs = performance.now()
    database.exec('commit')
    onCommit(performance.now() - startMs)
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

function rejectGroup({ damage }: SqliteConnection, group: readonly SqliteOperation[], error: unknown): void {
  const failure = damage.report(error) ? damage.error : asStoreError(error)
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
    if (connection.damage.report(error)) throw error
    connection.run('rollback to operation', [])
    connection.run('release operation', [])
    return { error: asStoreError(error) }
  }
}

/**
 * A full disk inside a savepoint rolls back the whole group, and the next statement would silently commit on its own.
 * Then every operation of the group must be rejected, because none of its writes is stored.
 */
function assertInTransaction(database: DatabaseSync, cause?: unknown): void {
  if (!database.isTransaction) throw cause ?? new Error('the transaction was rolled back by the database')
}

/**
 * A snapshot without a transaction, on the writer's connection: this thread has no open transaction while it reads, no
 * write can run between two statements, and no other process uses the store. A second connection loses its cached pages
 * with every commit, which made a read three times as expensive.
 */
function readSnapshot<T>(connection: SqliteConnection, transaction: () => Transaction<T>): T {
  try {
    return runTransaction(connection, transaction, refuseWrite)
  } catch (error) {
    throw isDamage(error) && connection.damage.report(error) ? connection.damage.error : asStoreError(error)
  }
}

const refuseWrite = () => {
  throw new Error('a read of the store must not write')
}

/** All statements see the same time. `beforeWrite` is called before each statement that is not a plain select. */
function runTransaction<T>(
  connection: SqliteConnection,
  transaction: () => Transaction<T>,
  beforeWrite: () => void,
): T {
  const nowMs = connection.nowMs()
  const steps = transaction()
  let step = steps.next([])
  while (!step.done) {
    const results: Row[][] = []
    for (const { text, values } of step.value) {
      const statement = connection.prepare(text)
      if (!statement.reads) beforeWrite()
      results.push(statement.run(values, nowMs))
    }
    step = steps.next(results)
  }
  return step.value
}

/** Wall time at start plus monotonic time since then: stored times never go back while the process runs. */
function databaseTime(clock: Clock): () => bigint {
  const offsetMs = clock.nowMs() - clock.monotonicMs()
  return () => BigInt(Math.floor(offsetMs + clock.monotonicMs()))
}
