import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { exited } from '../../../test/fakes/agents/line-parsers.ts'
import type { MoleculeError } from '../../errors.ts'
import { type ClaudeOutcomeFacts, endOf, failureOfRun } from './outcome.ts'
import { type ClaudeEvent, parseLine, parseResult } from './parse.ts'

const SAMPLES = join(import.meta.dirname, '../../../test/fakes/agents/samples/claude')
const sample = (name: string) => readFileSync(join(SAMPLES, name), 'utf8')
const eventsIn = (name: string): readonly ClaudeEvent[] =>
  sample(name)
    .trim()
    .split('\n')
    .flatMap((line) => parseLine(line) ?? [])
const facts: ClaudeOutcomeFacts = {
  command: 'claude',
  timeout: '5m',
  maxTurns: 25,
  outputBytesMax: 1000,
  nowMs: Date.parse('2026-11-15T12:00:00Z'),
}
const failureIn = (name: string): MoleculeError => {
  const result = parseResult(sample(name))
  assert.ok(result !== undefined)
  const end = endOf(result, facts)
  assert.ok(end.type === 'failed')
  return end.error
}

test('the result of claude 2.1.325 is read from its json: a first turn, a resumed one, and an array', () => {
  const first = parseResult(sample('json-success.json'))
  const second = parseResult(sample('json-resumed.json'))
  assert.equal(first?.sessionId, '4541ee71-e244-48c2-907f-39593267018d')
  assert.equal(second?.sessionId, first.sessionId)
  assert.equal(second.text, 'ok n=2 last=second turn')
  assert.deepEqual([first.isError, first.inputTokens, first.outputTokens], [false, 10, 5])
  // The cost of a session is not the cost of a turn.
  assert.deepEqual([second.costUsd, (second.sessionCostUsd ?? 0) > (first.sessionCostUsd ?? 0)], [undefined, true])
  assert.equal(parseResult(sample('json-verbose-array.json'))?.isError, false)
})

test('a recorded stream has a session first and a result last', () => {
  const events = eventsIn('stream-json-success.jsonl')
  assert.equal(events[0]?.type, 'init')
  const result = events.at(-1)
  assert.ok(result?.type === 'result' && !result.result.isError && result.result.text !== '')
})

test('a recorded tool call starts and ends under its name; this one was denied', () => {
  const events = eventsIn('stream-json-mcp-tool.jsonl')
  const started = events.filter((one) => one.type === 'tool_started')
  const ended = events.filter((one) => one.type === 'tool_ended')
  assert.deepEqual(
    started.map(({ name }) => name),
    ['mcp__lab__ping_tool'],
  )
  assert.deepEqual(
    ended.map(({ id, failed }) => [id, failed]),
    [[started[0]?.id, true]],
  )
})

test('is_error and the status decide about an error, because its subtype is success', () => {
  const codes = ['error-400.json', 'error-401.json', 'error-429.json', 'error-529.json', 'error-bad-model.json'].map(
    (name) => {
      const { code, retryable } = failureIn(name)
      return [code, retryable]
    },
  )
  assert.deepEqual(codes, [
    ['bad_request', false],
    ['auth_failed', false],
    ['rate_limited', true],
    ['overloaded', true],
    ['unknown_model', false],
  ])
})

test('retries inside claude are reported while they happen, and then the failure', () => {
  const events = eventsIn('error-500-with-retries.jsonl')
  const retry = events.find((one) => one.type === 'retrying')
  assert.equal(retry?.text, 'the model provider answered 500: retry 1 of 1 in 1 s')
  const end = events.at(-1)
  assert.ok(end?.type === 'result')
  const outcome = endOf(end.result, facts)
  assert.ok(outcome.type === 'failed' && outcome.error.code === 'provider_failed' && outcome.error.retryable)
})

test('RT-5 an unknown session is lost, read from the result or from stderr alone', () => {
  const event = eventsIn('unknown-session.stream-json.jsonl')[0]
  assert.ok(event?.type === 'result')
  const end = endOf(event.result, facts)
  assert.ok(end.type === 'failed' && end.error.code === 'session_lost')
  assert.equal(failureOfRun(exited(1, sample('unknown-session.json-mode.stderr')), '', facts).code, 'session_lost')
})

test('AG-16 the refusal of claude to bypass permissions as root names the remedies', () => {
  const error = failureOfRun(exited(1, sample('root-refused.stderr')), '', facts)
  assert.equal(error.code, 'bad_config')
  assert.match(error.message, /IS_SANDBOX=1/)
})

test('AG-19 the limit of a plan is a used-up quota, which waits for its reset', () => {
  const limit = parseLine('{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794744000}}')
  assert.deepEqual(limit, [{ type: 'limit', resetsAtMs: 1_794_744_000_000 }])
  const result = parseResult(sample('error-429.json'))
  assert.ok(result !== undefined)
  const end = endOf(result, { ...facts, resetsAtMs: facts.nowMs + 90_000 })
  assert.ok(end.type === 'failed')
  assert.deepEqual([end.error.code, end.error.details['resetAfterMs']], ['quota_exhausted', 90_000])
  // A one-shot prints no event. Recorded with a plan whose limit of five hours was used up.
  const oneShot = endOf({ ...result, text: "You've hit your 5-hour limit · resets 9:49pm (UTC)" }, facts)
  assert.ok(oneShot.type === 'failed')
  const { code, retryable, details } = oneShot.error
  assert.deepEqual([code, retryable, typeof details['resetAfterMs']], ['quota_exhausted', true, 'number'])
})

test('AG-13 property 6: text and session are read in every order of the keys', () => {
  const result = fc.record({ result: fc.string({ minLength: 1, unit: 'grapheme' }), session_id: fc.uuid() })
  fc.assert(
    fc.property(result, fc.constantFrom('first', 'last'), (one, order) => {
      const rest = { type: 'result', is_error: false, subtype: 'success', permission_denials: [] }
      const line = JSON.stringify(order === 'first' ? { ...rest, ...one } : { ...one, ...rest })
      const event = parseLine(line)?.[0]
      assert.ok(event?.type === 'result')
      assert.deepEqual(event.result, parseResult(line))
      assert.deepEqual([event.result.text, event.result.sessionId], [one.result, one.session_id])
      assert.deepEqual(endOf(event.result, facts), {
        type: 'done',
        parts: [{ text: one.result }],
        finality: 'completed',
      })
    }),
  )
})

test('AG-13 text deltas are read unchanged and in order', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme' }), { maxLength: 10 }), (pieces) => {
      const lines = pieces.map((text) => {
        const event = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }
        return JSON.stringify({ type: 'stream_event', event, parent_tool_use_id: null })
      })
      const events = lines.flatMap((line) => parseLine(line) ?? [])
      assert.equal(events.map((one) => (one.type === 'text' ? one.delta : '')).join(''), pieces.join(''))
    }),
  )
})

test('AG-13 property 8: an exit code other than 0 is an error that contains stderr', () => {
  const stderr = fc.stringMatching(/^[a-z ]{1,600}$/)
  fc.assert(
    fc.property(stderr, fc.integer({ min: 1, max: 255 }), (words, code) => {
      const error = failureOfRun(exited(code, words), '', facts)
      assert.ok(error.message.includes(words.trim()))
      assert.ok(error.code !== 'exit' || error.details['exitCode'] === code)
    }),
  )
})

test('AG-13 no output of claude breaks the parser', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.json(),
        fc.jsonValue().map((value) => JSON.stringify({ type: value })),
      ),
      (line) => {
        parseLine(line)
        parseResult(line)
      },
    ),
  )
  for (const type of ['system', 'stream_event', 'assistant', 'user', 'result', 'rate_limit_event', 'control_request']) {
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...KEYS), fc.jsonValue()), (message) => {
        assert.ok(Array.isArray(parseLine(JSON.stringify({ ...message, type }))))
      }),
    )
  }
})

test('output that is no result is an error that says so, and no output is an empty response', () => {
  assert.match(failureOfRun(exited(0, ''), 'hello', facts).message, /^Failed to parse CLI output/)
  assert.equal(failureOfRun(exited(0, ''), ' \n', facts).code, 'empty_response')
})

const KEYS = ['subtype', 'event', 'message', 'result', 'usage', 'request', 'rate_limit_info', 'errors', 'session_id']

test('CV-4 the recorded ends of Write and Edit have the diff of the file', () => {
  const ended = eventsIn('stream-json-edit.jsonl').flatMap((event) =>
    event.type === 'tool_ended' ? [event.diffs] : [],
  )
  const path = '/home/dev/shop/a.txt'
  assert.deepEqual(ended, [
    [{ path, diff: `--- /dev/null\n+++ ${path}\n@@ @@\n+one\n+two\n+three` }],
    [{ path, diff: `--- ${path}\n+++ ${path}\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three` }],
  ])
  const others = eventsIn('stream-json-mcp-tool.jsonl').filter((event) => event.type === 'tool_ended' && event.diffs)
  assert.deepEqual(others, [])
})
