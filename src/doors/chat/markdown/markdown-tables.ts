/**
 * Turns Markdown tables into code blocks with aligned columns, for services that show no tables. It runs before the
 * splitter, so that a long table is split like other code.
 */
import { readBlocks } from './markdown-blocks.ts'

/** A wider table gets no padding: its lines wrap on every screen anyway. */
const TABLE_WIDTH_MAX = 100
const CELLS_MAX = 20
/** Looks like a backtick and ends no code block. */
export const BACKTICK_LOOKALIKE = 'ˋ'

export function tablesAsCode(markdown: string): string {
  return readBlocks(markdown)
    .map((block) => (block.type === 'fence' ? fenceSource(block) : withoutTables(block.lines)))
    .join('')
}

/** Replaces backtick runs that a service would read as the border of a code block. The length stays the same. */
export function withoutFenceMarks(text: string): string {
  return text.replaceAll(/`{3,}/g, (run) => BACKTICK_LOOKALIKE.repeat(run.length))
}

function fenceSource({ opener, body, closer }: { opener: string; body: readonly string[]; closer: string }): string {
  return opener + body.join('') + closer
}

function withoutTables(lines: readonly string[]): string {
  const out: string[] = []
  for (let index = 0; index < lines.length; ) {
    const line = lines[index] ?? ''
    if (!isRow(line) || !isDelimiterRow(lines[index + 1] ?? '')) {
      out.push(line)
      index++
      continue
    }
    let end = index + 2
    while (end < lines.length && isRow(lines[end])) end++
    const rows = [line, ...lines.slice(index + 2, end)].map(cellsOf)
    out.push(`\`\`\`\n${alignedRows(rows).join('\n')}\n\`\`\`\n`)
    index = end
  }
  return out.join('')
}

function isRow(line: string | undefined): boolean {
  return line?.includes('|') ?? false
}

/** The line below the header: at least two cells of dashes, as in `|:--|---|`. */
function isDelimiterRow(line: string): boolean {
  const cells = innerRow(line).split('|')
  return cells.length > 1 && cells.every((cell) => /^:?-+:?$/.test(cell.trim()))
}

/** Without the bars at both ends. */
function innerRow(row: string): string {
  const text = row.trim()
  const isClosed = text.length > 1 && text.endsWith('|') && !text.endsWith('\\|')
  return text.slice(text.startsWith('|') ? 1 : 0, isClosed ? -1 : undefined)
}

/** The cells as plain text: a code block shows no formatting. */
function cellsOf(row: string): string[] {
  return innerRow(row)
    .split(/(?<!\\)\|/, CELLS_MAX)
    .map((cell) =>
      cell
        .replaceAll('\\|', '|')
        .replaceAll(/(\*\*|__)(.+?)\1/g, '$2')
        .replaceAll(/`([^`]+)`/g, '$1'),
    )
    .map((cell) => withoutFenceMarks(cell.trim()))
}

function alignedRows(rows: readonly (readonly string[])[]): string[] {
  // A loop: as arguments of one call, the cells of a long table would overflow the stack.
  const widths: number[] = []
  for (const cells of rows)
    for (const [column, cell] of cells.entries()) widths[column] = Math.max(widths[column] ?? 0, width(cell))
  const isWide = widths.reduce((sum, columnWidth) => sum + columnWidth + 3, 0) > TABLE_WIDTH_MAX
  const pad = (cell: string, column: number) =>
    isWide ? cell : cell + ' '.repeat(Math.max((widths[column] ?? 0) - width(cell), 0))
  const [header = '', ...others] = rows.map((cells) => cells.map(pad).join(' | ').trimEnd())
  return [header, widths.map((columnWidth) => '-'.repeat(isWide ? 3 : Math.max(columnWidth, 1))).join('-|-'), ...others]
}

function width(text: string): number {
  return [...text].length
}
