import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { streamedText } from '../../../test/fakes/turns.ts'
import { createReplyBuilder } from './reply-builder.ts'

test('AG-13 with any text, paragraphs and denials, the deltas joined are the reply', () => {
  const step = fc.oneof(
    fc.string().map((text) => ({ say: text })),
    fc.constant({ pause: true }),
    fc.constantFrom('bash', 'edit').map((tool) => ({ deny: tool })),
  )
  fc.assert(
    fc.property(fc.array(step), (steps) => {
      const answer = createReplyBuilder()
      const events = steps.flatMap((one) => {
        if ('say' in one) return answer.append(one.say)
        if ('deny' in one) answer.addDenied(one.deny)
        else answer.startParagraph()
        return []
      })
      const { last, end } = answer.finish('agent')
      const text = streamedText([...events, ...last])
      if (end.type === 'done') assert.deepEqual(end.parts, [{ text }])
      else assert.deepEqual([end.error.code, text], ['empty_response', ''])
      for (const one of steps) if ('deny' in one) assert.ok(text.includes(one.deny))
    }),
    { numRuns: 300 },
  )
})

test('text after a tool starts a new paragraph, unless the text before ends a line', () => {
  const answer = createReplyBuilder()
  answer.append('one')
  answer.startParagraph()
  answer.append('two\n')
  answer.startParagraph()
  answer.append('three')
  assert.equal(answer.text(), 'one\n\ntwo\nthree')
})

test('blank lines before the reply and before a new paragraph are dropped, in any pieces; an indent stays', () => {
  const answer = createReplyBuilder()
  for (const piece of ['\n', ' \n', '\n', '  one\n\ntwo']) answer.append(piece)
  answer.startParagraph()
  for (const piece of ['\n', '\r\n', 'three']) answer.append(piece)
  assert.equal(answer.text(), '  one\n\ntwo\n\nthree')
})
