/**
 * Durations in Go's syntax (`300ms`, `1.5h`, `2m30s`), which all our time options use. Config and backend options parse
 * them at the edge; inside, a duration is a number of milliseconds.
 * Invariant: this accepts exactly the texts that Go's `time.ParseDuration` accepts, with the same nanoseconds.
 */

export const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS
/** A UTC day: no leap second counts in a time of ours. */
export const DAY_MS = 24 * HOUR_MS

/** A longer text is no duration. It bounds the big-integer arithmetic below. */
const TEXT_CHARACTERS_MAX = 128
const NANOSECONDS_MAX = 2n ** 63n - 1n

const NANOSECONDS_PER_MS = 1_000_000n

const UNITS: ReadonlyMap<string, bigint> = new Map([
  ['ns', 1n],
  ['us', 1_000n],
  // The micro sign and the Greek letter look alike. Go accepts both.
  ['\u00b5s', 1_000n],
  ['\u03bcs', 1_000n],
  ['ms', NANOSECONDS_PER_MS],
  ['s', 1_000_000_000n],
  ['m', 60_000_000_000n],
  ['h', 3_600_000_000_000n],
])

const TERM = /(\d*)(?:(\.)(\d*))?([^\d.]+)/y

/** Milliseconds, or undefined if the text is no duration. A unit is required: `5` and `1,5h` are no durations. */
export function parseDuration(text: string): number | undefined {
  if (text.length > TEXT_CHARACTERS_MAX) return undefined
  const negative = text.startsWith('-')
  const body = negative || text.startsWith('+') ? text.slice(1) : text
  if (body === '0') return 0
  if (body === '') return undefined
  let total = 0n
  TERM.lastIndex = 0
  while (TERM.lastIndex < body.length) {
    const term = TERM.exec(body)
    const nanoseconds = term === null ? undefined : termNanoseconds(term)
    if (nanoseconds === undefined) return undefined
    total += nanoseconds
    if (total > NANOSECONDS_MAX + (negative ? 1n : 0n)) return undefined
  }
  return toMilliseconds(negative ? -total : total)
}

/** Go's form: `1h0m0s`, `1m30s`, `1.5s`, `300ms`, `0s`. Rounded to the nanosecond and limited to Go's 64 bits. */
export function formatDuration(ms: number): string {
  const nanoseconds = toNanoseconds(Math.abs(ms))
  if (nanoseconds === 0n) return '0s'
  const sign = ms < 0 ? '-' : ''
  if (nanoseconds < 1_000n) return `${sign}${nanoseconds}ns`
  if (nanoseconds < NANOSECONDS_PER_MS) return `${sign}${decimal(nanoseconds, 3)}\u00b5s`
  if (nanoseconds < 1_000_000_000n) return `${sign}${decimal(nanoseconds, 6)}ms`
  const minutes = nanoseconds / 60_000_000_000n
  const seconds = `${decimal(nanoseconds % 60_000_000_000n, 9)}s`
  if (minutes === 0n) return sign + seconds
  if (minutes < 60n) return `${sign}${minutes}m${seconds}`
  return `${sign}${minutes / 60n}h${minutes % 60n}m${seconds}`
}

/** For people: `45 s`, `10 min`, `3 h 20 min`. Rounded up. */
export function formatWait(ms: number): string {
  const seconds = Math.max(1, Math.ceil(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.ceil(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const rest = minutes % 60
  return `${Math.floor(minutes / 60)} h${rest === 0 ? '' : ` ${rest} min`}`
}

function termNanoseconds(term: RegExpExecArray): bigint | undefined {
  const [, whole = '', , fraction = '', unitName = ''] = term
  const unit = UNITS.get(unitName)
  if (unit === undefined || (whole === '' && fraction === '')) return undefined
  return BigInt(whole === '' ? 0 : whole) * unit + fractionNanoseconds(fraction, unit)
}

/** Computes as Go does, in floating point from at most 19 digits: `0.3333333333333333333h` is exactly 20 minutes. */
function fractionNanoseconds(fraction: string, unit: bigint): bigint {
  let value = 0n
  let scale = 1
  for (const digit of fraction) {
    const next = value * 10n + BigInt(digit)
    if (next > NANOSECONDS_MAX) break
    value = next
    scale *= 10
  }
  return BigInt(Math.trunc(Number(value) * (Number(unit) / scale)))
}

/** One division would round a long duration off its integer, so whole milliseconds are divided separately. */
function toMilliseconds(nanoseconds: bigint): number {
  return Number(nanoseconds / NANOSECONDS_PER_MS) + Number(nanoseconds % NANOSECONDS_PER_MS) / 1e6
}

function toNanoseconds(ms: number): bigint {
  const limited = Math.min(ms, Number(NANOSECONDS_MAX / NANOSECONDS_PER_MS))
  const wholeMs = Math.trunc(limited)
  return BigInt(wholeMs) * NANOSECONDS_PER_MS + BigInt(Math.round((limited - wholeMs) * 1e6))
}

function withoutZeros(digits: string): string {
  let end = digits.length
  while (digits[end - 1] === '0') end--
  return digits.slice(0, end)
}

/** `value / 10^places` without trailing zeros. */
function decimal(value: bigint, places: number): string {
  const digits = value.toString().padStart(places + 1, '0')
  const fraction = withoutZeros(digits.slice(-places))
  return digits.slice(0, -places) + (fraction === '' ? '' : `.${fraction}`)
}
