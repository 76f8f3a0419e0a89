/**
 * Stdout as a reply, byte for byte: valid UTF-8 is text, anything else is a file of bytes. While it comes it is
 * streamed as text deltas, cut only between characters. Invariant: where the reply is text, the deltas joined are it.
 */
import type { Part } from '../../protocol/a2a.ts'
import type { BackendEvent } from '../backend.ts'

/** Throws at what is not UTF-8, and keeps a byte order mark, which is part of what was printed. */
const STRICT = { fatal: true, ignoreBOM: true } as const

export function replyPart(stdout: Uint8Array): Part {
  try {
    return { text: new TextDecoder('utf-8', STRICT).decode(stdout) }
  } catch {
    return { raw: Buffer.from(stdout).toString('base64'), mediaType: 'application/octet-stream' }
  }
}

/** For one process: holds the beginning of a character until the rest has come. */
export function createDeltaReader(): (chunk: Uint8Array) => readonly BackendEvent[] {
  const decoder = new TextDecoder('utf-8', STRICT)
  let isText = true
  return (chunk) => {
    if (!isText) return [{ type: 'activity' }]
    try {
      const delta = decoder.decode(chunk, { stream: true })
      return delta === '' ? [{ type: 'activity' }] : [{ type: 'text', delta }]
    } catch {
      // The reply will be a file; text made of its bytes would be garbage.
      isText = false
      return [{ type: 'activity' }]
    }
  }
}
