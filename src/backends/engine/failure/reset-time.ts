/**
 * Reads from an error text when a rate limit resets: seconds, a duration, a date, an epoch time or a time of day. Pure.
 * If the text has none, the retry table decides the wait.
 */
import { DAY_MS } from '../../../duration.ts'

/** Milliseconds from now; undefined if the text does not say. */
export function parseResetDelayMs(text: string, nowMs: number): number | undefined {
  return afterEpoch(text, nowMs) ?? afterDate(text, nowMs) ?? afterDuration(text) ?? afterTimeOfDay(text, nowMs)
}

/** `Claude AI usage limit reached|1735689600`, `"resets_at": 1735689600` */
function afterEpoch(text: string, nowMs: number): number | undefined {
  const found = /(?:\||reset\w{0,30}["']?\s{0,5}[:=]?\s{0,5}(?:at\s{0,5})?)(\d{10})(?:\d{3})?\b/i.exec(text)
  return found?.[1] === undefined ? undefined : Math.max(0, Number(found[1]) * 1000 - nowMs)
}

const ISO_DATE = /\b(\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)/
/** In local time: codex prints it so when the limit of a plan ends on another day. */
const ENGLISH_DATE = /try again at ([A-Z][a-z]{2} \d{1,2})(?:st|nd|rd|th)(, \d{4} \d{1,2}:\d\d [AP]M)/

/** `resets at 2026-11-15T17:00:00Z`, `try again at Nov 18th, 2026 1:26 AM` */
function afterDate(text: string, nowMs: number): number | undefined {
  const english = ENGLISH_DATE.exec(text)
  const date = english === null ? ISO_DATE.exec(text)?.[1] : `${english[1]}${english[2]}`
  const atMs = date === undefined ? Number.NaN : Date.parse(date)
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs)
}

const UNITS_MS: Readonly<Record<string, number>> = { d: DAY_MS, h: 3600_000, m: 60_000, s: 1000, ms: 1 }
const LEAD = /(?:try again|retry|retry[ -]after|resets?|available|wait)\W{0,3}(?:in|after|for)?\W{0,3}(?=\d)/i
/** One term of a duration. In `1m30s` the next term follows without a space. */
const TERM =
  /(\d+(?:\.\d+)?)\s*(ms|milliseconds?|days?|hours?|hrs?|minutes?|mins?|seconds?|secs?|d|h|m|s)(?![a-z])[\s,]*(?:and\s+)?/iy

/** `try again in 1m30s`, `retry after 20 seconds`, `resets in 3 hours 20 minutes`, `retry-after: 7` */
function afterDuration(text: string): number | undefined {
  const lead = LEAD.exec(text)
  if (lead === null) return undefined
  const rest = text.slice(lead.index + lead[0].length)
  let ms: number | undefined
  TERM.lastIndex = 0
  for (let term = TERM.exec(rest); term !== null; term = TERM.exec(rest)) {
    ms = (ms ?? 0) + Number(term[1]) * unitMs(term[2])
  }
  // A bare number means seconds, as in the HTTP header.
  const bare = ms === undefined ? /^(\d{1,6})\W*$/.exec(rest) : null
  return bare === null ? ms && Math.round(ms) : Number(bare[1]) * 1000
}

function unitMs(unit: string | undefined): number {
  const name = unit?.toLowerCase() ?? ''
  return UNITS_MS[name === 'ms' || name.startsWith('milli') ? 'ms' : name.charAt(0)] ?? 0
}

/** `resets 3pm`, `resets at 11:30 (UTC)`, `try again at 3:26 PM`: the next such time, in local time or UTC. Undefined for another time zone. */
function afterTimeOfDay(text: string, nowMs: number): number | undefined {
  const found = /(?:resets?|try again at)\s+(?:at\s+)?(\d{1,2})(?::(\d\d))?\s*(am|pm)?\s*(\([^)]{1,40}\)|UTC)?/i.exec(
    text,
  )
  if (found === null || (found[2] === undefined && found[3] === undefined)) return undefined
  const zone = found[4]?.replaceAll(/[()]/g, '').toUpperCase()
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone.toUpperCase()
  if (zone !== undefined && zone !== 'UTC' && zone !== own) return undefined
  const hour = (Number(found[1]) % (found[3] === undefined ? 24 : 12)) + (found[3]?.toLowerCase() === 'pm' ? 12 : 0)
  const at = new Date(nowMs)
  if (zone === 'UTC') at.setUTCHours(hour, Number(found[2] ?? 0), 0, 0)
  else at.setHours(hour, Number(found[2] ?? 0), 0, 0)
  const afterMs = at.getTime() - nowMs
  return afterMs >= 0 ? afterMs : afterMs + DAY_MS
}
