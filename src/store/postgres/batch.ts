/**
 * A batch of statements: sent in one network write and answered with one synchronization at the end. The first failure
 * ends the batch; the server skips the statements after it. pg's own queries need a synchronization, a description and
 * several objects per statement, which is half of the cost of a transaction here.
 *
 * Invariant: each connection prepares a statement once and asks for its columns only then.
 */
import type { Submittable, Connection as Wire } from 'pg'
import type { Row, Value } from '../store.ts'

/** A statement for the server. One with an empty name is prepared again each time. */
export interface Query {
  readonly name: string
  readonly text: string
  readonly values: readonly Value[]
}

interface Column {
  readonly name: string
  readonly parse: (text: string) => Value
}

/** The columns of each statement that this connection has prepared. */
export type PreparedColumns = Map<string, readonly Column[]>

export interface QueryResult {
  readonly rows: Row[]
  /** The command tag of the server: `COMMIT`, `UPDATE 1`. */
  command: string
}

export interface BatchOptions {
  readonly queries: readonly Query[]
  readonly prepared: PreparedColumns
  readonly done: (error: Error | undefined, results: QueryResult[]) => void
}

/** The messages of the server about a query, as pg passes them on. */
export interface Batch extends Submittable {
  handleRowDescription(message: { fields: readonly { name: string; dataTypeID: number }[] }): void
  handleDataRow(message: { fields: readonly (string | null)[] }): void
  handleCommandComplete(message: { text: string }): void
  handleEmptyQuery(): void
  handleReadyForQuery(): void
  handleError(error: Error): void
}

/** Throws for a value that cannot be sent. A throw in `submit` would leave half of a message on the wire. */
export function createBatch({ queries, prepared, done }: BatchOptions): Batch {
  const values = queries.map((query) => query.values.map(toWire))
  const results: QueryResult[] = []
  let columns: readonly Column[] = []
  let rows: Row[] = []
  let ended = false
  const open = () => {
    columns = prepared.get(queries[results.length]?.name ?? '') ?? []
    rows = []
  }
  const close = (command: string) => {
    const name = queries[results.length]?.name ?? ''
    if (name !== '') prepared.set(name, columns)
    results.push({ rows, command })
    open()
  }
  return {
    submit(wire) {
      open()
      // One write to the network for the whole batch.
      wire.stream.cork()
      for (const [index, query] of queries.entries()) {
        if (!prepared.has(query.name)) prepare(wire, query)
        wire.bind({ statement: query.name, values: values[index] }, true)
        wire.execute(null, true)
      }
      wire.sync()
      wire.stream.uncork()
    },
    handleRowDescription({ fields }) {
      columns = fields.map(({ name, dataTypeID }) => ({ name, parse: parserOf(dataTypeID) }))
    },
    handleDataRow({ fields }) {
      const row: Row = {}
      for (const [index, { name, parse }] of columns.entries()) {
        const text = fields[index]
        row[name] = text === null || text === undefined ? null : parse(text)
      }
      rows.push(row)
    },
    handleCommandComplete: ({ text }) => close(text),
    handleEmptyQuery: () => close(''),
    handleReadyForQuery() {
      if (!ended) done(undefined, results)
      ended = true
    },
    handleError(error) {
      if (!ended) done(error, results)
      ended = true
    },
  }
}

function prepare(wire: Wire, { name, text }: Query): void {
  // The name may exist on the server if the first run failed. Closing a name that does not exist is no error.
  wire.close({ type: 'S', name }, true)
  wire.parse({ name, text, types: [] }, true)
  wire.describe({ type: 'S', name }, true)
}

function toWire(value: Value): string | Buffer | null {
  if (value === null || typeof value === 'string') return value
  if (typeof value === 'number') return String(value)
  if (value instanceof Uint8Array) return Buffer.from(value.buffer, value.byteOffset, value.byteLength)
  throw new TypeError(`a value of type ${typeof value} cannot be stored`)
}

/** By type OID. Values are the same as on SQLite, so a boolean is 1 or 0. */
const PARSERS: ReadonlyMap<number, (text: string) => Value> = new Map<number, (text: string) => Value>([
  [16, (text) => (text === 't' ? 1 : 0)],
  // bytea, as hexadecimal digits after `\x`
  [17, (text) => Buffer.from(text.slice(2), 'hex')],
  // int8, int2, int4, oid, float4, float8, numeric
  ...[20, 21, 23, 26, 700, 701, 1700].map((oid): [number, (text: string) => Value] => [oid, Number]),
])

const asText = (text: string): Value => text

const parserOf = (oid: number): ((text: string) => Value) => PARSERS.get(oid) ?? asText
