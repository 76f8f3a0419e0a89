import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { exited, makeParserOptions, readAll } from '../../../test/fakes/agents/line-parsers.ts'
import { streamedText } from '../../../test/fakes/turns.ts'
import { createHermesParser } from './parse.ts'

const RUNS = { numRuns: 200 }
const sessionId = fc.stringMatching(/^2026[0-9]{4}_[0-9]{6}_[0-9a-f]{6}$/)
const createParser = () =>
  createHermesParser(makeParserOptions({ backend: 'hermes', sessionId: '20261115_120000_abcdef' }))
const lines = (...events: readonly object[]) => events.map((event) => JSON.stringify(event)).join('\n')
const result = (given: object) => ({ type: 'result', session_id: 's', exit_code: 0, text: '', ...given })

test('AG-13 hermes property 6: text and session are read, streamed or not', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ minLength: 1 }), { minLength: 1 }), sessionId, fc.boolean(), (...given) => {
      const [pieces, id, isStreamed] = given
      const text = pieces.join('')
      const streamed = isStreamed ? pieces.map((piece) => ({ type: 'text', text: piece })) : []
      const init = { type: 'system', subtype: 'init', session_id: id }
      const tokens = { input: 8, output: 63 }
      const events = readAll(createParser(), lines(init, ...streamed, result({ session_id: id, text, tokens })))
      assert.equal(streamedText(events), text)
      assert.ok(events.some((event) => event.type === 'session' && event.token === `token of ${id}`))
      assert.ok(events.some((event) => event.type === 'usage' && event.inputTokens === 8 && event.outputTokens === 63))
      assert.equal(events.at(-1)?.type, 'done')
    }),
    RUNS,
  )
})

test('AG-13 hermes property 8: a non-zero exit is an error that contains stderr', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 255 }), fc.stringMatching(/^[a-z ]{1,60}$/), (code, stderr) => {
      const end = createParser().conclude(exited(code, `[${stderr}]`), '')
      assert.ok(end.type === 'failed' && end.error.message.includes(`[${stderr}]`))
    }),
    RUNS,
  )
})

for (const [title, event, code] of [
  ['a failed result', result({ exit_code: 1, error: 'HTTP 429: limit, retry after 7 seconds' }), 'rate_limited'],
  [
    'an error that comes as the answer with exit code 0',
    result({ text: 'HTTP 400: {"detail":"no"}' }),
    'provider_failed',
  ],
  ['a refused key', result({ exit_code: 1, error: 'HTTP 401: invalid api key' }), 'auth_failed'],
  ['an empty answer', result({}), 'empty_response'],
] as const) {
  test(`hermes: ${title} is ${code}`, () => {
    const end = readAll(createParser(), lines(event)).at(-1)
    assert.ok(end?.type === 'failed')
    assert.equal(end.error.code, code)
  })
}

test('hermes: an unknown session, reported on stdout or stderr, is a lost session', () => {
  const words = 'Session not found: 20261115_120000_abcdef\nUse a session ID from a previous CLI run.\n'
  for (const end of [createParser().conclude(exited(1, words), ''), createParser().conclude(exited(1), words)]) {
    assert.ok(end.type === 'failed')
    assert.equal(end.error.code, 'session_lost')
  }
})

test('hermes: the reply names a blocked command', () => {
  const blocked = { type: 'tool_result', name: 'terminal', output: 'BLOCKED: User denied.', is_error: true }
  const events = readAll(
    createParser(),
    lines({ type: 'tool_use', name: 'terminal' }, blocked, result({ text: 'Sorry.' })),
  )
  assert.equal(streamedText(events), 'Sorry.\n\n(Not allowed in this turn: terminal.)')
})
