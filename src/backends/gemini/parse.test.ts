import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readSample } from '../../../test/fakes/agents/fake-agent.ts'
import { exited, makeParserOptions, readAll } from '../../../test/fakes/agents/line-parsers.ts'
import { streamedText } from '../../../test/fakes/turns.ts'
import { createGeminiParser } from './parse.ts'

const RUNS = { numRuns: 200 }
const sessionId = fc.uuid()
const createParser = (given = {}) => createGeminiParser(makeParserOptions({ backend: 'gemini', ...given }))
const lines = (...events: readonly object[]) => events.map((event) => JSON.stringify(event)).join('\n')

test('AG-13 gemini property 6: text and session are read, in whatever pieces the text comes', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme', minLength: 1 }), { minLength: 1 }), sessionId, (pieces, id) => {
      const output = lines(
        { type: 'init', session_id: id },
        { type: 'message', role: 'user', content: 'not this' },
        ...pieces.map((content) => ({ type: 'message', role: 'assistant', content, delta: true })),
        { type: 'result', status: 'success', stats: { input_tokens: 7, output_tokens: 3 } },
      )
      const events = readAll(createParser(), output)
      const text = pieces.join('')
      assert.deepEqual(events[0], { type: 'session', token: `token of ${id}` })
      assert.equal(streamedText(events), text)
      assert.deepEqual(events.at(-1), { type: 'done', parts: [{ text }], finality: 'completed' })
      assert.deepEqual(events.at(-2), { type: 'usage', inputTokens: 7, outputTokens: 3 })
    }),
    RUNS,
  )
})

test('AG-13 gemini property 8: an exit without a known code is an error that contains stderr', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), fc.stringMatching(/^[a-z ]{1,60}$/), (code, stderr) => {
      const end = createParser().conclude(exited(code, `[${stderr}]`), '')
      assert.ok(end.type === 'failed' && end.error.message.includes(`[${stderr}]`))
    }),
    RUNS,
  )
})

test('a recorded run of gemini gives its text and usage', () => {
  const events = readAll(createParser(), readSample('gemini/stream-json-success.jsonl'))
  assert.equal(streamedText(events), 'ok n=1 last=─sys2.txt </session_context> hello two')
  assert.deepEqual(events.at(-2), { type: 'usage', inputTokens: 20, outputTokens: 10 })
})

test('a recorded tool of gemini starts and finishes', () => {
  const events = readAll(createParser(), readSample('gemini/stream-json-tool.jsonl'))
  const tools = events.filter(({ type }) => type === 'tool')
  assert.deepEqual(tools, [
    { type: 'tool', name: 'run_shell_command', subject: 'touch touched', state: 'started' },
    { type: 'tool', name: 'run_shell_command', subject: 'touch touched', state: 'finished' },
  ])
  assert.equal(streamedText(events), 'touch done')
})

test('AG-16 the reply names a tool that gemini was not allowed to use', () => {
  const output = lines(
    { type: 'tool_use', tool_name: 'write_file', tool_id: 'a' },
    { type: 'tool_result', tool_id: 'a', status: 'error', error: { type: 'policy_violation', message: 'no' } },
    { type: 'message', role: 'assistant', content: 'I could not.' },
    { type: 'result', status: 'success' },
  )
  assert.equal(streamedText(readAll(createParser(), output)), 'I could not.\n\n(Not allowed in this turn: write_file.)')
})

test('RT-6 a one-shot gemini is ended at its second refused call, with the reason of its log', () => {
  for (const [line, code] of [
    ['Attempt 1 failed: You exceeded your current quota, please check your plan.', 'rate_limited'],
    ['Attempt 2 failed with status 503. Retrying with backoff... Error: busy', 'overloaded'],
    ['Attempt 2 failed with 5xx error. Retrying with backoff...', 'provider_failed'],
    ['Attempt 3 failed. Retrying with backoff... TypeError: fetch failed', 'provider_unreachable'],
  ] as const) {
    const parser = createParser()
    assert.equal(parser.readError?.(line)[0]?.type, 'status')
    assert.deepEqual(parser.readError?.('at Object.<anonymous> (app.js:1)'), [])
    const [end] = parser.readError?.(line) ?? []
    assert.ok(end?.type === 'failed')
    assert.deepEqual([end.error.code, end.error.retryable], [code, true], line)
  }
})

for (const [status, code, retryable] of [
  [400, 'bad_request', false],
  [401, 'auth_failed', false],
  // Only its exit code tells the status.
  [429, 'rate_limited', true],
] as const) {
  test(`gemini's recorded error ${status} is ${code}`, () => {
    const end = readAll(
      createParser(),
      readSample(`gemini/stream-json-error-${status}.jsonl`),
      exited(status % 256),
    ).at(-1)
    assert.ok(end?.type === 'failed')
    assert.deepEqual([end.error.code, end.error.retryable], [code, retryable])
    assert.match(end.error.message, new RegExp(`fake ${status}`))
  })
}

test("gemini's 429 sets the delay of the retry", () => {
  const body = JSON.stringify({ error: { code: 429, message: 'Quota exceeded. Please retry in 37s.' } })
  const output = lines({ type: 'result', status: 'error', error: { message: `[API Error: ${body}]` } })
  const end = readAll(createParser(), output, exited(173)).at(-1)
  assert.ok(end?.type === 'failed')
  assert.deepEqual([end.error.code, end.error.details['resetAfterMs']], ['rate_limited', 37_000])
})

test("gemini's exit codes: 42 with a session is session_lost, 41 not logged in, 53 turns, 55 trust", () => {
  const stderr = readSample('gemini/unknown-session-a.stderr')
  const codeOf = (exitCode: number, given = {}) => {
    const end = createParser(given).conclude(exited(exitCode, stderr), '')
    return end.type === 'failed' ? end.error.code : end.type
  }
  assert.equal(codeOf(42, { sessionId: '11111111-2222-3333-4444-555555555555' }), 'session_lost')
  assert.equal(codeOf(42), 'exit')
  assert.equal(codeOf(41), 'auth_failed')
  assert.equal(codeOf(53), 'max_turns')
  assert.equal(codeOf(55), 'bad_config')
  assert.equal(codeOf(0), 'empty_response')
  assert.equal(codeOf(429 - 256), 'rate_limited')
  assert.equal(codeOf(500 - 256), 'provider_failed')
})
