/** Translates the seam's SQL for PostgreSQL: lock clauses leave their comments, and each prepared text gets a name. */
import { createHash } from 'node:crypto'
import { MoleculeError } from '../../errors.ts'
import type { Row, Statement, Transaction, Value } from '../store.ts'
import type { Query } from './batch.ts'

/** A prepared text costs memory on every connection of the server. Texts beyond the limit are parsed each time. */
const PREPARED_TEXTS_MAX = 1000
const NAME_CHARACTERS = 16

export type Translate = (statement: Statement) => Query

export function createTranslator(): Translate {
  const prepared = new Map<string, { readonly name: string; readonly text: string }>()
  return (statement) => {
    const { values } = statement
    const known = prepared.get(statement.text)
    if (known !== undefined) return { name: known.name, text: known.text, values }
    const text = statement.text.replaceAll(/\/\*(for update(?: skip locked)?)\*\//g, '$1')
    if (prepared.size >= PREPARED_TEXTS_MAX) return { name: '', text, values }
    const name = createHash('sha256').update(text).digest('hex').slice(0, NAME_CHARACTERS)
    prepared.set(statement.text, { name, text })
    return { name, text, values }
  }
}

/** Runs the transaction to its next step. Throws its error, and throws for a value that cannot be sent. */
export function advance<T>(steps: Transaction<T>, rows: Row[][]): IteratorResult<readonly Statement[], T> {
  const step = steps.next(rows)
  if (!step.done) for (const { values } of step.value) requireNoNul(values)
  return step
}

/** PostgreSQL cannot store U+0000: the statement would fail, and with it the transaction of many other operations. */
function requireNoNul(values: readonly Value[]): void {
  for (const value of values) {
    if (typeof value === 'string' && value.includes('\0')) {
      throw new MoleculeError('invalid_request', 'a text contains the character U+0000, which cannot be stored')
    }
  }
}
