import assert from 'node:assert/strict'
import test from 'node:test'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { silentLog } from '../../../log.ts'
import { FAILED, limitRefusals, REFUSED, STRANGER_LINES_MAX } from './refusal-log.ts'

function setUp() {
  const clock = manualClock()
  const lines: string[] = []
  const write = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`)
  const log = limitRefusals({ ...silentLog, info: write, warn: write, error: write }, clock)
  return { clock, lines, log }
}

test('RE-7 the first refusals of a minute are logged, the rest become one line per code, then it starts anew', () => {
  const { clock, lines, log } = setUp()
  for (let n = 0; n < 1000; n++) log.info({ code: 'unauthenticated' }, REFUSED)
  for (let n = 0; n < 500; n++) log.info({ code: 'not_found' }, REFUSED)
  assert.equal(lines.length, 2 * STRANGER_LINES_MAX)
  clock.advance(60_000)
  assert.match(lines.at(-2) ?? '', /more requests were refused.*"unauthenticated","count":980/)
  assert.match(lines.at(-1) ?? '', /"not_found","count":480/)
  clock.advance(3600_000)
  assert.equal(lines.length, 2 * STRANGER_LINES_MAX + 2)
  log.info({ code: 'unauthenticated' }, REFUSED)
  assert.match(lines.at(-1) ?? '', /^request refused/)
})

test('RE-7 failures and refusals of callers have a larger limit; other lines have none', () => {
  const { clock, lines, log } = setUp()
  for (let n = 0; n < 200; n++) {
    log.error({ code: 'internal' }, FAILED)
    log.info({ code: 'invalid_request' }, REFUSED)
    log.info({ code: 'unauthenticated' }, 'a subscription was refused')
    log.warn({}, REFUSED)
  }
  const count = (text: string) => lines.filter((line) => line.includes(text)).length
  assert.deepEqual([count('"internal"'), count('"invalid_request"')], [120, 120])
  assert.deepEqual([count('a subscription'), count('{}')], [200, 200])
  clock.advance(60_000)
  assert.match(lines.join('\n'), /"internal","count":80/)
})

test('RE-7 a minute with exactly the limit adds no line, and one more refusal adds a line with its count', () => {
  const { clock, lines, log } = setUp()
  for (let n = 0; n < 20; n++) log.info({ code: 'not_found' }, REFUSED)
  for (let n = 0; n < 21; n++) log.info({ code: 'forbidden' }, REFUSED)
  for (let n = 0; n < 121; n++) log.error({}, FAILED)
  assert.equal(lines.length, 20 + 20 + 120)
  clock.advance(59_999)
  assert.equal(lines.length, 160)
  clock.advance(1)
  const more = 'more requests were refused within a minute; not logged one by one'
  assert.deepEqual(lines.slice(160), [`${more} {"code":"forbidden","count":1}`, `${more} {"count":1}`])
  for (let n = 0; n < 21; n++) log.info({ code: 'not_found' }, REFUSED)
  assert.equal(lines.length, 182)
  clock.advance(60_000)
  assert.equal(lines.at(-1), `${more} {"code":"not_found","count":1}`)
})

test('RE-7 a minute begins with its first refusal, and later refusals do not move its end or that of the next', () => {
  const { clock, lines, log } = setUp()
  const refuse = (times: number) => {
    for (let n = 0; n < times; n++) log.info({ code: 'not_found' }, REFUSED)
    return lines.length
  }
  assert.equal(refuse(21), 20)
  clock.advance(30_000)
  assert.equal(refuse(1), 20)
  clock.advance(30_000)
  assert.match(lines.at(-1) ?? '', /"not_found","count":2/)
  clock.advance(1000)
  assert.equal(refuse(21), 41)
  clock.advance(59_999)
  assert.equal(lines.length, 41)
  clock.advance(1)
  assert.match(lines.at(-1) ?? '', /"not_found","count":1/)
})
