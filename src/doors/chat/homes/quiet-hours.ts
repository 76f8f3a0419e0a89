/** Quiet hours: times of the day at which a home chat gets only what a running turn waits for. */
import { DAY_MS, MINUTE_MS } from '../../../duration.ts'
import { MoleculeError } from '../../../errors.ts'
import type { HomeChat, QuietHours } from '../store/home-chats.ts'

const DAY_MINUTES = DAY_MS / MINUTE_MS
const TEXT_CHARACTERS_MAX = 100
const DEFAULT_ZONE = 'UTC'

/** Of `22:00-07:00 Europe/Berlin`. Throws `invalid_request` with one sentence. */
export function readQuietHours(text: string): QuietHours {
  const [hours = '', timeZone = DEFAULT_ZONE, ...more] = text.slice(0, TEXT_CHARACTERS_MAX).trim().split(/\s+/)
  const [, ...given] = /^(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})$/.exec(hours) ?? []
  const [fromHour = 24, from = 0, untilHour = 24, until = 0] = given.map(Number)
  if (Math.max(fromHour, untilHour) > 23 || Math.max(from, until) > 59 || more.length > 0)
    throw new MoleculeError('invalid_request', 'give quiet hours as "22:00-07:00 Europe/Berlin"')
  const [fromMinute, untilMinute] = [fromHour * 60 + from, untilHour * 60 + until]
  if (fromMinute === untilMinute) throw new MoleculeError('invalid_request', 'quiet hours need an end')
  minuteOfDay(0, timeZone)
  return { fromMinute, untilMinute, timeZone }
}

export const quietHoursText = ({ fromMinute, untilMinute, timeZone }: QuietHours): string =>
  `${clockText(fromMinute)} to ${clockText(untilMinute)} (${timeZone})`

const clockText = (minute: number): string =>
  [Math.floor(minute / 60), minute % 60].map((part) => String(part).padStart(2, '0')).join(':')

/** How long until the quiet hours of a chat end, the longest of its people; 0 outside of them. */
export const quietMs = (homes: readonly Pick<HomeChat, 'quiet'>[], nowMs: number): number =>
  Math.max(0, ...homes.map(({ quiet }) => (quiet === undefined ? 0 : leftMs(quiet, nowMs))))

/** Where the clocks change meanwhile, it is asked again at the end. */
function leftMs({ fromMinute, untilMinute, timeZone }: QuietHours, nowMs: number): number {
  const now = minuteOfDay(nowMs, timeZone)
  const isQuiet =
    fromMinute < untilMinute ? now >= fromMinute && now < untilMinute : now >= fromMinute || now < untilMinute
  if (!isQuiet) return 0
  return ((untilMinute - now + DAY_MINUTES) % DAY_MINUTES) * MINUTE_MS - (nowMs % MINUTE_MS)
}

function minuteOfDay(atMs: number, timeZone: string): number {
  try {
    const format = new Intl.DateTimeFormat('en', { timeZone, hour: '2-digit', minute: '2-digit', hourCycle: 'h23' })
    const parts = new Map(format.formatToParts(atMs).map(({ type, value }) => [type, Number(value)]))
    return (parts.get('hour') ?? 0) * 60 + (parts.get('minute') ?? 0)
  } catch (cause) {
    const message = `there is no time zone ${JSON.stringify(timeZone)}; use a name such as UTC or Europe/Berlin`
    throw new MoleculeError('invalid_request', message, { cause })
  }
}
