/**
 * Lines at the bottom of a terminal that are redrawn in place, below a text that grows. The text may end in the middle of
 * a line: the cursor stays there, and the live lines are drawn below it and erased before more text is written.
 * Invariant: each live line fits into one row, so that erasing never touches the text.
 */
import { columnsOf, widthOf } from '../terminal/text-width.ts'

export interface LiveArea {
  /** Writes text above the live lines. */
  write(text: string): void
  /** Replaces the live lines; none = nothing is drawn. */
  set(lines: readonly string[]): void
}

export interface LiveAreaOptions {
  readonly write: (text: string) => void
  /** The width of the terminal now. */
  readonly columns: () => number
}

const ERASE_BELOW = '\u001b[J'
const SAVE_CURSOR = '\u001b7'
const RESTORE_CURSOR = '\u001b8'
/** One row down in the same column; scrolls at the last row. */
const DOWN = '\u001bD'

export function createLiveArea({ write, columns }: LiveAreaOptions): LiveArea {
  let lines: readonly string[] = []
  let isDrawn = false
  let isDue = false
  /** The width of the text in the last line. */
  let width = 0
  const erase = (): string => {
    const erased = isDrawn ? ERASE_BELOW : ''
    isDrawn = false
    return erased
  }
  const draw = (): string => {
    // In the last column the cursor waits to wrap. Moving it would let the next character overwrite the last one.
    const isAtEdge = width > 0 && width % columns() === 0
    if (lines.length === 0 || isAtEdge) return ''
    isDrawn = true
    const rows = lines.map((line) => `\r\n${fit(line, columns() - 1)}`).join('')
    // First makes room, because a scroll would move the text away from the saved cursor.
    return `${DOWN.repeat(lines.length)}\u001b[${lines.length}A${SAVE_CURSOR}${rows}${RESTORE_CURSOR}`
  }
  const redraw = () => {
    isDue = false
    const output = `${erase()}${draw()}`
    if (output !== '') write(output)
  }
  return {
    write(text) {
      if (text === '') return
      const plain = text.replaceAll(STYLE, '')
      const lastLine = plain.slice(plain.lastIndexOf('\n') + 1)
      width = (plain.includes('\n') ? 0 : width) + widthOf(lastLine)
      write(`${erase()}${text}`)
      // Once for all pieces of text that are written now.
      if (!isDue && lines.length > 0) setImmediate(redraw)
      isDue ||= lines.length > 0
    },
    set(next) {
      if (next.length === lines.length && next.every((line, index) => line === lines[index]) && isDrawn) return
      lines = next
      redraw()
    },
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: it removes them
const STYLE = /\u001b\[[0-9;]*m/g

/** The text as far as it fits. Styles take no room; they end with the text. */
function fit(text: string, columns: number): string {
  let left = columns
  let fitting = ''
  for (const [piece] of text.matchAll(PIECES)) {
    if (!piece.startsWith('\u001b')) left -= columnsOf(piece)
    if (left < 0) return `${fitting}\u001b[0m`
    fitting += piece
  }
  return fitting
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: it finds them
const PIECES = /\u001b\[[0-9;]*m|[\s\S]/gu
