/**
 * Output of commands: a table for people, JSON or YAML for programs. Tables and fields drop control characters, because
 * an agent or another user wrote the values and could otherwise drive the reader's terminal.
 */
import { withoutControls } from '../../printable.ts'
import { cutToWidth, widthOf, wrapToWidth } from './text-width.ts'

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
  /** Goes on in the next line instead of being cut: a sentence whose end says what to do. */
  readonly isWrapped?: boolean
}

export interface TableOptions {
  /** The sentence in place of a table without rows. */
  readonly none: string
  /** The width of the terminal; undefined = the reader is no terminal, and nothing is cut. */
  readonly width?: number | undefined
}

/**
 * One line a row under the titles; only the sentence `none` when there are no rows. In a terminal that is too narrow the
 * longest cells are cut with `…`, and a last line names their columns. Where that is not enough, each row is a block.
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
  const limits = CUT_WIDTHS_MIN.map((min) => fitWidths(natural, { columns, width, min })).find(
    (fit) => fit !== undefined,
  )
  if (limits === undefined) return renderRecords(titles, cells, { columns, width })
  const shown = cells.flatMap((row) => renderRow(row, columns, limits))
  const cut = titles.filter(
    (_, column) => !columns[column]?.isWrapped && (limits[column] ?? 0) < (natural[column] ?? 0),
  )
  return `${alignColumns([titles, ...shown])}${cutNote(cut)}`
}

const cutNote = (titles: readonly string[]): string =>
  titles.length === 0 ? '' : `cut to the width of this terminal: ${titles.join(', ')}; -o json shows all\n`

/** A cut cell keeps at least this much, or its title; the second number is for a terminal that is too narrow for the first. */
const CUT_WIDTHS_MIN = [12, 8]
const GAP = 2

interface FitOptions {
  readonly columns: readonly Column<never>[]
  readonly width: number
  readonly min: number
}

/** Takes from the widest column first, so that all cut columns end with the same width. Undefined: the table is too wide. */
function fitWidths(natural: readonly number[], { columns, width, min }: FitOptions): readonly number[] | undefined {
  const widths = [...natural]
  const floors = columns.map(({ title, isWhole }, column) =>
    isWhole === true ? (natural[column] ?? 0) : Math.max(title.length, min),
  )
  let over = widths.reduce((sum, one) => sum + one + GAP, -GAP) - width
  for (; over > 0; over--) {
    const spare = widths.map((one, column) => (one > (floors[column] ?? 0) ? one : -1))
    const widest = spare.indexOf(Math.max(...spare))
    if ((spare[widest] ?? -1) < 0) return undefined
    widths[widest] = (widths[widest] ?? 0) - 1
  }
  return widths
}

/** The lines of a row: one, or more where a cell is wrapped. */
function renderRow(
  row: readonly string[],
  columns: readonly Column<never>[],
  limits: readonly number[],
): readonly (readonly string[])[] {
  const cells = row.map((cell, column) => {
    const { isWhole, isWrapped } = columns[column] ?? {}
    const limit = limits[column] ?? 0
    if (isWhole === true) return [cell]
    return isWrapped === true ? wrapToWidth(cell, limit) : [cutToWidth(cell, limit)]
  })
  const height = Math.max(...cells.map((lines) => lines.length))
  return Array.from({ length: height }, (_, line) => cells.map((lines) => lines[line] ?? ''))
}

/** A table that fits no narrower, as one field a line and an empty line between its rows. */
function renderRecords(
  titles: readonly string[],
  rows: readonly (readonly string[])[],
  { columns, width }: Omit<FitOptions, 'min'>,
): string {
  const left = Math.max(...CUT_WIDTHS_MIN, width - GAP - Math.max(...titles.map(widthOf)))
  const cut = new Set<string>()
  const records = rows.map((row) =>
    alignColumns(
      titles.flatMap((title, column) => {
        const { isWhole, isWrapped } = columns[column] ?? {}
        const cell = row[column] ?? ''
        const shown = isWhole === true || isWrapped === true ? cell : cutToWidth(cell, left)
        if (shown !== cell) cut.add(title)
        return cell === '' ? [] : [[title, shown]]
      }),
    ),
  )
  return `${records.join('\n')}${cutNote([...cut])}`
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
