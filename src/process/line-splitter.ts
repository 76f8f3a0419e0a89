/**
 * Splits bytes into lines at `\n` and drops a `\r` before it. A character that spans two chunks stays whole.
 * Invariant: the buffer holds at most one line of `lineBytesMax`; after a longer line it emits nothing more.
 */

const NEWLINE = 0x0a
const RETURN = 0x0d

export interface LineSplitter {
  /** False once a line is longer than the limit; from then on no line is emitted. */
  push(chunk: Uint8Array): boolean
  /** Emits the bytes after the last newline as a line. */
  end(): void
}

export function createLineSplitter(lineBytesMax: number, onLine: (line: string) => void): LineSplitter {
  let held: Uint8Array[] = []
  let heldBytes = 0
  let over = false
  const emit = (last: Uint8Array) => {
    const whole = held.length === 0 ? last : Buffer.concat([...held, last])
    held = []
    heldBytes = 0
    const line = whole.at(-1) === RETURN ? whole.subarray(0, -1) : whole
    onLine(Buffer.from(line.buffer, line.byteOffset, line.byteLength).toString('utf8'))
  }
  const tooLong = (bytes: number): boolean => {
    over = heldBytes + bytes > lineBytesMax
    if (over) held = []
    return over
  }
  return {
    push(chunk) {
      let start = 0
      while (!over) {
        const at = chunk.indexOf(NEWLINE, start)
        const piece = chunk.subarray(start, at < 0 ? chunk.length : at)
        if (tooLong(piece.length)) break
        if (at < 0) {
          if (piece.length > 0) held.push(piece)
          heldBytes += piece.length
          return true
        }
        emit(piece)
        start = at + 1
      }
      return !over
    },
    end() {
      if (!over && heldBytes > 0) emit(new Uint8Array())
    },
  }
}
