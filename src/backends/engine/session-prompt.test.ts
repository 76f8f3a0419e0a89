import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { isSessionId, sessionPromptOf } from './session-prompt.ts'

const sessionId = fc.stringMatching(/^[A-Za-z0-9_][\w.:@/-]{0,60}$/)
const turn = (prompt: string, systemPrompt: string, sessionToken?: string) =>
  sessionPromptOf(sessionToken === undefined ? { prompt, systemPrompt } : { prompt, systemPrompt, sessionToken })

test('AG-13 instructions precede the first prompt, and again only a prompt after they changed', () => {
  const instructions = fc.string({ minLength: 1 }).filter((text) => text.trim() !== '')
  fc.assert(
    fc.property(fc.tuple(fc.string(), instructions, instructions, sessionId), ([prompt, before, after, id]) => {
      const first = turn(prompt, before)
      assert.ok(first.prompt.includes(before.trim()) && first.prompt.endsWith(`\n\n${prompt}`))
      assert.equal(first.sessionId, undefined)
      const second = turn(prompt, before, first.token(id))
      assert.equal(second.prompt, prompt)
      assert.equal(second.sessionId, id)
      const third = turn(prompt, after, second.token(id))
      assert.equal(third.prompt === prompt, after === before)
      assert.equal(third.sessionId, id)
    }),
    { numRuns: 200 },
  )
})

test('a token may hold the start time of its session, and the model to go back to', () => {
  const first = turn('x', '')
  const second = turn('x', '', first.token('ses_1', { begunMs: 1_794_758_569_050 }))
  assert.deepEqual([second.sessionId, second.begunMs, second.usualModel], ['ses_1', 1_794_758_569_050, undefined])
  assert.equal(turn('x', '', first.token('ses_1')).begunMs, undefined)
  // The token of an earlier release.
  assert.equal(turn('x', '', 'none@1794758569050:ses_1').begunMs, 1_794_758_569_050)
  for (const usualModel of ['fake/large', "a:b+c@d 'é", '%', 'x'.repeat(600)]) {
    const facts = turn('x', '', first.token('ses_1', { usualModel }))
    assert.deepEqual([facts.sessionId, facts.begunMs, facts.usualModel], ['ses_1', undefined, usualModel])
  }
  // A name that is too long is left out, and the session is still known.
  for (const usualModel of ['x'.repeat(601), '']) {
    const facts = turn('x', '', first.token('ses_1', { usualModel }))
    assert.deepEqual([facts.sessionId, facts.usualModel], ['ses_1', undefined])
  }
})

test('without instructions the prompt is unchanged', () => {
  const first = turn('hello', '')
  assert.equal(first.prompt, 'hello')
  assert.deepEqual(turn('again', ' \n', first.token('ses_1')).prompt, 'again')
})

test('an unknown token, or an id that looks like a flag, starts a new session', () => {
  for (const token of ['', 'not mine', 'none:', 'none:--resume', 'none:-x', `none:${'x'.repeat(201)}`]) {
    assert.equal(turn('x', '', token).sessionId, undefined, token)
  }
  assert.ok(!isSessionId('--last') && !isSessionId('') && !isSessionId(7) && isSessionId('ses_e21a'))
})
