/**
 * The dedupe key of a message, in one indexed column: the start of its idempotency key, a checksum of the whole key,
 * then a hash of workspace, principal and key. Keys that are time-ordered or counted (ULID, UUIDv7, a chat's own
 * numbers) are then neighbours in the index. A plain hash dirties one index page for each message, a fifth of all pages
 * that a commit writes; random keys (UUIDv4) still pay that. With the checksum, all messages of one key can be found by
 * the key alone. Stored keys must stay valid: a new formula gets a new number in what is hashed, and the old one is
 * looked up as well.
 */
import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { sql, type Transaction } from '../../store/store.ts'

const KEY_BYTES = 16
const CHECKSUM_BYTES = 4
const HASH_BYTES = 12

export interface SenderKey {
  readonly workspaceId: string
  readonly principal: string
  readonly key: string
}

/** The first formula: of a key that the caller named, and of the first message under a message id. */
export function dedupeOf({ workspaceId, principal, key }: SenderKey): Uint8Array {
  return keyAndHash(key, [workspaceId, principal, key])
}

/** Whether the sender's message of this key was admitted before. */
export function* isAdmitted(key: SenderKey): Transaction<boolean> {
  return (yield* sql('select id from messages where dedupe = $1', [dedupeOf(key)])).length > 0
}

/** What makes a message under a used message id another one. Absent: it was sent without. */
export interface LetterContent {
  readonly hash: string
  readonly contextId?: string | undefined
  readonly taskId?: string | undefined
}

/** The second formula: of another message under the same message id. It has the content too. */
export function dedupeOfContent({ workspaceId, principal, key }: SenderKey, content: LetterContent): Uint8Array {
  const { hash: contentHash, contextId = null, taskId = null } = content
  return keyAndHash(key, [2, workspaceId, principal, key, contentHash, contextId, taskId])
}

/**
 * The key of such a message for its agent, which may use it to run a message only once. Two messages under one message id
 * must not have the same.
 */
export const keyOfContent = (key: string, dedupe: Uint8Array): string =>
  `${key}~${Buffer.from(dedupe.subarray(-HASH_BYTES)).toString('hex')}`

function keyAndHash(key: string, hashed: readonly unknown[]): Uint8Array {
  const bytes = Buffer.allocUnsafe(KEY_BYTES + CHECKSUM_BYTES + HASH_BYTES)
  const start = writeKey(bytes, key)
  const sum = hash('sha256', JSON.stringify(hashed), 'binary')
  return bytes.subarray(0, start + bytes.write(sum, start, HASH_BYTES, 'latin1'))
}

/** The range that contains all messages of the key, of every sender. It may contain messages of another key too. */
export function dedupeRange(key: string): readonly [Uint8Array, Uint8Array] {
  const bytes = Buffer.alloc(KEY_BYTES + CHECKSUM_BYTES + HASH_BYTES, 0xff)
  const start = writeKey(bytes, key)
  return [bytes.subarray(0, start), bytes.subarray(0, start + HASH_BYTES)]
}

function writeKey(bytes: Buffer, key: string): number {
  // `write` writes whole characters only, so this part may be shorter than KEY_BYTES.
  return bytes.writeUInt32BE(crc32(key), bytes.write(key, 0, KEY_BYTES))
}
