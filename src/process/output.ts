/**
 * Keeps what a child prints within limits: the beginning of stdout, and the end of stderr. Invariant: memory is bounded
 * by the limit (for stderr, plus one chunk), whatever the child prints.
 */

export interface Capture {
  /** Adds a chunk and returns the part of it that is within the limit. */
  push(chunk: Uint8Array): Uint8Array
  /** The output is larger than the limit. */
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
  /** Earlier bytes were dropped. */
  cut(): boolean
  bytes(): Uint8Array
}

/** The default; earlier output is dropped. A failure shows at most the last KiB of it. */
const STDERR_BYTES_KEPT = 16 * 1024

export function createTail(bytesKept: number = STDERR_BYTES_KEPT): Tail {
  const chunks: Uint8Array[] = []
  let size = 0
  let dropped = false
  return {
    push(chunk) {
      chunks.push(chunk)
      size += chunk.length
      // Drops whole chunks only, so that a byte is copied at most once, in `bytes`.
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
