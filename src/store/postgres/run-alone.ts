/**
 * Runs one operation in its own transaction, after its group failed. Retries after a deadlock, a serialization failure,
 * or a key that another node inserted at the same moment (the second run finds that row).
 */
import type { Clock } from '../../clock.ts'
import { sleep } from '../../wait.ts'
import type { Transaction } from '../store.ts'
import type { PostgresConnection } from './connection.ts'
import { asStoreError, isRetryable } from './errors.ts'
import { advance } from './statements.ts'

const TRIES_MAX = 5
/** Multiplied by the number of tries and by a random factor below 1. */
const RETRY_MS = 10
/** Longer than the open transaction of a dead node lives (`IDLE_IN_TRANSACTION_MS_MAX`). Then the write fails. */
const LOCK_MS_MAX = 15_000

export interface PostgresOperation {
  readonly key: string
  readonly transaction: () => Transaction<unknown>
  readonly resolve: (value: never) => void
  readonly reject: (error: unknown) => void
}

/** Resolves or rejects the promise of the operation. Never rejects itself. */
export async function runAlone(
  connection: PostgresConnection,
  operation: PostgresOperation,
  clock: Clock,
): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return operation.resolve((await runTransaction(connection, operation.transaction)) as never)
    } catch (error) {
      await connection.rollback()
      const again = isRetryable(error) && attempt < TRIES_MAX && connection.lost === undefined
      if (!again) return operation.reject(asStoreError(error))
      await sleep(clock, RETRY_MS * attempt * Math.random())
    }
  }
}

async function runTransaction<T>(connection: PostgresConnection, transaction: () => Transaction<T>): Promise<T> {
  const steps = transaction()
  let step = advance(steps, [])
  if (step.done) return step.value
  let before: readonly string[] = ['begin', `set local lock_timeout = ${LOCK_MS_MAX}`]
  while (!step.done) {
    const rows = await connection.send(step.value, before)
    before = []
    step = advance(steps, rows)
  }
  await connection.commit()
  return step.value
}
