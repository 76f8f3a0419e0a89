import assert from 'node:assert/strict'
import { test } from 'node:test'
import { quietHoursText, quietMs, readQuietHours } from './quiet-hours.ts'

const MINUTE_MS = 60_000

test('GW-17 quiet hours go over midnight, in their time zone, and end to the second', () => {
  const quiet = readQuietHours('22:00-7:05 Europe/Berlin')
  assert.equal(quietHoursText(quiet), '22:00 to 07:05 (Europe/Berlin)')
  const leftAt = (time: string) => quietMs([{ quiet }], Date.parse(`2026-01-15T${time}Z`))
  // Berlin is an hour ahead of UTC in winter.
  assert.equal(leftAt('20:59:59'), 0)
  assert.equal(leftAt('21:00:00'), (9 * 60 + 5) * MINUTE_MS)
  assert.equal(leftAt('06:04:30'), 30_000)
  assert.equal(leftAt('06:05:00'), 0)
  const noon = readQuietHours('12:00-13:00')
  assert.equal(quietMs([{ quiet: noon }, {}], Date.parse('2026-01-15T12:30:00Z')), 30 * MINUTE_MS)
  assert.equal(quietMs([], 0), 0)
})

test('GW-17 what is no quiet hours is refused with how to give them', () => {
  for (const text of ['', 'at night', '22-7', '24:00-07:00', '22:00-07:60', '22:00-07:00 UTC UTC', '7:00-7:00'])
    assert.throws(() => readQuietHours(text), { code: 'invalid_request' }, text)
  assert.throws(() => readQuietHours('22:00-07:00 Nowhere/Town'), /no time zone/)
})
