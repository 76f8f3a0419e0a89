import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { readQuery } from './query.ts'
import { BODY_BYTES, createRateLimit } from './rate-limit.ts'
import { validateBody } from './validate-body.ts'

test('a flag in a query is true, false or absent, and nothing else', () => {
  const read = (values: Readonly<Record<string, string>>) =>
    readQuery(z.object({ all: z.boolean().default(false) }), values)['all']
  const given: Readonly<Record<string, string>>[] = [{ all: 'true' }, { all: 'false' }, {}]
  assert.deepEqual(given.map(read), [true, false, false])
  for (const all of ['', '1', 'TRUE', 'yes'])
    assert.throws(() => read({ all }), {
      code: 'invalid_request',
      message: 'all must be true or false',
      details: { path: 'all' },
    })
})

test('a number in a query is whole and within its range, or absent', () => {
  const schema = z.object({ limit: z.int().min(2).max(50).optional() })
  const read = (limit?: string) => readQuery(schema, limit === undefined ? {} : { limit })['limit']
  assert.deepEqual([read(), read('2'), read('50'), read('07')], [undefined, 2, 50, 7])
  for (const limit of ['1', '51', '', '2.5', '-2', 'x', '1e1', ' 2'])
    assert.throws(() => read(limit), {
      code: 'invalid_request',
      message: 'limit must be a whole number from 2 to 50',
      details: { path: 'limit' },
    })
})

test('parameters of a query that the endpoint does not name are ignored', () => {
  assert.deepEqual(readQuery(z.object({ after: z.string().optional() }), { after: 'x', more: '1' }), { after: 'x' })
})

test('a bad body is refused with the name of its first bad field', () => {
  const schema = z.strictObject({ name: z.string().min(1), inner: z.object({ count: z.int() }).optional() })
  const refusal = (body: unknown) => {
    try {
      return validateBody(schema, body, 'a token')
    } catch (error) {
      const { code, message, details } = error as { code: string; message: string; details: { path: string } }
      assert.equal(code, 'invalid_request')
      return [message, details.path]
    }
  }
  assert.deepEqual(refusal({ name: 'x' }), { name: 'x' })
  assert.deepEqual(refusal({ name: 'x', nmae: 1, more: 2 }), [
    '"nmae", "more" is not a field of a token; the fields are name, inner',
    'nmae',
  ])
  assert.deepEqual(refusal(7), ['the body must be a JSON object', ''])
  assert.deepEqual(refusal({ name: 'x', inner: { count: 'y' } }), [
    'field "inner.count": must be a number',
    'inner.count',
  ])
})

test('PL-9 the limit of a key counts one for each call, for a minute, and names the time until the next', () => {
  const clock = manualClock()
  const limit = createRateLimit(clock, { timesMax: 3, message: 'three a minute' })
  for (let count = 0; count < 3; count++) limit.count('a')
  clock.advance(59_999)
  assert.throws(() => limit.count('a'), {
    code: 'too_many_requests',
    message: 'three a minute',
    retryable: true,
    details: { retryAfterMs: 1 },
  })
  limit.count('b', 3)
  assert.throws(() => limit.count('b'), { details: { retryAfterMs: 60_000 } })
  clock.advance(1)
  limit.count('a', 2)
  limit.count('a')
  assert.throws(() => limit.count('a'), { details: { retryAfterMs: 60_000 } })
})

test('PL-9 a key with a new window is not the oldest: another key is forgotten first', () => {
  const clock = manualClock()
  const limit = createRateLimit(clock, { timesMax: 1, message: 'one a minute' })
  limit.count('first')
  clock.advance(30_000)
  for (let key = 0; key < 9998; key++) limit.count(`key-${key}`)
  clock.advance(30_000)
  limit.count('first')
  assert.throws(() => limit.count('first'))
  limit.count('last')
  assert.throws(() => limit.count('key-0'), 'ten thousand keys are kept')
  limit.count('one-more')
  assert.throws(() => limit.count('first'))
  limit.count('key-0')
  assert.throws(() => limit.count('key-2'))
})

test('PL-9 a token has 600 requests and 256 MiB a minute', () => {
  const requests = createRateLimit(manualClock())
  for (let count = 0; count < 600; count++) requests.count('a')
  assert.throws(() => requests.count('a'), { message: 'this token has used its 600 requests per minute' })
  const bytes = createRateLimit(manualClock(), BODY_BYTES)
  bytes.count('a', 1)
  bytes.count('a', 256 * 1024 * 1024 - 1)
  assert.throws(() => bytes.count('a', 1), { message: 'this token has sent its 268435456 bytes per minute' })
})
