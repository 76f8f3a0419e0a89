/**
 * How a reply is stored with its message: `1:<checksum>:<JSON>`, where 1 is the version of the format. Bytes that changed
 * on the disk are still valid text, and a changed amount or name would be served as the agent's answer. So a reply is
 * checked each time it is read. A text that begins with `{` is of schema 27 or earlier and has no checksum.
 */
import { crc32 } from 'node:zlib'
import { MoleculeError } from '../errors.ts'
import type { Artifact, MessageContent, Metadata, Part } from './a2a.ts'

/** The reply as it is stored with its message. */
export interface StoredReply {
  /** Empty where the reply has only artifacts. */
  readonly parts: readonly Part[]
  readonly metadata?: Metadata
  readonly artifacts: readonly Artifact[]
  /** The status message that the turn ended with, such as a question. It is in the task's history once the task goes on. */
  readonly said?: MessageContent
}

const VERSION = '1:'
const CHECKSUM_END = VERSION.length + 8

/** Measured with a reply of 1 KB: 1.5 us more than the JSON alone; reading it back costs as much. */
export function writeReply(reply: StoredReply): string {
  const json = JSON.stringify(reply)
  return `${VERSION}${checksumOf(json)}:${json}`
}

/** Throws `reply_damaged`, which names the message. */
export function readReply(text: string, messageId: string): StoredReply {
  if (isWhole(text)) {
    try {
      return JSON.parse(text.startsWith('{') ? text : text.slice(CHECKSUM_END + 1)) as StoredReply
    } catch {
      // An old reply has no checksum, but a text that is no JSON was changed as well.
    }
  }
  const details = { messageId }
  throw new MoleculeError('reply_damaged', `${DAMAGED} (message ${messageId})`, { details })
}

/** The reply, or undefined where it is damaged: one damaged reply must not take a list with it. */
export function readReplyIfWhole(text: string, messageId: string): StoredReply | undefined {
  try {
    return readReply(text, messageId)
  } catch (error) {
    if (isReplyDamaged(error)) return undefined
    throw error
  }
}

/** Whether the text is as it was written, as far as its format can tell. */
export const isWhole = (text: string): boolean =>
  text.startsWith('{') ||
  (text.startsWith(VERSION) && text.slice(VERSION.length, CHECKSUM_END) === checksumOf(text.slice(CHECKSUM_END + 1)))

export const isReplyDamaged = (error: unknown): error is MoleculeError =>
  error instanceof MoleculeError && error.code === 'reply_damaged'

export const DAMAGED = 'the stored reply was changed on the disk, so it is not shown'

const checksumOf = (json: string): string => crc32(json).toString(16).padStart(8, '0')
