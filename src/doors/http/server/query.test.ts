import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { readQuery } from './query.ts'

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
