/**
 * Group commit: one transaction runs many operations and answers them after its COMMIT. Operations with different keys
 * run side by side: one round trip carries a step of each, because round trips are most of the cost here. Operations
 * with the same key run one after the other, and each sees the writes of the one before.
 *
 * When one fails, the transaction is rolled back and each operation runs again alone (`run-alone.ts`). So only the
 * failing operation is rejected, and no operation pays for a savepoint.
 */
import type { Clock } from '../../clock.ts'
import { GROUP_MS_MAX, isReadOnly, type Row, type Statement, type Transaction } from '../store.ts'
import type { PostgresConnection } from './connection.ts'
import { asStoreError, isRetryableAlone } from './errors.ts'
import { type PostgresOperation, runAlone } from './run-alone.ts'
import { advance } from './statements.ts'

interface RunningOperation {
  readonly operation: PostgresOperation
  readonly steps: Transaction<unknown>
  /** The operations of its key that come after it. */
  readonly followers: PostgresOperation[]
  /** The statements of its current step. */
  step: readonly Statement[]
  wrote: boolean
}

interface CommitGroup {
  readonly started: PostgresOperation[]
  /** Callbacks that answer the operations after the COMMIT. */
  readonly answers: (() => void)[]
  readonly mayStart: () => boolean
}

/** Answers every operation that it starts and returns the others, in order. Never rejects. */
export async function commitGroup(
  connection: PostgresConnection,
  operations: readonly PostgresOperation[],
  clock: Clock,
): Promise<PostgresOperation[]> {
  const startMs = clock.monotonicMs()
  const mayStart = () => clock.monotonicMs() - startMs < GROUP_MS_MAX
  const group: CommitGroup = { started: [], answers: [], mayStart }
  try {
    await runTogether(connection, group, chainsOf(operations))
    for (const answer of group.answers) answer()
  } catch (error) {
    await runEachAlone(connection, group, { error, clock })
  }
  const started = new Set(group.started)
  return operations.filter((operation) => !started.has(operation))
}

/** One chain per key. Sorted by key, so that two nodes lock the same workspaces in the same order. */
function chainsOf(operations: readonly PostgresOperation[]): PostgresOperation[][] {
  const chains = Map.groupBy(operations, ({ key }) => key)
  return [...chains.keys()].sort().map((key) => chains.get(key) ?? [])
}

async function runTogether(
  connection: PostgresConnection,
  group: CommitGroup,
  chains: PostgresOperation[][],
): Promise<void> {
  let runs = chains.map((chain) => startNext(group, chain)).filter((run) => run !== undefined)
  if (runs.length === 0) return
  let before: readonly string[] = ['begin']
  while (runs.length > 0) {
    const statements = runs.flatMap(({ step }) => step)
    const rows = await connection.send(statements, before)
    before = []
    let offset = 0
    const running: RunningOperation[] = []
    for (const run of runs) {
      const own = rows.slice(offset, offset + run.step.length)
      offset += run.step.length
      const next = advanceRun(group, run, own) ? run : startNext(group, run.followers)
      if (next !== undefined) running.push(next)
    }
    runs = running
  }
  await connection.commit()
}

/** Starts the chain's next operation that has a statement to send. */
function startNext(group: CommitGroup, chain: PostgresOperation[]): RunningOperation | undefined {
  while (chain.length > 0 && (group.mayStart() || group.started.length === 0)) {
    const operation = chain.shift() as PostgresOperation
    group.started.push(operation)
    const run: RunningOperation = {
      operation,
      steps: operation.transaction(),
      followers: chain,
      step: [],
      wrote: false,
    }
    if (advanceRun(group, run, [])) return run
  }
  return undefined
}

/** Passes the rows to an operation; true when it has another step. */
function advanceRun({ answers }: CommitGroup, run: RunningOperation, rows: Row[][]): boolean {
  const { resolve, reject } = run.operation
  try {
    const step = advance(run.steps, rows)
    if (!step.done) {
      run.step = step.value
      run.wrote ||= !step.value.every(({ text }) => isReadOnly(text))
      return true
    }
    answers.push(() => resolve(step.value as never))
  } catch (error) {
    // Its writes cannot be separated from those of the other operations: the group must be rolled back.
    if (run.wrote) throw error
    answers.push(() => reject(error))
  }
  return false
}

async function runEachAlone(
  connection: PostgresConnection,
  { started }: CommitGroup,
  { error, clock }: { error: unknown; clock: Clock },
): Promise<void> {
  await connection.rollback()
  const [first] = started
  if (first !== undefined && started.length === 1 && !isRetryableAlone(error)) return first.reject(asStoreError(error))
  for (const operation of started) await runAlone(connection, operation, clock)
}
