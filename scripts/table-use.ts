/**
 * Enforces who may name which table in SQL (`tables` and `tableReaders` of `layers.mjs`); a part of `npm run check`. An import
 * table cannot see SQL: a room that reads another room's rows depends on it as much as by an import.
 *
 * Invariant: `checkTables` is pure. It looks for tables in texts and templates that are SQL, never in comments.
 */
import { join } from 'node:path'
import { parseSync, Visitor } from 'oxc-parser'
import { layerTable } from '../layers.mjs'
import { readSources } from './layers.ts'

export interface TableOwners {
  /** The tables of each room. */
  readonly tables: Readonly<Record<string, readonly string[]>>
  /** Rooms that may name every table, and only read. */
  readonly readers: readonly string[]
  /** The tables of other rooms that a file names all the same. */
  readonly tableReaders: Readonly<Record<string, readonly string[]>>
}

export interface TableViolation {
  readonly file: string
  /** One sentence: the problem and what to do instead. */
  readonly message: string
}

/** Where the schema is: it names every table, and belongs to all rooms. */
const MIGRATIONS = 'src/store/migrations/'
const CREATES = /\bcreate table (?:if not exists )?(\w+)/g
const SQL = /\b(?:select|insert into|update|delete from|join)\b/
const WRITES = /\b(?:insert into|update|delete from)\s+([a-z_]+)\b/g
const NAMES = /\b(?:from|join|into|update)\s+([a-z_]+)\b/g

/** All violations, by file. `files` maps paths from the root, with slashes, to their text. */
export function checkTables(
  files: ReadonlyMap<string, string>,
  { tables, readers, tableReaders }: TableOwners,
): TableViolation[] {
  const ownerOf = new Map(Object.entries(tables).flatMap(([room, names]) => names.map((name) => [name, room] as const)))
  const violations: TableViolation[] = []
  const report = (file: string, message: string) => violations.push({ file, message })
  for (const [file, source] of files) {
    if (!file.startsWith('src/') || file.includes('.test.')) continue
    if (file.startsWith(MIGRATIONS)) {
      for (const [, name = ''] of source.matchAll(CREATES)) {
        if (!ownerOf.has(name)) report(file, `the table ${name} has no owner: list it under "tables" in layers.mjs`)
      }
      continue
    }
    if (readers.some((room) => file.startsWith(`${room}/`))) {
      for (const name of [...tablesIn(file, source, WRITES)].filter((each) => ownerOf.has(each))) {
        report(file, `the file writes the table ${name}, and its room only reads: ask ${ownerOf.get(name)}`)
      }
      continue
    }
    const named = [...tablesIn(file, source, NAMES)].filter((name) => ownerOf.has(name))
    const foreign = named.filter((name) => !file.startsWith(`${ownerOf.get(name)}/`))
    const allowed = tableReaders[file] ?? []
    for (const name of foreign.filter((each) => !allowed.includes(each))) {
      const owner = ownerOf.get(name)
      report(
        file,
        `the table ${name} belongs to ${owner}: ask ${owner}, or list the file under "tableReaders" in layers.mjs`,
      )
    }
    for (const name of allowed.filter((each) => !foreign.includes(each))) {
      report(file, `the file does not name the table ${name} any more: take it out of "tableReaders" in layers.mjs`)
    }
  }
  for (const file of Object.keys(tableReaders)) {
    if (!files.has(file)) report(file, 'there is no such file: take it out of "tableReaders" in layers.mjs')
  }
  return violations
}

function tablesIn(file: string, source: string, names: RegExp): Set<string> {
  const found = new Set<string>()
  const look = (text: string) => {
    if (SQL.test(text)) for (const [, name = ''] of text.matchAll(names)) found.add(name)
  }
  new Visitor({
    Literal: ({ value }) => {
      if (typeof value === 'string') look(value)
    },
    TemplateLiteral: ({ quasis }) => look(quasis.map(({ value }) => value.cooked ?? '').join('?')),
  }).visit(parseSync(file, source).program)
  return found
}

if (import.meta.main) {
  const violations = checkTables(readSources(join(import.meta.dirname, '..')), layerTable)
  for (const { file, message } of violations) console.error(`${file} ${message}`)
  if (violations.length > 0) process.exitCode = 1
}
