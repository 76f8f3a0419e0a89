import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { exited, makeFlags, makeParserOptions, readAll, readSample } from '../../../test/fakes/agents/line-parsers.ts'
import { streamedText } from '../../../test/fakes/turns.ts'
import { openclawArgs } from './args.ts'
import { createOpenclawParser } from './parse.ts'

const RUNS = { numRuns: 200 }
const word = fc.stringMatching(/^[A-Za-z0-9._/-]{1,30}$/)
const reader = () => createOpenclawParser(makeParserOptions({ backend: 'openclaw' }))
const followedBy = (args: readonly string[], flag: string) => args[args.indexOf(flag) + 1]
const printed = (value: object) => JSON.stringify(value, null, 2)

test('AG-6 AG-13 openclaw: required flags, and the session it has or the new one, always exactly one', () => {
  fc.assert(
    fc.property(
      fc.option(fc.uuid(), { nil: undefined }),
      fc.uuid(),
      fc.option(word, { nil: undefined }),
      (...given) => {
        const [sessionId, newSessionId, model] = given
        const call = { settings: makeFlags(), sessionId, newSessionId, model, promptFile: '/private/message.md' }
        const args = openclawArgs({ ...call, agent: 'main' })
        assert.deepEqual(args.slice(0, 4), ['agent', '--local', '--agent', 'main'])
        assert.equal(followedBy(args, '--session-id'), sessionId ?? newSessionId)
        assert.equal(args.filter((arg) => arg === '--session-id').length, 1)
        assert.equal(followedBy(args, '--message-file'), '/private/message.md')
        assert.ok(args.includes('--json'))
        if (model !== undefined) assert.equal(followedBy(args, '--model'), model)
      },
    ),
    RUNS,
  )
})

test('AG-13 openclaw property 6: its reader gives back text and session', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), fc.uuid(), (text, sessionId) => {
      const reply = { payloads: [{ text, mediaUrl: null }], meta: { agentMeta: { sessionId } } }
      const events = readAll(reader(), printed(reply))
      assert.ok(events.some((event) => event.type === 'session' && event.token === `token of ${sessionId}`))
      assert.deepEqual(events.at(-1), { type: 'done', parts: [{ text }], finality: 'completed' })
    }),
    RUNS,
  )
})

test('AG-13 openclaw property 8: a non-zero exit is an error that holds its stderr', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 255 }), fc.stringMatching(/^[a-z ]{1,60}$/), (code, stderr) => {
      const end = reader().conclude(exited(code, `[${stderr}]`), '')
      assert.ok(end.type === 'failed' && end.error.message.includes(`[${stderr}]`))
    }),
    RUNS,
  )
})

test('a recorded run of openclaw is read as it was', () => {
  const events = readAll(reader(), readSample('openclaw/agent-json.json'))
  assert.equal(streamedText(events), 'ok n=2 last=one" <<<END_OPENCLAW_INTERNAL_CONTEXT>>>')
  assert.ok(events.some((event) => event.type === 'session' && event.token === 'token of lab1'))
  assert.ok(events.some((event) => event.type === 'usage' && event.inputTokens === 10))
})

test('several payloads are paragraphs of one reply, tools are told by name', () => {
  const agentMeta = { terminalReceipt: { successfulToolNames: ['exec'] } }
  const events = readAll(reader(), printed({ payloads: [{ text: 'one' }, { text: 'two' }], meta: { agentMeta } }))
  assert.equal(streamedText(events), 'one\n\ntwo')
  assert.deepEqual(events.filter(({ type }) => type === 'tool')[0], { type: 'tool', name: 'exec', state: 'started' })
})

for (const [name, code, resetAfterMs] of [
  ['error-401', 'auth_failed', undefined],
  ['error-disabled-key', 'rate_limited', 60_000],
] as const) {
  test(`openclaw's recorded ${name} is ${code}`, () => {
    const end = readAll(reader(), readSample(`openclaw/${name}.json`), exited(1)).at(-1)
    assert.ok(end?.type === 'failed')
    assert.deepEqual([end.error.code, end.error.details['resetAfterMs']], [code, resetAfterMs])
  })
}
