import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import fc from 'fast-check'
import { exited } from '../../../test/fakes/agents/line-parsers.ts'
import type { BackendEvent } from '../backend.ts'
import { createExecParser } from './parse.ts'
import { createCodexReply } from './reply.ts'
import { type CodexSession, readSession } from './session.ts'

const sample = (file: string): string[] =>
  readFileSync(new URL(`../../../test/fakes/agents/samples/codex/${file}`, import.meta.url), 'utf8')
    .trim()
    .split('\n')

const THREAD = '01a1de56-e19e-7c23-a0d9-b566626ebf70'
const facts = { command: 'codex', timeout: '5m', outputBytesMax: 1, nowMs: 0 }

function createParser(session?: CodexSession) {
  const warned: string[] = []
  const warn = (message: string) => warned.push(message)
  return { ...createExecParser({ session, instructions: 'i', facts, warn }), warned }
}

const readAll = (lines: readonly string[], session?: CodexSession): BackendEvent[] => {
  const { read } = createParser(session)
  return lines.flatMap((line) => [...read(line)])
}

const failureIn = (file: string) => {
  const end = readAll(sample(file)).at(-1)
  assert.ok(end?.type === 'failed', JSON.stringify(end))
  return end.error
}

test('AG-2 a recorded success gives text, session, usage and one end', () => {
  const events = readAll(sample('success.jsonl')).filter(({ type }) => type !== 'activity')
  assert.deepEqual(
    events.map(({ type }) => type),
    ['text', 'session', 'usage', 'done'],
  )
  assert.deepEqual(events.at(-1), { type: 'done', parts: [{ text: 'ok n=2 last=hello one' }], finality: 'completed' })
  assert.deepEqual(events[2], { type: 'usage', inputTokens: 10, outputTokens: 5 })
})

test('AG-2 codex counts tokens over a resumed thread, and the turn reports the difference', () => {
  const session = { thread: THREAD, totals: { input: 10, output: 5 }, instructions: 'i' }
  const events = readAll(sample('resumed.jsonl'), session)
  assert.deepEqual(
    events.find(({ type }) => type === 'usage'),
    { type: 'usage', inputTokens: 10, outputTokens: 5 },
  )
  const token = events.find((event) => event.type === 'session')?.token
  assert.deepEqual(readSession(token), { ...session, totals: { input: 20, output: 10 } })
})

test('AG-2 RT-5 a new thread instead of the resumed one is a lost session, although codex reports success', () => {
  const session = { thread: THREAD, totals: { input: 0, output: 0 }, instructions: '' }
  assert.throws(() => readAll(sample('resume-not-a-uuid-starts-anew.jsonl'), session), { code: 'session_lost' })
})

test('AG-2 a warning of type error ends no turn and is no part of the reply', () => {
  const parser = createParser()
  const events = sample('ignored-system_prompt-warning.jsonl').flatMap((line) => [...parser.read(line)])
  const end = events.at(-1)
  assert.deepEqual(end?.type === 'done' && end.parts, [{ text: 'ok n=2 last=s1' }])
  assert.equal(parser.warned.length, 3)
})

test('AG-2 a tool is reported when it starts and when it ends', () => {
  const tools = readAll(sample('mcp-tool.jsonl')).filter(({ type }) => type === 'tool')
  assert.deepEqual(tools, [
    { type: 'tool', name: 'mcp__lab__ping_tool', subject: '{"text":"pong?"}', state: 'started' },
    { type: 'tool', name: 'mcp__lab__ping_tool', subject: '{"text":"pong?"}', state: 'finished' },
  ])
})

test('AG-2 recorded errors of codex become our error codes', () => {
  const expected = {
    'error-401.jsonl': ['auth_failed', false],
    'error-429.jsonl': ['rate_limited', true],
    'error-500.jsonl': ['provider_failed', true],
    'error-529.jsonl': ['overloaded', true],
    'error-bad-model.jsonl': ['bad_request', false],
  } as const
  for (const [file, wanted] of Object.entries(expected)) {
    const { code, retryable } = failureIn(file)
    assert.deepEqual([file, code, retryable], [file, ...wanted])
  }
})

test('AG-19 AG-2 the limit of a plan is a used-up quota, which waits for the time that codex names', () => {
  const words = 'You’ve hit your usage limit. Upgrade to Pro or try again at Nov 17th, 2026 1:26 AM.'
  const [end] = createParser().read(JSON.stringify({ type: 'turn.failed', error: { message: words } }))
  assert.ok(end?.type === 'failed')
  const { code, retryable, details } = end.error
  assert.deepEqual([code, retryable, typeof details['resetAfterMs']], ['quota_exhausted', true, 'number'])
})

test('AG-2 RT-5 stderr tells a missing thread from one that another codex has open', () => {
  const conclude = (file: string) => createParser().conclude(exited(1, sample(file).join('\n')), '')
  const lost = conclude('unknown-session.stderr')
  assert.equal(lost.type === 'failed' && lost.error.code, 'session_lost')
  const busy = conclude('concurrent-resume-refused.stderr')
  assert.deepEqual(busy.type === 'failed' && [busy.error.code, busy.error.retryable], ['exit', true])
})

test('AG-13 AG-2 property 6: every text and thread that codex prints is returned, also between lines that are no events', () => {
  // Blank lines at the beginning of a reply are left out, so each text begins with a letter.
  const printed = fc.string({ unit: 'binary' }).map((rest) => `t${rest}`)
  const texts = fc.array(printed, { minLength: 1, maxLength: 4 })
  const noise = fc.constantFrom('', 'WARNING: proceeding', '[1]', '{"type":"item.updated"}', '{"type":"strange"}')
  fc.assert(
    fc.property(fc.uuid(), texts, noise, (thread, messages, stray) => {
      const lines = [
        { type: 'thread.started', thread_id: thread },
        ...messages.map((text, n) => ({ type: 'item.completed', item: { id: `i${n}`, type: 'agent_message', text } })),
        { type: 'turn.completed', usage: { input_tokens: 1, output_tokens: 2 } },
      ].flatMap((event) => [stray, JSON.stringify(event)])
      const events = readAll(lines)
      const end = events.at(-1)
      assert.deepEqual(end?.type === 'done' && end.parts, [{ text: messages.join('\n\n') }])
      const deltas = events.flatMap((event) => (event.type === 'text' ? event.delta : []))
      assert.equal(deltas.join(''), messages.join('\n\n'))
      assert.equal(readSession(events.find((event) => event.type === 'session')?.token)?.thread, thread)
    }),
    { numRuns: 300 },
  )
})

test('AG-13 AG-2 property 8: an exit code other than 0 is an error that contains stderr', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 255 }), fc.stringMatching(/^[a-z ]{0,200}$/), (exitCode, stderr) => {
      const end = createParser().conclude(exited(exitCode, stderr), '')
      assert.ok(end.type === 'failed' && end.error.message.includes(stderr.trim()))
    }),
    { numRuns: 200 },
  )
})

test('CV-4 the recorded ends of changes of files have their diffs', () => {
  const reply = createCodexReply()
  const events = sample('app-server-file-change.jsonl').flatMap((line) => {
    const { method, params } = JSON.parse(line)
    return [...reply.tool(params.item, method === 'item/started' ? 'started' : 'ended')]
  })
  const path = '/home/dev/shop/a.txt'
  assert.deepEqual(
    events.flatMap((event) => (event.type === 'tool' && event.diffs ? [...event.diffs] : [])),
    [
      { path, diff: `--- /dev/null\n+++ ${path}\n@@ @@\n+one\n+two\n+three` },
      { path, diff: `--- ${path}\n+++ ${path}\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three` },
      { path: `${path}.b`, diff: `--- ${path}\n+++ ${path}.b\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three` },
      { path: `${path}.b`, diff: `--- ${path}.b\n+++ /dev/null\n@@ @@\n-one\n-2\n-three` },
    ],
  )
})
