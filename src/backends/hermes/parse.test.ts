import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readSample } from '../../../test/fakes/agents/fake-agent.ts'
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

test('hermes: the recorded 401 is auth_failed', () => {
  const end = readAll(createParser(), readSample('hermes/error-401.jsonl'), exited(1)).at(-1)
  assert.ok(end?.type === 'failed')
  assert.equal(end.error.code, 'auth_failed')
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
  ['an error that comes as the answer with exit code 0', result({ text: 'HTTP 400: {"detail":"no"}' }), 'bad_request'],
  ['a refused key', result({ exit_code: 1, error: 'HTTP 401: invalid api key' }), 'auth_failed'],
  [
    'a model that is asked too often',
    result({ text: 'API call failed after 3 retries: HTTP 429: fake 429', tokens: { output: 9 } }),
    'rate_limited',
  ],
  ['an empty answer', result({}), 'empty_response'],
  [
    'a sentence instead of an answer',
    result({ text: '⚠️ No reply: the model returned nothing.', tokens: { output: 3 } }),
    'empty_response',
  ],
] as const) {
  test(`hermes: ${title} is ${code}`, () => {
    const end = readAll(createParser(), lines(event)).at(-1)
    assert.ok(end?.type === 'failed')
    assert.equal(end.error.code, code)
  })
}

test('RT-5 hermes: an unknown session is a lost session, as recorded and in plain words on stdout', () => {
  const stderr = readSample('hermes/unknown-session.stderr')
  const recorded = readAll(createParser(), readSample('hermes/unknown-session.jsonl'), exited(1, stderr)).at(-1)
  for (const end of [recorded, createParser().conclude(exited(1), stderr)]) {
    assert.ok(end?.type === 'failed')
    assert.equal(end.error.code, 'session_lost')
  }
})

test('hermes: the same vague result without that sentence is an error with the text of stderr', () => {
  const events = readAll(
    createParser(),
    readSample('hermes/unknown-session.jsonl'),
    exited(1, 'no disk\nsession_id: x\n'),
  )
  const end = events.at(-1)
  assert.ok(end?.type === 'failed')
  assert.deepEqual(
    [end.error.code, end.error.message],
    ['provider_failed', 'credentials or agent init failed: no disk'],
  )
})

test('hermes: without a setup it fails for good and says why and what to run', () => {
  const end = readAll(createParser(), readSample('hermes/not-configured.jsonl'), exited(1)).at(-1)
  assert.ok(end?.type === 'failed')
  assert.deepEqual([end.error.code, end.error.retryable], ['auth_failed', false])
  assert.match(end.error.message, /no API keys or providers found\. Run "hermes setup"/)
})

test('AG-5 hermes: a recorded reply does not begin with blank lines, and its tools are reported', () => {
  const plain = readAll(createParser(), readSample('hermes/ok.jsonl'))
  assert.equal(streamedText(plain), 'ok n=1 last=hello one')
  const events = readAll(createParser(), readSample('hermes/tool.jsonl'))
  assert.match(streamedText(events), /^tool said: /)
  assert.deepEqual(
    events.filter(({ type }) => type === 'tool'),
    ['started', 'finished'].map((state) => ({
      type: 'tool',
      name: 'terminal',
      subject: 'echo hi > made.txt; pwd',
      state,
    })),
  )
})

test('AG-16 hermes: a blocked command is a failed tool, and the reply names it', () => {
  const recorded = readAll(createParser(), readSample('hermes/blocked.jsonl'))
  assert.match(streamedText(recorded), /\n\n\(Not allowed in this turn: terminal\.\)$/)
  assert.ok(recorded.some((event) => event.type === 'tool' && event.state === 'failed'))
  const blocked = { type: 'tool_result', name: 'terminal', output: 'BLOCKED: User denied.', is_error: false }
  const events = readAll(
    createParser(),
    lines({ type: 'tool_use', name: 'terminal' }, blocked, result({ text: 'Sorry.' })),
  )
  assert.equal(streamedText(events), 'Sorry.\n\n(Not allowed in this turn: terminal.)')
  assert.ok(events.some((event) => event.type === 'tool' && event.state === 'failed'))
})

test('hermes: an answer of the model that begins like an HTTP error is an answer', () => {
  const tokens = { input: 8, output: 20 }
  const events = readAll(createParser(), lines(result({ text: 'HTTP 404: the page does not exist.', tokens })))
  assert.equal(events.at(-1)?.type, 'done')
})
