/**
 * What a person sees at a terminal: the text after all control sequences that our commands use. It is a small terminal with
 * everything that scrolled away above it; an unknown sequence is an error, so that no test passes by ignoring one.
 */
import assert from 'node:assert/strict'

const ESCAPE = '\u001b'
const STYLE_OR_MODE = new RegExp(`^${ESCAPE}\\[(?:[\\d;]*m|\\?\\d+[hl])$`)
const CUT_SEQUENCE = new RegExp(`${ESCAPE}(?:\\[[\\d;?]*)?$`)
const PIECES = new RegExp(`${ESCAPE}(?:\\[[\\d;?]*[A-Za-z]|[78D])|[\\s\\S]`, 'gu')

export interface TerminalScreen {
  write(text: string): void
  /** All lines with those that scrolled away, without spaces and empty lines at their ends. */
  text(): string
}

export function createTerminalScreen({ columns, rows }: { columns: number; rows: number }): TerminalScreen {
  const lines: string[][] = [[]]
  /** The first line of the screen. */
  let top = 0
  let row = 0
  let column = 0
  let saved = { row: 0, column: 0 }
  let rest = ''
  const lineAt = (index: number): string[] => {
    while (lines.length <= index) lines.push([])
    return lines[index] as string[]
  }
  const down = () => {
    if (row === rows - 1) top++
    else row++
    lineAt(top + row)
  }
  const put = (character: string) => {
    if (column === columns) {
      column = 0
      down()
    }
    const line = lineAt(top + row)
    while (line.length < column) line.push(' ')
    line[column++] = character
  }
  const eraseBelow = () => {
    lineAt(top + row).splice(column)
    lines.splice(top + row + 1)
  }
  const eraseLine = () => lineAt(top + row).splice(0)
  const control = (sequence: string, amount: number) => {
    if (STYLE_OR_MODE.test(sequence)) return
    const column0 = Math.max(0, amount - 1)
    const actions: Readonly<Record<string, () => unknown>> = {
      D: sequence === `${ESCAPE}D` ? down : () => (column = Math.max(0, column - amount)),
      B: () => (row = Math.min(rows - 1, row + amount)),
      7: () => {
        saved = { row, column }
      },
      8: () => {
        ;({ row, column } = saved)
      },
      A: () => {
        row = Math.max(0, row - amount)
      },
      C: () => {
        column += amount
      },
      G: () => {
        column = column0
      },
      J: eraseBelow,
      K: eraseLine,
    }
    const action = actions[sequence.at(-1) ?? '']
    assert.ok(action, `the control sequence ${JSON.stringify(sequence)}`)
    action()
  }
  const take = (piece: string) => {
    if (piece === '\n') down()
    else if (piece === '\r') column = 0
    else if (piece.startsWith(ESCAPE)) control(piece, Number(/\d+/.exec(piece)?.[0] ?? 1))
    else if (piece !== '\u0007') put(piece)
  }
  return {
    write(text) {
      rest += text
      // A sequence that is cut waits for its end.
      const whole = rest.replace(CUT_SEQUENCE, '')
      const pieces = whole.matchAll(PIECES)
      rest = rest.slice(whole.length)
      for (const [piece] of pieces) take(piece)
    },
    text: () =>
      lines
        .map((line) => line.join('').trimEnd())
        .join('\n')
        .trimEnd(),
  }
}
