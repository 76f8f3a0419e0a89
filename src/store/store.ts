/**
 * The store seam: one SQL text for every engine. A transaction is a generator that yields statements and is given
 * their rows; SQLite drives it synchronously inside a commit shared with others (group commit), PostgreSQL
 * asynchronously, also many in one commit. So nothing foreign can be awaited inside a transaction.
 *
 * SQL text: parameters are `$1`, `$2`; the time is `now_ms()`; `/*for update*\/` and `/*for update skip locked*\/`
 * stand where an engine with row locks needs them. No other dialect difference may appear in a statement.
 */

export type Value = string | number | null | Uint8Array
export type Row = Record<string, Value>

export interface Statement {
  readonly text: string
  readonly values: readonly Value[]
}

/** A step is one or several statements that do not need each other's rows: an engine over a wire sends them at once. */
export type Transaction<T> = Generator<readonly Statement[], T, Row[][]>

/** Runs one statement inside a transaction: `const rows = yield* sql<{ id: string }>('select ...', [id])`. */
export function* sql<R = Row>(text: string, values: readonly Value[] = []): Transaction<R[]> {
  const [rows] = yield [{ text, values }]
  return rows as R[]
}

/** A statement for `together`. */
export const statement = (text: string, values: readonly Value[] = []): Statement => ({ text, values })

/** True for a plain select: a transaction that fails after only these has nothing to roll back. */
export const isReadOnly = (text: string): boolean => /^\s*select\b/i.test(text)

/** Runs statements in order as one step; gives the rows of each. */
export function* together(statements: readonly Statement[]): Transaction<Row[][]> {
  return yield statements
}

/**
 * Limits of a group commit, in both engines: a group starts no operation after this many, or after this time. The
 * other operations wait for the next group.
 */
export const GROUP_OPERATIONS_MAX = 200
export const GROUP_MS_MAX = 5

/**
 * Contract: `write` runs the generator in one transaction and resolves only after it is durable. A throw inside the
 * generator rolls back that transaction alone and rejects with the thrown value. A failure of the store itself
 * rejects with `store_unavailable` (retryable): then nothing of the transaction was kept, or, where the answer to a
 * COMMIT was lost, repeating it is safe because every write of ours is idempotent by key. The generator may be run
 * more than once (deadlock, serialization), so it must not touch anything outside itself.
 * `lane` is a key, the workspace's id: writes of one key run in the order they were asked for, each after the end of
 * the one before. A write with a key touches rows of that workspace only: writes of different keys may share one
 * transaction and go through it side by side, where row locks do not keep them apart. What touches several workspaces,
 * or rows of none, goes without a key; it shares a transaction with no keyed write.
 * `read` sees one consistent snapshot and never waits for writers; its generator too may be run more than once.
 */
export interface Store {
  readonly engine: 'sqlite' | 'postgres'
  write<T>(transaction: () => Transaction<T>, key?: string): Promise<T>
  read<T>(transaction: () => Transaction<T>): Promise<T>
  /**
   * Tells other processes on this store that something changed in these workspaces. A hint: it is sent soon, merged
   * with others, and may be lost. Only for what has been committed.
   */
  notify(workspaceIds: readonly string[]): void
  /**
   * Calls back with the workspaces that other processes named, or with `*` when it may be any, as after hints were
   * lost. This process hears nothing of its own. The returned function stops it.
   */
  listen(callback: (workspaceIds: readonly string[] | '*') => void): () => void
  /** Waits for what is queued, then closes. Idempotent. */
  close(): Promise<void>
}
