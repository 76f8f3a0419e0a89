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
  const start = Buffer.from(key.slice(0, KEY_BYTES)).subarray(0, KEY_BYTES)
  const name = JSON.stringify([workspaceId, principal, key])
  return Buffer.concat([start, hash('sha256', name, 'buffer').subarray(0, HASH_BYTES)])
}
