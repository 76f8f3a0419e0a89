import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { createTokenMask, maskTokens } from './token-mask.ts'

const TOKEN = `mol_${'aB3_-'.repeat(9).slice(0, 43)}`
const CONVERSATION = `mol_conversation_ws_${'0'.repeat(26)}_${'1'.repeat(26)}_3_41_bridge_${'x'.repeat(43)}`

test('PL-12 tokens are masked in every text of a value, and a value without a token is not copied', () => {
  const clean = { parts: [{ text: 'mol_weight, molecule, m' }], metadata: { a: [1, null, true] } }
  assert.equal(maskTokens(clean), clean)
  const parts = [{ text: `it is ${TOKEN}.` }, { data: { env: [`X=${CONVERSATION}`, `{"a":"\\n${TOKEN}"}`] } }]
  assert.deepEqual(maskTokens({ parts, n: 1 }), {
    parts: [{ text: 'it is [hidden].' }, { data: { env: ['X=[hidden]', '{"a":"\\n[hidden]"}'] } }],
    n: 1,
  })
  assert.equal(parts[0]?.text, `it is ${TOKEN}.`, 'the given value is unchanged')
})

test('PL-12 a value that is nested without end does not overflow the stack', () => {
  let deep: unknown = 1
  for (let level = 0; level < 100_000; level++) deep = [deep]
  assert.equal(maskTokens(deep), deep)
})

test('PL-12 a token that comes in pieces is masked, however it is cut', () => {
  const words = fc.constantFrom(TOKEN, CONVERSATION, 'mol_weight ', 'm', 'mo', ' mol', 'system ', '\n', ' and ')
  fc.assert(
    fc.property(fc.array(words, { maxLength: 12 }), fc.array(fc.nat(400), { maxLength: 20 }), (list, cuts) => {
      const text = `${list.join(' ')} end.`
      const mask = createTokenMask()
      const places = [0, ...cuts.filter((cut) => cut < text.length).sort((a, b) => a - b), text.length]
      const pieces = places.slice(1).map((to, index) => mask(text.slice(places[index], to)))
      assert.equal(pieces.join(''), maskTokens(text))
      assert.ok(!pieces.join('').includes(TOKEN))
    }),
  )
})

test('PL-12 a long word that begins like a token is not held back without end', () => {
  const mask = createTokenMask()
  assert.equal(mask('mol_'), '')
  assert.equal(mask('x'.repeat(600)), '[hidden]')
  assert.equal(mask(' then'), ' then')
})
