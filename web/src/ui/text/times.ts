/** Times, durations and amounts as the page writes them. */
import { HOUR_MS, MINUTE_MS } from '../../../../src/duration.ts'

export const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']

const twoDigits = (value: number): string => String(value).padStart(2, '0')

/** `13:58`, in the time zone of the browser. */
export const clockTime = (date: Date): string => `${twoDigits(date.getHours())}:${twoDigits(date.getMinutes())}`

/** "just now", "2 min ago" under an hour, then "13:58" today, then "12 Nov", then "12 Nov 2025". */
export function relativeTime(atMs: number, nowMs: number): string {
  const ageMs = nowMs - atMs
  const at = new Date(atMs)
  const now = new Date(nowMs)
  if (ageMs < MINUTE_MS && ageMs > -MINUTE_MS) return 'just now'
  if (ageMs > 0 && ageMs < HOUR_MS) return `${Math.floor(ageMs / MINUTE_MS)} min ago`
  if (at.toDateString() === now.toDateString()) return clockTime(at)
  const day = `${at.getDate()} ${MONTHS[at.getMonth()]}`
  return at.getFullYear() === now.getFullYear() ? day : `${day} ${at.getFullYear()}`
}

/** A running time: `0:38`, `12:08`, `1:02:03`. */
export function runningTime(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60]
  const rest = twoDigits(seconds % 60)
  return hours > 0 ? `${hours}:${twoDigits(minutes)}:${rest}` : `${minutes}:${rest}`
}

/** How long something took: `820 ms`, `6.2 s`, `2 min`, `3 h 5 min`. */
export function tookTime(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`
  if (ms < MINUTE_MS) return `${Math.round(ms / 1000)} s`
  const minutes = Math.round(ms / MINUTE_MS)
  if (minutes < 60) return `${minutes} min`
  return minutes % 60 === 0 ? `${minutes / 60} h` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** `$0.41`; `$0.004` below a cent; `< $0.001` below that; "unknown" for null. A sum with unknown parts is `≥ $11.42`. */
export function costText(usd: number | null, hasUnknown = false): string {
  if (usd === null) return 'unknown'
  if (usd > 0 && usd < 0.0005) return hasUnknown ? '> $0' : '< $0.001'
  const digits = usd > 0 && usd < 0.01 ? 3 : 2
  return `${hasUnknown ? '≥ ' : ''}$${usd.toFixed(digits)}`
}

/** `1,904`. */
export const countText = (count: number): string => count.toLocaleString('en-US')
