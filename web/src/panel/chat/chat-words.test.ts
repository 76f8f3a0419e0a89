/** The words of the chat: states, tools, permissions, senders, sizes, drafts, and the order of what is shown. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ChatEntry, ChatHistory } from '../../../../src/client/live-conversation.ts'
import { draftKey, readDraft, writeDraft } from '../../ui/drafts.ts'
import { isDiff, toolText, wantsTo } from '../../ui/text/tool-text.ts'
import { messageState, tokensText } from './messages/message-state.ts'
import { senderWords } from './messages/sender-words.ts'
import { expectedWaitMs, queuedBefore, timelineOf } from './messages/timeline.ts'
import { addFiles, FILES_BYTES_MAX, FILES_MAX, sizeText } from './writing/attachments.ts'

const entry = (n: number, more: Partial<ChatEntry> = {}): ChatEntry => ({
  id: `m${n}`,
  task_id: `t${n}`,
  n,
  sender_message_id: `s${n}`,
  seq: 1,
  state: 'answered',
  tools: [],
  sender: { kind: 'person', id: 'p', name: 'Ana', door: 'http' },
  text: '',
  attachments: [],
  sent_at: new Date(Date.UTC(2026, 10, 16, 10, n)).toISOString(),
  ...more,
})

const history = (...entries: readonly ChatEntry[]): ChatHistory => ({ entries, hasOlder: false, hasNewer: false })

const words = (more: Partial<ChatEntry>) => {
  const { parts, isRed, action } = messageState(entry(1, more))
  return [parts.map(({ text, since }) => since ?? text).join(' · '), isRed, action]
}

const usage = (cost: number | null) => ({
  turns: 1,
  unknown_turns: 0,
  unknown_cost_turns: 0,
  input_tokens: 1204,
  output_tokens: null,
  cost_usd: cost,
  duration_ms: 6200,
})

test('CV-2 RT-13 each state of a message in words; only what needs a person is red', () => {
  assert.deepEqual(words({ state: 'queued', place: 2 }), ['queued · behind 2', false, 'cancel'])
  assert.deepEqual(words({ state: 'queued', workspace_is: 'paused' }), [
    ...['queued · next · the workspace is paused', false, 'cancel'],
  ])
  assert.deepEqual(words({ state: 'running', started_at: 'T' }), ['running · T', false, undefined])
  assert.deepEqual(words({ state: 'waiting_for_you' }), ['waiting for you', false, undefined])
  const at = new Date(2026, 10, 16, 14, 5).toISOString()
  assert.deepEqual(words({ state: 'rate_limited', next_try_at: at }), [
    ...['rate limited · next try 14:05 · costs no attempt', false, 'cancel'],
  ])
  assert.deepEqual(words({ state: 'parked', next_try_at: at, reason: 'the budget is spent.' }), [
    ...['parked: the budget is spent · next try 14:05', false, 'cancel'],
  ])
  assert.deepEqual(words({ duration_ms: 6200, usage: usage(0.03) }), ['answered · 6.2 s · $0.03', false, undefined])
  const known = { ...usage(0.03), output_tokens: 310 }
  assert.deepEqual(words({ usage: known }), ['answered · $0.03 · 1,514 tokens', false, undefined])
  assert.deepEqual(words({ duration_ms: 120_000, usage: usage(null) }), [
    ...['answered · 2 min · cost unknown', false, undefined],
  ])
  assert.deepEqual(words({ interruptions: 1 }), ['answered · interrupted once, run again', false, undefined])
  const started_at = '2026-01-01T00:00:00.000Z'
  const stopped = { state: 'stopped', duration_ms: 12_000, started_at } as const
  assert.deepEqual(words(stopped), ['stopped after 12 s', false, 'run again'])
  assert.deepEqual(words({ state: 'stopped' }), ['cancelled while it waited', false, 'run again'])
  const again = messageState({ ...entry(1, { state: 'stopped' }), wasRunAgain: true })
  assert.deepEqual(
    [again.parts.map(({ text }) => text), again.action],
    [['cancelled while it waited', 'was run again'], undefined],
  )
  assert.deepEqual(words({ state: 'failed', reason: 'exit 3 (exit_3, err_01M7K7C97Y)', handled: false }), [
    'failed: exit 3',
    true,
    'replay',
  ])
  assert.deepEqual(words({ state: 'failed', reason: 'refused' }), ['failed: refused', true, 'run again'])
  const replayed = { state: 'failed', reason: 'x', handled: true, replayed_as: 'm2' } as const
  assert.deepEqual(words(replayed), ['failed: x · was run again', false, undefined])
  assert.equal(tokensText({ usage: usage(null) }), '1,204 tokens in, unknown out')
})

test('CV-2 a queued message knows its place and about how long it waits', () => {
  const done = [1, 2, 3].map((n) => entry(n, { duration_ms: 60_000 }))
  const started_at = '2026-11-16T10:00:00.000Z'
  const running = entry(4, { state: 'running', started_at })
  const [next, later] = [entry(5, { state: 'queued', place: 1 }), entry(6, { state: 'queued', place: 2 })]
  const all = history(...done, running, next, later)
  assert.deepEqual([queuedBefore(all, next), queuedBefore(all, later)], [0, 1])
  assert.equal(expectedWaitMs(all, later, Date.parse(started_at) + 20_000), 100_000)
  assert.equal(expectedWaitMs(history(running, next), next, Date.parse(started_at)), undefined)
})

test('CV-2 a tool line says what was done', () => {
  assert.deepEqual(toolText({ name: 'Bash', subject: 'npm test' }), { line: 'npm test' })
  assert.equal(toolText({ name: 'Edit', subject: '/shop/a/0037.sql' }, '/shop').line, 'edited a/0037.sql')
  assert.equal(
    toolText({ name: 'Write', subject: '{"file_path":"/shop/b.ts","content":"x"}' }, '/shop').line,
    'wrote b.ts',
  )
  assert.equal(toolText({ name: 'mcp_ping', subject: '{"cut' }).line, 'mcp_ping {"cut')
  const diff = '--- a/x.ts\n+++ b/x.ts\n@@ -1 +1 @@\n-a\n+b'
  assert.deepEqual(toolText({ name: 'apply_patch', subject: diff }), { line: 'edited x.ts', details: diff })
  assert.equal(isDiff(diff), true)
  assert.equal(isDiff('a\n- list'), false)
  assert.deepEqual(['Bash', 'write_file', 'ping'].map(wantsTo), ['run a command', 'change a file', 'use ping'])
})

test('CV-2 messages of agents and schedules fall between those of people, and unsent ones are last', () => {
  assert.deepEqual(senderWords({ kind: 'schedule', name: 'nightly' }), { name: 'Schedule “nightly”', verb: 'sent' })
  const other = {
    ...({ id: 'o', context_id: 'o', principal: 'ws:1', title: 'run', state: 'answered', messages: 1 } as const),
    updated_at: new Date(Date.UTC(2026, 10, 16, 10, 1, 30)).toISOString(),
  }
  const outgoing = (messageId: string) => ({
    session: 's',
    messageId,
    workspaceId: 'w',
    contextId: 'c',
    text: '',
    files: [],
    at: '',
    state: 'sent' as const,
  })
  const shown = { others: [other], outgoing: [outgoing('s2'), outgoing('s3')] }
  const keys = (from: ChatHistory) => timelineOf({ history: from, ...shown }).map(({ key }) => key)
  assert.deepEqual(keys(history(entry(1), entry(2))), ['m1', 'other-o', 'm2', 's3'])
  assert.deepEqual(keys(history(entry(2))), ['m2', 's3'])
  assert.deepEqual(keys({ ...history(entry(1)), hasNewer: true }), ['m1'])
})

test('CV-2 files beyond the limits are refused with the reason', () => {
  const file = (size: number, name = 'a.txt') => ({ name, size, type: 'text/plain' }) as File
  assert.equal(addFiles([], [file(5), file(FILES_BYTES_MAX)]).files.length, 1)
  assert.match(addFiles([], [file(FILES_BYTES_MAX + 1)]).problem ?? '', /at most 6 MB together/)
  const many = addFiles(
    [],
    Array.from({ length: FILES_MAX + 1 }, () => file(1)),
  )
  assert.deepEqual([many.files.length, many.problem?.startsWith('A message takes at most 20 files')], [20, true])
  assert.deepEqual([820, 14_000, 2_400_000].map(sizeText), ['820 B', '14 kB', '2.4 MB'])
})

test('CV-2 drafts are kept for each conversation, and the oldest are dropped', () => {
  const stored: Record<string, string> = {}
  const storage = new Proxy(stored, {
    get: (target, name) =>
      ({
        getItem: (key: string) => target[key] ?? null,
        setItem: (key: string, value: string) => Object.assign(target, { [key]: value }),
        removeItem: (key: string) => void delete target[key],
      })[String(name)],
  }) as unknown as Storage
  for (let n = 0; n < 60; n++) writeDraft(draftKey('w', `c${n}`), `text ${n}`, storage)
  assert.equal(readDraft(draftKey('w', 'c59'), storage), 'text 59')
  assert.ok(Object.keys(stored).length <= 50)
  writeDraft(draftKey('w', 'c59'), '', storage)
  assert.equal(readDraft(draftKey('w', 'c59'), storage), '')
})
