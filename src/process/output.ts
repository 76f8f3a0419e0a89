/**
 * What a child prints, within limits: the beginning of stdout up to a cap, the end of stderr. Both hold on to no more
 * than they keep, however much comes.
 */

export interface Capture {
  /** Takes a chunk and returns what of it was within the cap. */
  push(chunk: Uint8Array): Uint8Array
  /** More came than the cap allows. */
  over(): boolean
  bytes(): Uint8Array
}

export function createCapture(bytesMax: number): Capture {
  const chunks: Uint8Array[] = []
  let size = 0
  let over = false
  return {
    push(chunk) {
      const kept = chunk.subarray(0, bytesMax - size)
      over ||= kept.length < chunk.length
      if (kept.length > 0) chunks.push(kept)
      size += kept.length
      return kept
    },
    over: () => over,
    bytes: () => join(chunks),
  }
}

export interface Tail {
  push(chunk: Uint8Array): void
  /** Something before the kept bytes was dropped. */
  cut(): boolean
  bytes(): Uint8Array
}

/** What is kept of stderr unless its reader asks for another amount. A failure shows the last KiB of it. */
const STDERR_BYTES_KEPT = 16 * 1024

export function createTail(bytesKept: number = STDERR_BYTES_KEPT): Tail {
  const chunks: Uint8Array[] = []
  let size = 0
  let dropped = false
  return {
    push(chunk) {
      chunks.push(chunk)
      size += chunk.length
      // Whole chunks only, so that a byte is moved at most once, when somebody asks for the end.
      for (let first = chunks[0]; first && size - first.length >= bytesKept; first = chunks[0]) {
        dropped ||= first.length > 0
        size -= first.length
        chunks.shift()
      }
    },
    cut: () => dropped || size > bytesKept,
    bytes: () => join(chunks).subarray(Math.max(0, size - bytesKept)),
  }
}

function join(chunks: readonly Uint8Array[]): Uint8Array {
  const [only] = chunks
  return only && chunks.length === 1 ? only : Buffer.concat(chunks)
}
