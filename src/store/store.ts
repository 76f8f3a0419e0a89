/**
 * The store seam: one SQL text for every engine. A transaction is a generator that yields statements and receives their
 * rows. SQLite runs it synchronously, PostgreSQL asynchronously; both put many transactions into one commit (group
 * commit). So a transaction cannot await anything else.
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

/** A step is one or more statements that do not need each other's rows: PostgreSQL sends them in one round trip. */
export type Transaction<T> = Generator<readonly Statement[], T, Row[][]>

/** Runs one statement inside a transaction: `const rows = yield* sql<{ id: string }>('select ...', [id])`. */
export function* sql<R = Row>(text: string, values: readonly Value[] = []): Transaction<R[]> {
  const [rows] = yield [{ text, values }]
  return rows as R[]
}

/** Runs a statement that a row's file made. */
export const runStatement = <R = Row>({ text, values }: Statement): Transaction<R[]> => sql<R>(text, values)

/** A statement for `together`. */
export const statement = (text: string, values: readonly Value[] = []): Statement => ({ text, values })

/** True for a plain select: a transaction that fails after only these has nothing to roll back. */
export const isReadOnly = (text: string): boolean => /^\s*select\b/i.test(text)

/** Runs statements in order as one step; returns the rows of each. */
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
 * generator rolls back only that transaction and rejects with the thrown value. A failure of the store rejects with
 * `store_unavailable` (retryable): either nothing was stored, or the answer to a COMMIT was lost. Then a retry is safe,
 * because every write is idempotent by its key. The generator may run more than once (deadlock, serialization), so it
 * must have no side effects.
 *
 * `key` is the id of a workspace. Writes with one key run one after the other, in call order. A write with a key
 * touches only rows of that workspace: writes with different keys may share one transaction and interleave in it, and
 * row locks do not separate them there. A write to rows of several workspaces, or of none, has no key and never shares
 * a transaction with a keyed write.
 *
 * `read` sees one consistent snapshot and never waits for writers. Its generator may run more than once too.
 */
export interface Store {
  readonly engine: 'sqlite' | 'postgres'
  write<T>(transaction: () => Transaction<T>, key?: string): Promise<T>
  read<T>(transaction: () => Transaction<T>): Promise<T>
  /**
   * Hints to other processes on this store that these workspaces changed, or that there are `deliveries`. Call it after the
   * commit. A hint is sent soon, merged with others, and may be lost.
   */
  notify(workspaceIds: readonly string[]): void
  /**
   * Calls back with the workspaces that other processes hinted at, or with `*` (any workspace) after hints were lost.
   * Hints of this process are not delivered to it. The returned function stops listening.
   */
  listen(callback: (workspaceIds: readonly string[] | '*') => void): () => void
  /**
   * Does a slice of the engine's own housekeeping, and resolves with true while there is more to do. An engine that needs
   * none has none. Never rejects for a reason that a caller could mend.
   */
  upkeep?(): Promise<boolean>
  /** Waits for the queued operations, then closes. Idempotent. */
  close(): Promise<void>
}

/** For code that writes nothing. */
export type ReadStore = Pick<Store, 'read'>
