/** Stdout of a plain command as the reply of a turn: the whole of it at the end, and its text while it is printed. */
import type { Part } from '../../../protocol/a2a.ts'
import type { BackendEvent } from '../../backend.ts'
import type { TurnStream } from '../turn-engine.ts'

/** Throws on bytes that are not UTF-8. Keeps a byte order mark, because the command printed it. */
const STRICT = { fatal: true, ignoreBOM: true } as const

/** Stdout as a reply, byte for byte: valid UTF-8 is text, anything else is a file of bytes. */
export function replyPart(stdout: Uint8Array): Part {
  try {
    return { text: new TextDecoder('utf-8', STRICT).decode(stdout) }
  } catch {
    return { raw: Buffer.from(stdout).toString('base64'), mediaType: 'application/octet-stream' }
  }
}

type DeltaEvent = Extract<BackendEvent, { type: 'text' | 'activity' }>

/** Emits what a command prints to the stream of its turn, which fails when a limit of the stream refuses it. */
export function outputTo(stream: Pick<TurnStream, 'emit' | 'fail'>): (chunk: Uint8Array) => void {
  const readDelta = createDeltaReader()
  return (chunk) => {
    try {
      stream.emit(readDelta(chunk))
    } catch (thrown) {
      stream.fail(thrown)
    }
  }
}

/**
 * Streams stdout as text deltas, cut only between characters. One for each process: the decoder keeps the first bytes of
 * a character until the rest arrives. Invariant: if the reply is text, the deltas joined are that text.
 */
export function createDeltaReader(): (chunk: Uint8Array) => DeltaEvent {
  const decoder = new TextDecoder('utf-8', STRICT)
  let isText = true
  return (chunk) => {
    if (!isText) return { type: 'activity' }
    try {
      const delta = decoder.decode(chunk, { stream: true })
      return delta === '' ? { type: 'activity' } : { type: 'text', delta }
    } catch {
      // The reply will be a file of bytes. Text made of those bytes would be garbage.
      isText = false
      return { type: 'activity' }
    }
  }
}
