/**
 * Ids are ULIDs. They are time-ordered, so that new rows land at the end of every index (random ids cost a third of the
 * write throughput), and monotonic within a process, so that they sort in the order of their creation.
 */
import { randomFillSync } from 'node:crypto'

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const TIME_CHARACTERS = 10
const RANDOM_CHARACTERS = 16

let lastMs = -1
/** The last ULID without its last character. Under load, many ids of one millisecond differ only in that character. */
let lastStem = ''
const digits = new Uint8Array(RANDOM_CHARACTERS)
/** One system call fills 256 ids: a call for each id is slow. */
const pool = new Uint8Array(256 * RANDOM_CHARACTERS)
let poolUsed = pool.length

/** A new ULID. Ids of the same millisecond still sort in the order of their creation. */
export function ulid(nowMs: number = Date.now()): string {
  if (nowMs > lastMs) {
    lastMs = nowMs
    drawRandomDigits()
    lastStem = stemOf(lastMs)
  } else if (incrementDigits() < RANDOM_CHARACTERS - 1) {
    lastStem = stemOf(lastMs)
  }
  return lastStem + ALPHABET[digits[RANDOM_CHARACTERS - 1] as number]
}

function drawRandomDigits(): void {
  if (poolUsed === pool.length) {
    randomFillSync(pool)
    poolUsed = 0
  }
  for (let index = 0; index < RANDOM_CHARACTERS; index++) digits[index] = (pool[poolUsed++] as number) & 31
  // Keeps the leading digit low, so that counting up cannot overflow.
  digits[0] = (digits[0] as number) & 15
}

function stemOf(timeMs: number): string {
  let text = encodeTime(timeMs)
  for (const digit of digits.subarray(0, -1)) text += ALPHABET[digit]
  return text
}

/** A lower bound: no ULID made at or after this time sorts before it. */
export function ulidFloor(timeMs: number): string {
  return encodeTime(timeMs) + '0'.repeat(RANDOM_CHARACTERS)
}

/** `ws_<ULID>`: the id of a workspace. */
export const workspaceId = (): string => `ws_${ulid()}`

/** Checked before an id becomes part of a path: no other text may get there. */
export const isWorkspaceId = (text: string): boolean => /^ws_[0-9A-Z]{26}$/.test(text)

function encodeTime(timeMs: number): string {
  let time = Math.max(0, timeMs)
  let text = ''
  for (let index = 0; index < TIME_CHARACTERS; index++) {
    text = ALPHABET[time % 32] + text
    time = Math.floor(time / 32)
  }
  return text
}

/** Counts up by one and returns the leftmost changed index. */
function incrementDigits(): number {
  let index = RANDOM_CHARACTERS - 1
  for (; index > 0 && digits[index] === 31; index--) digits[index] = 0
  digits[index] = (digits[index] as number) + 1
  return index
}
