import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { mapResult, toChatResult } from './chat-result.ts'

const result = fc.record(
  { responseText: fc.string(), sessionId: fc.string({ minLength: 1 }), isError: fc.boolean() },
  { requiredKeys: ['isError'] },
)

test('AG-13 GW-3 property 9: an error has no answer, an answer has no error, and the target is always set', () => {
  fc.assert(
    fc.property(result, fc.string(), (given, target) => {
      const mapped = mapResult(given, target)
      assert.equal(mapped.targetChannelId, target)
      if (given.isError) {
        assert.deepEqual(Object.keys(mapped).sort(), ['error', 'targetChannelId'])
        if (given.responseText !== undefined) assert.equal(mapped.error, given.responseText)
        return
      }
      assert.equal(Object.hasOwn(mapped, 'error'), false)
      assert.equal(mapped.responseText, given.responseText)
      assert.equal(mapped.sessionId, given.sessionId)
      assert.equal(Object.hasOwn(mapped, 'sessionId'), given.sessionId !== undefined)
    }),
    { numRuns: 100 },
  )
})

test('GW-3 a failed task is an error; a reply joins its texts, shows data as JSON and files elsewhere as addresses', () => {
  const failed = toChatResult({ state: 'TASK_STATE_FAILED', parts: [{ text: 'it failed' }] }, 'c')
  assert.deepEqual(failed, { targetChannelId: 'c', error: 'it failed' })
  const parts = [{ text: 'see ' }, { text: 'this' }, { data: { a: 1 } }, { url: 'https://x.test/f', filename: 'f' }]
  const done = toChatResult({ state: 'TASK_STATE_COMPLETED', parts }, 'c')
  assert.equal(done.responseText, 'see this\n\n```json\n{\n  "a": 1\n}\n```\n\nf: https://x.test/f')
})
