/**
 * What tells a message from all others, in one indexed column: the beginning of its key, then a hash of workspace,
 * sender and key. Where keys are time-ordered or counted (ULID, UUIDv7, a chat's own numbers) new entries are then
 * neighbours in the index. A bare hash dirties a page of its own for each message, a fifth of all pages that a commit
 * writes; a sender of random keys (UUIDv4) still pays that.
 */
import { hash } from 'node:crypto'

const KEY_BYTES = 16
const HASH_BYTES = 16

export interface DedupeName {
  readonly workspaceId: string
  readonly principal: string
  readonly key: string
}

export function dedupeOf({ workspaceId, principal, key }: DedupeName): Uint8Array {
  const bytes = Buffer.allocUnsafe(KEY_BYTES + HASH_BYTES)
  // Whole characters only, so that the key's part may be shorter.
  const start = bytes.write(key, 0, KEY_BYTES)
  const hashed = hash('sha256', JSON.stringify([workspaceId, principal, key]), 'binary')
  return bytes.subarray(0, start + bytes.write(hashed, start, HASH_BYTES, 'latin1'))
}
