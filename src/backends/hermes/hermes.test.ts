import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { exited, makeFlags, makeParserOptions, readAll } from '../../../test/fakes/agents/line-parsers.ts'
import { streamedText } from '../../../test/fakes/turns.ts'
import { hermesArgs } from './args.ts'
import { createHermesParser } from './parse.ts'

const RUNS = { numRuns: 200 }
const sessionId = fc.stringMatching(/^2026[0-9]{4}_[0-9]{6}_[0-9a-f]{6}$/)
const word = fc.stringMatching(/^[A-Za-z0-9._/-]{1,30}$/)
const reader = () => createHermesParser(makeParserOptions({ backend: 'hermes', sessionId: '20261115_120000_abcdef' }))
const followedBy = (args: readonly string[], flag: string) => args[args.indexOf(flag) + 1]
const lines = (...events: readonly object[]) => events.map((event) => JSON.stringify(event)).join('\n')
const result = (given: object) => ({ type: 'result', session_id: 's', exit_code: 0, text: '', ...given })

test('AG-5 AG-13 hermes: required flags, resume exactly when there is a session, yolo only by bypass', () => {
  fc.assert(
    fc.property(fc.option(sessionId, { nil: undefined }), fc.option(word, { nil: undefined }), (id, model) => {
      const args = hermesArgs({ settings: makeFlags({ maxTurns: 9 }), workingDir: '/work', sessionId: id, model })
      assert.deepEqual(args.slice(0, 4), ['--in', '/work', 'chat', '--oneshot'])
      assert.equal(followedBy(args, '--query-file'), '-')
      assert.equal(followedBy(args, '--format'), 'stream-json')
      assert.equal(followedBy(args, '--max-turns'), '9')
      assert.equal(args.includes('--resume'), id !== undefined)
      if (id !== undefined) assert.equal(followedBy(args, '--resume'), id)
      if (model !== undefined) assert.equal(followedBy(args, '--model'), model)
      assert.ok(args.includes('--yolo'))
      const asked = hermesArgs({ settings: makeFlags({ permission: 'allowed_tools' }), workingDir: '/work' })
      assert.ok(!asked.includes('--yolo'))
    }),
    RUNS,
  )
})

test('AG-13 hermes property 6: its reader gives back text and session, streamed or not', () => {
  fc.assert(
    fc.property(fc.array(fc.string({ minLength: 1 }), { minLength: 1 }), sessionId, fc.boolean(), (...given) => {
      const [pieces, id, isStreamed] = given
      const text = pieces.join('')
      const streamed = isStreamed ? pieces.map((piece) => ({ type: 'text', text: piece })) : []
      const init = { type: 'system', subtype: 'init', session_id: id }
      const tokens = { input: 8, output: 63 }
      const events = readAll(reader(), lines(init, ...streamed, result({ session_id: id, text, tokens })))
      assert.equal(streamedText(events), text)
      assert.ok(events.some((event) => event.type === 'session' && event.token === `token of ${id}`))
      assert.ok(events.some((event) => event.type === 'usage' && event.inputTokens === 8 && event.outputTokens === 63))
      assert.equal(events.at(-1)?.type, 'done')
    }),
    RUNS,
  )
})

test('AG-13 hermes property 8: a non-zero exit is an error that holds its stderr', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 255 }), fc.stringMatching(/^[a-z ]{1,60}$/), (code, stderr) => {
      const end = reader().conclude(exited(code, `[${stderr}]`), '')
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
  ['nothing said', result({}), 'empty_response'],
] as const) {
  test(`hermes: ${title} is ${code}`, () => {
    const end = readAll(reader(), lines(event)).at(-1)
    assert.ok(end?.type === 'failed')
    assert.equal(end.error.code, code)
  })
}

test('hermes: an unknown session is a lost one, on whichever stream it is told', () => {
  const words = 'Session not found: 20261115_120000_abcdef\nUse a session ID from a previous CLI run.\n'
  for (const end of [reader().conclude(exited(1, words), ''), reader().conclude(exited(1), words)]) {
    assert.ok(end.type === 'failed')
    assert.equal(end.error.code, 'session_lost')
  }
})

test('hermes: a blocked command is named in the reply', () => {
  const blocked = { type: 'tool_result', name: 'terminal', output: 'BLOCKED: User denied.', is_error: true }
  const events = readAll(reader(), lines({ type: 'tool_use', name: 'terminal' }, blocked, result({ text: 'Sorry.' })))
  assert.equal(streamedText(events), 'Sorry.\n\n(Not allowed in this turn: terminal.)')
})
