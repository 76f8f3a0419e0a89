import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nextTime } from './schedules.ts'

test('SC-1 the next time is in the time zone of the schedule', async () => {
  const daily = { cron: '30 9 * * *', timeZone: 'Asia/Tokyo' }
  assert.equal(await nextTime(daily, Date.UTC(2026, 0, 15, 12)), Date.UTC(2026, 0, 16, 0, 30))
})
