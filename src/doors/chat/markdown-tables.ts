/**
 * Turns Markdown tables into code blocks with aligned columns, for services that show no tables. It runs before the
 * splitter, so that a long table is split like other code.
 */
import { readBlocks } from './markdown-blocks.ts'

const DELIMITER_ROW = /^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+\|?[ \t]*$/
/** A wider table gets no padding: its lines wrap on every screen anyway. */
const TABLE_WIDTH_MAX = 100
const CELLS_MAX = 20
/** Looks like a backtick and ends no code block. */
const BACKTICK_LOOKALIKE = 'ˋ'

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
  const delimiter = lines.findIndex(
    (line, index) => index > 0 && isRow(lines[index - 1]) && DELIMITER_ROW.test(line.trimEnd()),
  )
  if (delimiter === -1) return lines.join('')
  const length = lines.slice(delimiter + 1).findIndex((line) => !isRow(line))
  const end = length === -1 ? lines.length : delimiter + 1 + length
  const rows = [lines[delimiter - 1] ?? '', ...lines.slice(delimiter + 1, end)].map(cellsOf)
  const before = lines.slice(0, delimiter - 1).join('')
  return `${before}\`\`\`\n${alignedRows(rows).join('\n')}\n\`\`\`\n${withoutTables(lines.slice(end))}`
}

function isRow(line: string | undefined): boolean {
  return line?.includes('|') ?? false
}

/** The cells as plain text: a code block shows no formatting. */
function cellsOf(row: string): string[] {
  const inner = row
    .trim()
    .replace(/^\|/, '')
    .replace(/(?<!\\)\|$/, '')
  return inner
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
  const columns = Math.max(...rows.map((cells) => cells.length))
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((cells) => width(cells[column] ?? ''))),
  )
  const isWide = widths.reduce((sum, columnWidth) => sum + columnWidth + 3, 0) > TABLE_WIDTH_MAX
  const pad = (cell: string, column: number) =>
    isWide ? cell : cell + ' '.repeat(Math.max((widths[column] ?? 0) - width(cell), 0))
  const [header = '', ...others] = rows.map((cells) => cells.map(pad).join(' | ').trimEnd())
  return [header, widths.map((columnWidth) => '-'.repeat(isWide ? 3 : Math.max(columnWidth, 1))).join('-|-'), ...others]
}

function width(text: string): number {
  return [...text].length
}
