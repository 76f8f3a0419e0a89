import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { exited, makeFlags, makeParserOptions, readAll, readSample } from '../../../test/fakes/agents/line-parsers.ts'
import { streamedText } from '../../../test/fakes/turns.ts'
import { acpArgs, configContent, oneShotArgs } from './args.ts'
import { createOpencodeParser } from './parse.ts'

const RUNS = { numRuns: 200 }
const word = fc.stringMatching(/^[A-Za-z0-9._/-]{1,30}$/)
const sessionId = fc.stringMatching(/^ses_[A-Za-z0-9]{8,30}$/)
const reader = (given = {}) => createOpencodeParser(makeParserOptions({ backend: 'opencode', ...given }))
const followedBy = (args: readonly string[], flag: string) => args[args.indexOf(flag) + 1]
const lines = (...events: readonly object[]) => events.map((event) => JSON.stringify(event)).join('\n')
const said = (id: string, text: string) => ({ type: 'text', sessionID: id, part: { type: 'text', text } })

test('AG-13 opencode property 4: run, json, and the model where there is one; the prompt on stdin', () => {
  fc.assert(
    fc.property(fc.option(word, { nil: undefined }), fc.array(word), (model, args) => {
      const made = oneShotArgs({ settings: makeFlags({ args }), model })
      assert.equal(made[0], 'run')
      assert.equal(followedBy(made, '--format'), 'json')
      if (model !== undefined) assert.equal(followedBy(made, '--model'), model)
      else assert.ok(!made.slice(0, made.length - args.length).includes('--model'))
      assert.deepEqual(made.slice(made.length - args.length), args)
      assert.deepEqual(acpArgs({ args }), ['acp', ...args])
    }),
    RUNS,
  )
})

test('AG-13 opencode property 5: session flags exactly when there is a session', () => {
  fc.assert(
    fc.property(fc.option(sessionId, { nil: undefined }), (id) => {
      const args = oneShotArgs({ settings: makeFlags(), sessionId: id })
      assert.equal(args.includes('--continue'), id !== undefined)
      assert.equal(args.includes('--session'), id !== undefined)
      if (id !== undefined) assert.equal(followedBy(args, '--session'), id)
    }),
    RUNS,
  )
})

test('AG-16 opencode, which left to itself asks nobody, is told what it may do unasked', () => {
  const mcpServers = [{ name: 'team', command: 'node', args: ['x.js'], env: { A: 'b' } }]
  const config = (policy: 'ask' | 'allowed_tools' | 'bypass') =>
    JSON.parse(configContent({ settings: makeFlags({ permission: policy, allowedTools: ['bash'] }), mcpServers }))
  const { permission, mcp } = config('allowed_tools')
  assert.deepEqual([permission['*'], permission.bash, permission.edit], ['ask', 'allow', undefined])
  assert.deepEqual([permission.read, permission['team_*']], ['allow', 'allow'])
  assert.deepEqual(mcp.team, { type: 'local', command: ['node', 'x.js'], environment: { A: 'b' }, enabled: true })
  assert.deepEqual(config('bypass').permission, { '*': 'allow' })
  assert.ok(oneShotArgs({ settings: makeFlags() }).includes('--auto'))
  assert.ok(!oneShotArgs({ settings: makeFlags({ permission: 'allowed_tools' }) }).includes('--auto'))
})

test('AG-13 opencode property 6: its reader gives back text and session', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme', minLength: 1 }), { minLength: 1 }), sessionId, (pieces, id) => {
      const events = readAll(reader(), lines({ type: 'step_start', sessionID: id }, ...pieces.map((t) => said(id, t))))
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

test('AG-13 opencode property 8: a non-zero exit is an error that holds its stderr', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 255 }), fc.stringMatching(/^[a-z ]{1,60}$/), (code, stderr) => {
      const end = reader().conclude(exited(code, `[${stderr}]`), '')
      assert.ok(end.type === 'failed' && end.error.message.includes(`[${stderr}]`))
    }),
    RUNS,
  )
})

test('recorded runs of opencode are read as they were, and what their steps used adds up', () => {
  const plain = readAll(reader(), readSample('opencode/success.jsonl'))
  assert.equal(streamedText(plain), 'ok n=1 last="hello one"')
  const tool = readAll(reader(), readSample('opencode/mcp-tool.jsonl'))
  assert.deepEqual(
    tool.filter(({ type }) => type === 'tool'),
    [
      { type: 'tool', name: 'lab_ping_tool', state: 'started' },
      { type: 'tool', name: 'lab_ping_tool', state: 'finished' },
    ],
  )
  assert.equal(streamedText(tool), 'tool said: PONG:pong?:v1')
  const usage = tool.findLast(({ type }) => type === 'usage')
  assert.deepEqual(usage, { type: 'usage', inputTokens: 20, outputTokens: 10, costUsd: 0 })
})

test('AG-16 a denied tool, after which opencode says nothing and ends well, is named in the reply', () => {
  const events = readAll(reader(), readSample('opencode/denied.jsonl'))
  assert.equal(streamedText(events), '(Not allowed in this turn: bash.)')
  assert.equal(events.at(-1)?.type, 'done')
})

for (const [name, code] of [
  ['error-400', 'provider_failed'],
  ['error-401', 'auth_failed'],
  ['error-bad-model', 'provider_failed'],
] as const) {
  test(`opencode's recorded ${name} is ${code}`, () => {
    const end = readAll(reader(), readSample(`opencode/${name}.jsonl`), exited(1)).at(-1)
    assert.ok(end?.type === 'failed')
    assert.equal(end.error.code, code)
    assert.match(end.error.message, /fake 4/)
  })
}

test("opencode's 429 says when to come again, by the provider's header", () => {
  const data = { message: 'slow down', statusCode: 429, isRetryable: true, responseHeaders: { 'retry-after': '7' } }
  const end = readAll(reader(), lines({ type: 'error', error: { name: 'APIError', data } }), exited(1)).at(-1)
  assert.ok(end?.type === 'failed')
  assert.deepEqual([end.error.code, end.error.details['resetAfterMs']], ['rate_limited', 7_000])
})

test("opencode's unknown session, told in colours on stderr, is a lost session", () => {
  const end = reader().conclude(exited(1, readSample('opencode/unknown-session.stderr')), '')
  assert.ok(end.type === 'failed')
  assert.equal(end.error.code, 'session_lost')
})
