import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readSample } from '../../../test/fakes/agents/fake-agent.ts'
import { exited, makeParserOptions, readAll } from '../../../test/fakes/agents/line-parsers.ts'
import { streamedText } from '../../../test/fakes/turns.ts'
import { createOpencodeParser } from './parse.ts'

const RUNS = { numRuns: 200 }
const sessionId = fc.stringMatching(/^ses_[A-Za-z0-9]{8,30}$/)
const createParser = (given = {}) => createOpencodeParser(makeParserOptions({ backend: 'opencode', ...given }))
const lines = (...events: readonly object[]) => events.map((event) => JSON.stringify(event)).join('\n')
const textEvent = (id: string, text: string) => ({ type: 'text', sessionID: id, part: { type: 'text', text } })

test('AG-13 opencode property 6: text and session are read', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme', minLength: 1 }), { minLength: 1 }), sessionId, (pieces, id) => {
      const events = readAll(
        createParser(),
        lines({ type: 'step_start', sessionID: id }, ...pieces.map((t) => textEvent(id, t))),
      )
      const text = pieces.join('')
      assert.deepEqual(
        events.filter(({ type }) => type === 'session'),
        [{ type: 'session', token: `token of ${id}` }],
      )
      assert.equal(streamedText(events), text)
      assert.deepEqual(events.at(-1), { type: 'done', parts: [{ text }], finality: 'completed' })
    }),
    RUNS,
  )
})

test('AG-13 opencode property 8: a non-zero exit is an error that contains stderr', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 255 }), fc.stringMatching(/^[a-z ]{1,60}$/), (code, stderr) => {
      const end = createParser().conclude(exited(code, `[${stderr}]`), '')
      assert.ok(end.type === 'failed' && end.error.message.includes(`[${stderr}]`))
    }),
    RUNS,
  )
})

test('recorded runs of opencode give their text and tools, and the tokens of all steps', () => {
  const plain = readAll(createParser(), readSample('opencode/success.jsonl'))
  assert.equal(streamedText(plain), 'ok n=1 last="hello one"')
  const tool = readAll(createParser(), readSample('opencode/mcp-tool.jsonl'))
  assert.deepEqual(
    tool.filter(({ type }) => type === 'tool'),
    [
      { type: 'tool', name: 'lab_ping_tool', subject: '{"text":"pong?"}', state: 'started' },
      { type: 'tool', name: 'lab_ping_tool', subject: '{"text":"pong?"}', state: 'finished' },
    ],
  )
  assert.equal(streamedText(tool), 'tool said: PONG:pong?:v1')
  const usage = tool.findLast(({ type }) => type === 'usage')
  assert.deepEqual(usage, { type: 'usage', inputTokens: 20, outputTokens: 10, costUsd: 0 })
})

test('AG-16 the reply names a denied tool, after which opencode prints nothing and exits with 0', () => {
  const events = readAll(createParser(), readSample('opencode/denied.jsonl'))
  assert.equal(streamedText(events), '(Not allowed in this turn: bash.)')
  assert.equal(events.at(-1)?.type, 'done')
})

for (const [name, code] of [
  ['error-400', 'bad_request'],
  ['error-401', 'auth_failed'],
  ['error-bad-model', 'bad_request'],
] as const) {
  test(`opencode's recorded ${name} is ${code}`, () => {
    const end = readAll(createParser(), readSample(`opencode/${name}.jsonl`), exited(1)).at(-1)
    assert.ok(end?.type === 'failed')
    assert.equal(end.error.code, code)
    assert.match(end.error.message, /fake 4/)
  })
}

test("opencode's 429 sets the delay of the retry from the provider's header", () => {
  const data = { message: 'slow down', statusCode: 429, isRetryable: true, responseHeaders: { 'retry-after': '7' } }
  const end = readAll(createParser(), lines({ type: 'error', error: { name: 'APIError', data } }), exited(1)).at(-1)
  assert.ok(end?.type === 'failed')
  assert.deepEqual([end.error.code, end.error.details['resetAfterMs']], ['rate_limited', 7_000])
})

test('an unknown session, which opencode reports in colours on stderr, is a lost session', () => {
  const end = createParser().conclude(exited(1, readSample('opencode/unknown-session.stderr')), '')
  assert.ok(end.type === 'failed')
  assert.equal(end.error.code, 'session_lost')
})
