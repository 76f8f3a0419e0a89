import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readEnvelope } from '../../protocol/envelope.ts'
import { claimedHistory, exchangeOf } from './history.ts'

function envelopeOf(history?: unknown) {
  const message = { messageId: 'sent', role: 'ROLE_USER', parts: [{ text: 'hi' }] }
  const metadata = history === undefined ? {} : { metadata: { history } }
  return readEnvelope({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message, ...metadata } })
}
const claimOf = (history: unknown) =>
  claimedHistory(envelopeOf(history)).map(({ role, parts }) => [role, parts[0]?.text])

test('RT-3 the text of a claimed message may be in content, in text or in parts; at most twenty messages count', () => {
  assert.deepEqual(claimOf([{ role: 'agent', content: '~' }]), [['ROLE_AGENT', '~']])
  const claim = [
    { role: 'user', content: null, text: 'one' },
    { role: 'user', content: '', text: 'not this' },
    { role: 'agent', parts: [{ text: 'two' }, { text: 'more' }] },
    { role: 'user', parts: [] },
  ]
  assert.deepEqual(claimOf(claim), [
    ['ROLE_USER', 'one'],
    ['ROLE_AGENT', 'two'],
  ])
  assert.equal(claimOf(Array.from({ length: 25 }, (_, k) => ({ role: 'user', content: `c${k}` }))).length, 20)
})

test('RT-3 a stored message without a reply has a place for it', () => {
  const envelope = JSON.stringify(envelopeOf().raw)
  const sender = JSON.stringify({ kind: 'person', id: '1', name: 'Ada', door: 'http' })
  const replyTo = (state: string) => exchangeOf({ id: 'm', state, envelope, sender, reply: null })[1].parts[0]?.text
  assert.deepEqual(['canceled', 'dead', 'done'].map(replyTo), [
    '(The user cancelled this turn before its end.)',
    '(This turn failed without an answer.)',
    '',
  ])
})

test('RT-3 a history of any shape from the client never breaks a turn', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (history) => {
      const messages = claimedHistory({ ...envelopeOf(), raw: { params: { metadata: { history } } } })
      assert.ok(messages.length <= 20 && messages.every(({ parts }) => parts.length > 0))
    }),
    { numRuns: 300 },
  )
})
