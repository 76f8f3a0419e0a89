/**
 * The dedupe key of a message, in one indexed column: the start of its idempotency key, a checksum of the whole key,
 * then a hash of workspace, principal and key. Keys that are time-ordered or counted (ULID, UUIDv7, a chat's own
 * numbers) are then neighbours in the index. A plain hash dirties one index page for each message, a fifth of all pages
 * that a commit writes; random keys (UUIDv4) still pay that. With the checksum, all messages of one key can be found by
 * the key alone.
 */
import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'

const KEY_BYTES = 16
const CHECKSUM_BYTES = 4
const HASH_BYTES = 12

export function dedupeOf(given: {
  readonly workspaceId: string
  readonly principal: string
  readonly key: string
}): Uint8Array {
  const { workspaceId, principal, key } = given
  const bytes = Buffer.allocUnsafe(KEY_BYTES + CHECKSUM_BYTES + HASH_BYTES)
  const start = writeKey(bytes, key)
  const hashed = hash('sha256', JSON.stringify([workspaceId, principal, key]), 'binary')
  return bytes.subarray(0, start + bytes.write(hashed, start, HASH_BYTES, 'latin1'))
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
