/**
 * What tells a message from all others, in one indexed column: the beginning of its key, a sum of the whole key, then a
 * hash of workspace, sender and key. Where keys are time-ordered or counted (ULID, UUIDv7, a chat's own numbers) new
 * entries are then neighbours in the index. A bare hash dirties a page of its own for each message, a fifth of all pages
 * that a commit writes; a sender of random keys (UUIDv4) still pays that. With the sum all messages of one key stand
 * together, so that they can be found by the key alone.
 */
import { hash } from 'node:crypto'
import { crc32 } from 'node:zlib'

const KEY_BYTES = 16
const SUM_BYTES = 4
const HASH_BYTES = 12

export interface DedupeInput {
  readonly workspaceId: string
  readonly principal: string
  readonly key: string
}

export function dedupeOf({ workspaceId, principal, key }: DedupeInput): Uint8Array {
  const bytes = Buffer.allocUnsafe(KEY_BYTES + SUM_BYTES + HASH_BYTES)
  const start = writeKey(bytes, key)
  const hashed = hash('sha256', JSON.stringify([workspaceId, principal, key]), 'binary')
  return bytes.subarray(0, start + bytes.write(hashed, start, HASH_BYTES, 'latin1'))
}

/** Between these stand all messages of the key, whoever sent them; one of another key may stand there too. */
export function dedupeRange(key: string): readonly [Uint8Array, Uint8Array] {
  const bytes = Buffer.alloc(KEY_BYTES + SUM_BYTES + HASH_BYTES, 0xff)
  const start = writeKey(bytes, key)
  return [bytes.subarray(0, start), bytes.subarray(0, start + HASH_BYTES)]
}

function writeKey(bytes: Buffer, key: string): number {
  // Whole characters only, so that the key's part may be shorter.
  return bytes.writeUInt32BE(crc32(key), bytes.write(key, 0, KEY_BYTES))
}
