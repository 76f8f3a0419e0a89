import assert from 'node:assert/strict'
import { test } from 'node:test'
import { z } from 'zod'
import { validateBody } from './validate-body.ts'

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
