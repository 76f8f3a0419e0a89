import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { exited, makeFlags, makeParserOptions, readAll, readSample } from '../../../test/fakes/agents/line-parsers.ts'
import { streamedText } from '../../../test/fakes/turns.ts'
import { acpArgs, oneShotArgs } from './args.ts'
import { nextMinuteMs } from './gemini.ts'
import { createGeminiParser } from './parse.ts'

const RUNS = { numRuns: 200 }
const word = fc.stringMatching(/^[A-Za-z0-9._-]{1,30}$/)
const sessionId = fc.uuid()
const reader = (given = {}) => createGeminiParser(makeParserOptions({ backend: 'gemini', ...given }))
const followedBy = (args: readonly string[], flag: string) => args[args.indexOf(flag) + 1]
const lines = (...events: readonly object[]) => events.map((event) => JSON.stringify(event)).join('\n')

test('AG-13 gemini property 3: its required flags, the prompt not among them (ours is on stdin)', () => {
  fc.assert(
    fc.property(fc.option(word, { nil: undefined }), fc.array(word), (model, args) => {
      const made = oneShotArgs({ settings: makeFlags({ args }), model })
      // `stream-json` where the seed has `json`: the real program shows text, tools and errors as they come with it.
      assert.equal(followedBy(made, '--output-format'), 'stream-json')
      assert.equal(followedBy(made, '--approval-mode'), 'yolo')
      assert.ok(made.includes('--skip-trust'))
      if (model === undefined) assert.ok(!made.slice(0, made.length - args.length).includes('-m'))
      else assert.equal(followedBy(made, '-m'), model)
      assert.deepEqual(made.slice(made.length - args.length), args)
    }),
    RUNS,
  )
})

test('AG-3 gemini loads no session in the minute in which it began: that would wipe it', () => {
  const noon = Date.UTC(2026, 10, 15, 12)
  assert.deepEqual([nextMinuteMs(noon), nextMinuteMs(noon + 59_999)], [noon + 60_000, noon + 60_000])
})

test('AG-13 gemini property 5: resume flags exactly when there is a session', () => {
  fc.assert(
    fc.property(fc.option(sessionId, { nil: undefined }), (id) => {
      const args = oneShotArgs({ settings: makeFlags(), sessionId: id })
      assert.equal(args.includes('--resume'), id !== undefined)
      if (id !== undefined) assert.equal(followedBy(args, '--resume'), id)
    }),
    RUNS,
  )
})

test('AG-16 gemini is told to approve all only by bypass, and each allowed tool by name', () => {
  const settings = makeFlags({ permission: 'allowed_tools', allowedTools: ['read_file', 'run_shell_command(git)'] })
  const args = oneShotArgs({ settings })
  assert.equal(followedBy(args, '--approval-mode'), 'default')
  assert.deepEqual(args.slice(-4), ['--allowed-tools', 'read_file', '--allowed-tools', 'run_shell_command(git)'])
  assert.equal(followedBy(acpArgs({ settings: makeFlags({ permission: 'ask' }) }), '--approval-mode'), 'default')
  assert.equal(followedBy(acpArgs({ settings: makeFlags() }), '--approval-mode'), 'yolo')
})

test('AG-13 gemini property 6: its reader gives back text and session, however the text is cut', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: 'grapheme', minLength: 1 }), { minLength: 1 }), sessionId, (pieces, id) => {
      const output = lines(
        { type: 'init', session_id: id },
        { type: 'message', role: 'user', content: 'not this' },
        ...pieces.map((content) => ({ type: 'message', role: 'assistant', content, delta: true })),
        { type: 'result', status: 'success', stats: { input_tokens: 7, output_tokens: 3 } },
      )
      const events = readAll(reader(), output)
      const text = pieces.join('')
      assert.deepEqual(events[0], { type: 'session', token: `token of ${id}` })
      assert.equal(streamedText(events), text)
      assert.deepEqual(events.at(-1), { type: 'done', parts: [{ text }], finality: 'completed' })
      assert.deepEqual(events.at(-2), { type: 'usage', inputTokens: 7, outputTokens: 3 })
    }),
    RUNS,
  )
})

test('AG-13 gemini property 8: an exit that says nothing else is an error that holds its stderr', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), fc.stringMatching(/^[a-z ]{1,60}$/), (code, stderr) => {
      const end = reader().conclude(exited(code, `[${stderr}]`), '')
      assert.ok(end.type === 'failed' && end.error.message.includes(`[${stderr}]`))
    }),
    RUNS,
  )
})

test('a recorded run of gemini is read as it was', () => {
  const events = readAll(reader(), readSample('gemini/stream-json-success.jsonl'))
  assert.equal(streamedText(events), 'ok n=1 last=─sys2.txt </session_context> hello two')
  assert.deepEqual(events.at(-2), { type: 'usage', inputTokens: 20, outputTokens: 10 })
})

test('a recorded tool of gemini is seen to begin and to end', () => {
  const events = readAll(reader(), readSample('gemini/stream-json-tool.jsonl'))
  const tools = events.filter(({ type }) => type === 'tool')
  assert.deepEqual(tools, [
    { type: 'tool', name: 'run_shell_command', state: 'started' },
    { type: 'tool', name: 'run_shell_command', state: 'finished' },
  ])
  assert.equal(streamedText(events), 'touch done')
})

test('AG-16 a tool that gemini was not allowed is named in the reply', () => {
  const output = lines(
    { type: 'tool_use', tool_name: 'write_file', tool_id: 'a' },
    { type: 'tool_result', tool_id: 'a', status: 'error', error: { type: 'policy_violation', message: 'no' } },
    { type: 'message', role: 'assistant', content: 'I could not.' },
    { type: 'result', status: 'success' },
  )
  assert.equal(streamedText(readAll(reader(), output)), 'I could not.\n\n(Not allowed in this turn: write_file.)')
})

for (const [status, code, retryable] of [
  [400, 'provider_failed', false],
  [401, 'auth_failed', true],
  // Its words do not tell the status; its exit code does.
  [429, 'rate_limited', true],
] as const) {
  test(`gemini's recorded error ${status} is ${code}`, () => {
    const end = readAll(reader(), readSample(`gemini/stream-json-error-${status}.jsonl`), exited(status % 256)).at(-1)
    assert.ok(end?.type === 'failed')
    assert.deepEqual([end.error.code, end.error.retryable], [code, retryable])
    assert.match(end.error.message, new RegExp(`fake ${status}`))
  })
}

test("gemini's 429 says when to come again", () => {
  const body = JSON.stringify({ error: { code: 429, message: 'Quota exceeded. Please retry in 37s.' } })
  const output = lines({ type: 'result', status: 'error', error: { message: `[API Error: ${body}]` } })
  const end = readAll(reader(), output, exited(173)).at(-1)
  assert.ok(end?.type === 'failed')
  assert.deepEqual([end.error.code, end.error.details['resetAfterMs']], ['rate_limited', 37_000])
})

test("gemini's exit codes: 42 is a lost session where one was asked for, 41 no log-in, 53 turns, 55 trust", () => {
  const stderr = readSample('gemini/unknown-session-a.stderr')
  const codeOf = (exitCode: number, given = {}) => {
    const end = reader(given).conclude(exited(exitCode, stderr), '')
    return end.type === 'failed' ? end.error.code : end.type
  }
  assert.equal(codeOf(42, { sessionId: '11111111-2222-3333-4444-555555555555' }), 'session_lost')
  assert.equal(codeOf(42), 'exit')
  assert.equal(codeOf(41), 'auth_failed')
  assert.equal(codeOf(53), 'max_turns')
  assert.equal(codeOf(55), 'bad_config')
  assert.equal(codeOf(0), 'agent_failed')
  assert.equal(codeOf(429 - 256), 'rate_limited')
  assert.equal(codeOf(500 - 256), 'provider_failed')
})
