/**
 * Bytes into lines, for a process that is read line by line: cut at `\n`, a `\r` before it dropped, never inside a
 * character. Invariant: it holds on to no more than one line of `lineBytesMax`; a longer one is an error, said once.
 */

const NEWLINE = 0x0a
const RETURN = 0x0d

export interface LineSplitter {
  /** False when the line being read has passed the limit; from then on nothing is given any more. */
  push(chunk: Uint8Array): boolean
  /** What came after the last newline, as a line. */
  end(): void
}

export function createLineSplitter(lineBytesMax: number, onLine: (line: string) => void): LineSplitter {
  let held: Uint8Array[] = []
  let heldBytes = 0
  let over = false
  const give = (last: Uint8Array) => {
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
        give(piece)
        start = at + 1
      }
      return !over
    },
    end() {
      if (!over && heldBytes > 0) give(new Uint8Array())
    },
  }
}
