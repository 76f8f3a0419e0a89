/**
 * Identifiers of ours: ULIDs, time-ordered, so that new rows land at the end of every index (random ids cost a third
 * of the write throughput), and monotonic within a process, so that order of creation is order of sorting.
 */
import { randomFillSync } from 'node:crypto'

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
const TIME_CHARACTERS = 10
const RANDOM_CHARACTERS = 16

let lastMs = -1
/** The time of `lastMs` as text: under load many ids are made in one millisecond. */
let lastTime = ''
const random = new Uint8Array(RANDOM_CHARACTERS)

/** A new ULID. Two made in the same millisecond still sort in the order they were made. */
export function ulid(nowMs: number = Date.now()): string {
  if (nowMs > lastMs) {
    lastMs = nowMs
    lastTime = encodeTime(nowMs)
    randomFillSync(random)
    for (let index = 0; index < RANDOM_CHARACTERS; index++) random[index] = (random[index] as number) & 31
    // Room to count upwards: a leading digit below the top one cannot overflow.
    random[0] = (random[0] as number) & 15
  } else {
    increment()
  }
  let text = lastTime
  for (const digit of random) text += ALPHABET[digit]
  return text
}

/** No ULID made at or after this time sorts before it. */
export function ulidFloor(timeMs: number): string {
  return encodeTime(timeMs) + '0'.repeat(RANDOM_CHARACTERS)
}

/** `ws_<ULID>`: the id of a workspace. */
export const workspaceId = (): string => `ws_${ulid()}`

function encodeTime(timeMs: number): string {
  let time = Math.max(0, timeMs)
  let text = ''
  for (let index = 0; index < TIME_CHARACTERS; index++) {
    text = ALPHABET[time % 32] + text
    time = Math.floor(time / 32)
  }
  return text
}

function increment(): void {
  for (let index = RANDOM_CHARACTERS - 1; index >= 0; index--) {
    const next = ((random[index] as number) + 1) % 32
    random[index] = next
    if (next !== 0) return
  }
}
