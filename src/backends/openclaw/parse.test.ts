import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readSample } from '../../../test/fakes/agents/fake-agent.ts'
import { exited, makeParserOptions, readAll } from '../../../test/fakes/agents/line-parsers.ts'
import { streamedText } from '../../../test/fakes/turns.ts'
import { createOpenclawParser } from './parse.ts'

const RUNS = { numRuns: 200 }
const createParser = () => createOpenclawParser(makeParserOptions({ backend: 'openclaw' }))
const printed = (value: object) => JSON.stringify(value, null, 2)

test('AG-13 openclaw property 6: text and session are read', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), fc.uuid(), (text, sessionId) => {
      const reply = { payloads: [{ text, mediaUrl: null }], meta: { agentMeta: { sessionId } } }
      const events = readAll(createParser(), printed(reply))
      assert.ok(events.some((event) => event.type === 'session' && event.token === `token of ${sessionId}`))
      assert.deepEqual(events.at(-1), { type: 'done', parts: [{ text }], finality: 'completed' })
    }),
    RUNS,
  )
})

test('AG-13 openclaw property 8: a non-zero exit is an error that contains stderr', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 255 }), fc.stringMatching(/^[a-z ]{1,60}$/), (code, stderr) => {
      const end = createParser().conclude(exited(code, `[${stderr}]`), '')
      assert.ok(end.type === 'failed' && end.error.message.includes(`[${stderr}]`))
    }),
    RUNS,
  )
})

test('a recorded run of openclaw gives text, session and usage', () => {
  const events = readAll(createParser(), readSample('openclaw/agent-json.json'))
  assert.equal(streamedText(events), 'ok n=2 last=one" <<<END_OPENCLAW_INTERNAL_CONTEXT>>>')
  assert.ok(events.some((event) => event.type === 'session' && event.token === 'token of lab1'))
  assert.ok(events.some((event) => event.type === 'usage' && event.inputTokens === 10))
})

test("AG-6 the session is Molecule's own, although openclaw has another id for it", () => {
  const agentMeta = { sessionId: 'other', sessionFile: 'agent:main:explicit:ours' }
  const events = readAll(createParser(), printed({ payloads: [{ text: 'x' }], meta: { agentMeta } }))
  assert.ok(events.some((event) => event.type === 'session' && event.token === 'token of ours'))
})

test('several payloads become paragraphs of one reply, and tools are reported by name', () => {
  const agentMeta = { terminalReceipt: { successfulToolNames: ['exec'] } }
  const events = readAll(createParser(), printed({ payloads: [{ text: 'one' }, { text: 'two' }], meta: { agentMeta } }))
  assert.equal(streamedText(events), 'one\n\ntwo')
  assert.deepEqual(events.filter(({ type }) => type === 'tool')[0], { type: 'tool', name: 'exec', state: 'started' })
})

test('a recorded turn through the gateway has its result in `result`', () => {
  const events = readAll(createParser(), readSample('openclaw/agent-by-gateway.json'))
  assert.match(streamedText(events), /^ok n=2 /)
  assert.ok(events.some((event) => event.type === 'session' && event.token === 'token of gw1'))
  assert.equal(events.at(-1)?.type, 'done')
})

for (const [name, code, resetAfterMs] of [
  ['error-401', 'auth_failed', undefined],
  ['error-401-by-gateway', 'auth_failed', undefined],
  ['error-disabled-key', 'rate_limited', 60_000],
  ['empty', 'empty_response', undefined],
  ['own-timeout', 'timeout', undefined],
  ['local-refused', 'agent_failed', undefined],
] as const) {
  test(`AG-6 openclaw's recorded ${name} is ${code}`, () => {
    const end = readAll(createParser(), readSample(`openclaw/${name}.json`), exited(1)).at(-1)
    assert.ok(end?.type === 'failed')
    assert.deepEqual([end.error.code, end.error.details['resetAfterMs']], [code, resetAfterMs])
  })
}

test('AG-6 a payload that is marked as an error fails the turn, unless an answer stands beside it', () => {
  const failed = { text: 'exec failed: no such file', isError: true }
  const alone = readAll(createParser(), printed({ payloads: [failed], meta: {} })).at(-1)
  assert.ok(alone?.type === 'failed')
  assert.match(alone.error.message, /no such file/)
  const beside = readAll(createParser(), printed({ payloads: [{ text: 'Done.' }, failed], meta: {} }))
  assert.equal(streamedText(beside), 'Done.\n\nexec failed: no such file')
  assert.equal(beside.at(-1)?.type, 'done')
  const stopped = readAll(createParser(), printed({ status: 'error', result: { payloads: [{ text: 'x' }], meta: {} } }))
  assert.equal(stopped.at(-1)?.type, 'failed')
})
