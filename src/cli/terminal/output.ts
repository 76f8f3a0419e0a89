/**
 * Output of commands: a table for people, JSON or YAML for programs. Tables and fields drop control characters, because
 * an agent or another user wrote the values and could otherwise drive the reader's terminal.
 */

import { withoutControls } from '../../printable.ts'
import { cutToWidth, widthOf } from './text-width.ts'

export const OUTPUT_FORMATS = ['table', 'json', 'yaml'] as const

export type OutputFormat = (typeof OUTPUT_FORMATS)[number]

export async function render(value: unknown, format: 'json' | 'yaml'): Promise<string> {
  if (format === 'json') return `${JSON.stringify(value, null, 2)}\n`
  const { stringify } = await import('yaml')
  return stringify(value)
}

export interface Column<T> {
  readonly title: string
  readonly of: (row: T) => string | number | null | undefined
  /** Never cut: the value is typed again, such as an id. */
  readonly isWhole?: boolean
}

export interface TableOptions {
  /** The sentence in place of a table without rows. */
  readonly none: string
  /** The width of the terminal; undefined = the reader is no terminal, and nothing is cut. */
  readonly width?: number | undefined
}

/**
 * One line a row under the titles; only the sentence `none` when there are no rows. In a terminal that is too narrow the
 * longest cells are cut with `…`, and a last line names their columns.
 */
export function renderTable<T>(
  rows: readonly T[],
  columns: readonly Column<T>[],
  { none, width }: TableOptions,
): string {
  if (rows.length === 0) return `${none}\n`
  const titles = columns.map(({ title }) => title.toUpperCase())
  const cells = rows.map((row) => columns.map(({ of }) => oneLine(of(row))))
  if (width === undefined) return alignColumns([titles, ...cells])
  // A cell may hold a message of a megabyte; what is beyond the terminal counts as one column.
  const natural = widthsOf([titles, ...cells.map((row) => row.map((cell) => cutToWidth(cell, width + 1)))])
  const limits = fitWidths(natural, { columns, width })
  const shown = cells.map((row) =>
    row.map((cell, column) => (columns[column]?.isWhole === true ? cell : cutToWidth(cell, limits[column] ?? 0))),
  )
  const cut = titles.filter((_, column) => (limits[column] ?? 0) < (natural[column] ?? 0))
  const note = cut.length === 0 ? '' : `cut to the width of this terminal: ${cut.join(', ')}; -o json shows all\n`
  return `${alignColumns([titles, ...shown])}${note}`
}

/** A cut cell keeps at least this much, or its title. A table that is still too wide wraps. */
const CUT_WIDTH_MIN = 12
const GAP = 2

/** Takes from the widest column first, so that all cut columns end with the same width. */
function fitWidths(
  natural: readonly number[],
  { columns, width }: { readonly columns: readonly Column<never>[]; readonly width: number },
): readonly number[] {
  const widths = [...natural]
  const floors = columns.map(({ title, isWhole }, column) =>
    isWhole === true ? (natural[column] ?? 0) : Math.max(title.length, CUT_WIDTH_MIN),
  )
  let over = widths.reduce((sum, one) => sum + one + GAP, -GAP) - width
  for (; over > 0; over--) {
    const spare = widths.map((one, column) => (one > (floors[column] ?? 0) ? one : -1))
    const widest = spare.indexOf(Math.max(...spare))
    if ((spare[widest] ?? -1) < 0) break
    widths[widest] = (widths[widest] ?? 0) - 1
  }
  return widths
}

const widthsOf = (rows: readonly (readonly string[])[]): number[] =>
  (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => widthOf(row[column] ?? ''))))

/** `key  value`, one a line, without the undefined and null values. */
export function renderFields(fields: readonly (readonly [string, string | number | null | undefined])[]): string {
  return alignColumns(
    fields.flatMap(([key, value]) => (value === undefined || value === null ? [] : [[key, oneLine(value)]])),
  )
}

export function alignColumns(rows: readonly (readonly string[])[]): string {
  const widths = widthsOf(rows)
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell + ' '.repeat(Math.max(0, (widths[column] ?? 0) - widthOf(cell))))
      .join(' '.repeat(GAP))
      .trimEnd(),
  )
  return `${lines.join('\n')}\n`
}

function oneLine(value: string | number | null | undefined): string {
  return withoutControls(String(value ?? '')).replaceAll(/\s+/g, ' ')
}

const UNITS = ['B', 'KB', 'MB', 'GB', 'TB']

/** `12.3 KB`. */
export function formatBytes(bytes: number): string {
  const power = Math.min(UNITS.length - 1, bytes === 0 ? 0 : Math.floor(Math.log10(bytes) / 3))
  const value = bytes / 1000 ** power
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${UNITS[power]}`
}
