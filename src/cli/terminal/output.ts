/**
 * Output of commands: a table for people, JSON or YAML for programs. Tables and fields drop control characters, because
 * an agent or another user wrote the values and could otherwise drive the reader's terminal.
 */

import { withoutControls } from '../../printable.ts'

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
}

/** One line a row under the titles; only the sentence `none` when there are no rows. */
export function renderTable<T>(rows: readonly T[], columns: readonly Column<T>[], none: string): string {
  if (rows.length === 0) return `${none}\n`
  const titles = columns.map(({ title }) => title.toUpperCase())
  const cells = rows.map((row) => columns.map(({ of }) => oneLine(of(row))))
  return alignColumns([titles, ...cells])
}

/** `key  value`, one a line, without the undefined and null values. */
export function renderFields(fields: readonly (readonly [string, string | number | null | undefined])[]): string {
  return alignColumns(
    fields.flatMap(([key, value]) => (value === undefined || value === null ? [] : [[key, oneLine(value)]])),
  )
}

export function alignColumns(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
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
