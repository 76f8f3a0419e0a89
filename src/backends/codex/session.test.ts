import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { instructionsHash, promptFor, readSession, usedSince, writeSession } from './session.ts'

const count = fc.nat(1e6)
const totals = fc.record({ input: count, output: count }, { noNullPrototype: true })

test('AG-13 AG-2 a session token is read as it was written; another text is a lost session, never a new one', () => {
  fc.assert(
    fc.property(fc.uuid(), totals, fc.string(), (thread, used, instructions) => {
      const session = { thread, totals: used, instructions }
      assert.deepEqual(readSession(writeSession(session)), session)
      assert.equal(readSession(thread)?.thread, thread)
    }),
    { numRuns: 200 },
  )
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (token) => {
      assert.throws(() => readSession(token), { code: 'session_lost' })
    }),
    { numRuns: 200 },
  )
  assert.equal(readSession(undefined), undefined)
})

test('AG-13 AG-2 a turn used the difference of the thread’s tokens, or all of them after a new count', () => {
  fc.assert(
    fc.property(totals, count, count, (before, input, output) => {
      const later = { input: before.input + input, output: before.output + output }
      assert.deepEqual(usedSince(before, later), { inputTokens: input, outputTokens: output })
      const anew = { ...before, input: Math.floor(before.input / 2) }
      const used = usedSince(before, anew)
      assert.ok(used.inputTokens >= 0 && used.outputTokens >= 0)
    }),
    { numRuns: 200 },
  )
})

test('AG-2 a resumed thread gets a system prompt that changed, and no other', () => {
  const session = { thread: 't', totals: { input: 0, output: 0 }, instructions: instructionsHash('old') }
  assert.equal(promptFor('hi', 'old', session), 'hi')
  assert.equal(promptFor('hi', 'new', undefined), 'hi')
  assert.match(promptFor('hi', 'new', session), /instructions .* have changed. They are now:\n\nnew\n\n---\n\nhi$/)
  assert.match(promptFor('hi', '', session), /no longer apply/)
})
