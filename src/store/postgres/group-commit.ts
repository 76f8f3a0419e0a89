/**
 * Group commit: one transaction runs many operations, and each is answered only after the COMMIT. Operations of
 * different keys go side by side, a step of each in one round trip, because round trips are most of what a transaction
 * costs here. Operations of one key go one after the other, each seeing what the one before it wrote.
 *
 * When something goes wrong with one of them, the whole transaction is rolled back and each is run again alone
 * (alone.ts). So only the one at fault is told of it, and the others do not pay for savepoints all the time.
 */
import type { Clock } from '../../clock.ts'
import { GROUP_MS_MAX, isReadOnly, type Row, type Statement, type Transaction } from '../store.ts'
import type { PostgresConnection } from './connection.ts'
import { asStoreError, isRetryableAlone } from './errors.ts'
import { type PostgresOperation, runAlone } from './run-alone.ts'
import { advance } from './statements.ts'

/** An operation under way. */
interface RunningOperation {
  readonly operation: PostgresOperation
  readonly steps: Transaction<unknown>
  /** Those of its key that come after it. */
  readonly followers: PostgresOperation[]
  /** The statements of its current step. */
  step: readonly Statement[]
  wrote: boolean
}

interface CommitGroup {
  readonly begun: PostgresOperation[]
  /** Answers to be given after the COMMIT. */
  readonly answers: (() => void)[]
  readonly mayBegin: () => boolean
}

/** Answers every operation that it begins and returns the others, in order. Never rejects. */
export async function commitGroup(
  connection: PostgresConnection,
  operations: readonly PostgresOperation[],
  clock: Clock,
): Promise<PostgresOperation[]> {
  const startMs = clock.monotonicMs()
  const mayBegin = () => clock.monotonicMs() - startMs < GROUP_MS_MAX
  const group: CommitGroup = { begun: [], answers: [], mayBegin }
  try {
    await runTogether(connection, group, chainsOf(operations))
    for (const answer of group.answers) answer()
  } catch (error) {
    await runEachAlone(connection, group, { error, clock })
  }
  const begun = new Set(group.begun)
  return operations.filter((operation) => !begun.has(operation))
}

/** One chain a key. In the order of keys, so that two nodes with the same workspaces lock them in the same order. */
function chainsOf(operations: readonly PostgresOperation[]): PostgresOperation[][] {
  const chains = Map.groupBy(operations, ({ key }) => key)
  return [...chains.keys()].sort().map((key) => chains.get(key) ?? [])
}

async function runTogether(
  connection: PostgresConnection,
  group: CommitGroup,
  chains: PostgresOperation[][],
): Promise<void> {
  let runs = chains.map((chain) => beginNext(group, chain)).filter((run) => run !== undefined)
  if (runs.length === 0) return
  let before: readonly string[] = ['begin']
  while (runs.length > 0) {
    const statements = runs.flatMap(({ step }) => step)
    const rows = await connection.send(statements, before)
    before = []
    let from = 0
    const going: RunningOperation[] = []
    for (const run of runs) {
      const own = rows.slice(from, from + run.step.length)
      from += run.step.length
      const next = advanceRun(group, run, own) ? run : beginNext(group, run.followers)
      if (next !== undefined) going.push(next)
    }
    runs = going
  }
  await connection.commit()
}

/** Begins the chain's next operation that asks for something. */
function beginNext(group: CommitGroup, chain: PostgresOperation[]): RunningOperation | undefined {
  while (chain.length > 0 && (group.mayBegin() || group.begun.length === 0)) {
    const operation = chain.shift() as PostgresOperation
    group.begun.push(operation)
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

/** Gives an operation its rows; true when it then asks for more. */
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
    // What it wrote is among what the others wrote: none of it can be kept.
    if (run.wrote) throw error
    answers.push(() => reject(error))
  }
  return false
}

async function runEachAlone(
  connection: PostgresConnection,
  { begun }: CommitGroup,
  { error, clock }: { error: unknown; clock: Clock },
): Promise<void> {
  await connection.rollback()
  const [first] = begun
  if (first !== undefined && begun.length === 1 && !isRetryableAlone(error)) return first.reject(asStoreError(error))
  for (const operation of begun) await runAlone(connection, operation, clock)
}
