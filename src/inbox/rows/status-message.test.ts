/** Everyone sees the sentence and the codes of a failure; the owner alone sees the text of the program. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { present } from '../../../test/harness/present.ts'
import { retryStatus, type StatusMessage, statusMessageOf, toAgentMessage, withoutDetail } from './status-message.ts'

const STATUS: StatusMessage = {
  parts: [{ text: 'The agent ' }, { text: 'stopped.' }],
  code: 'exit',
  category: 'crash',
  errorId: 'e1',
  nextTryAtMs: 0,
  detail: 'exit 1',
  stderr: 'no such file',
  metadata: { model: 'x' },
}
const TASK = { id: 't', contextId: 'c' }
const metadata = {
  model: 'x',
  code: 'exit',
  category: 'crash',
  error_id: 'e1',
  next_try_at: '1970-01-01T00:00:00.000Z',
}
const message = { messageId: 'm', taskId: 't', contextId: 'c', role: 'ROLE_AGENT' }

test('a failure of the inbox shows its own message; one of a program shows its sentence and keeps the rest', () => {
  assert.deepEqual(statusMessageOf({ code: 'expired', message: 'too late', id: 'e1', category: 'x' }), {
    parts: [{ text: 'too late' }],
    code: 'expired',
  })
  const failure = { code: 'exit', message: 'exit 1', sentence: 'The agent stopped.' }
  const plain = { parts: [{ text: 'The agent stopped.' }], code: 'exit', detail: 'exit 1' }
  assert.deepEqual(present(statusMessageOf(failure)), plain)
  for (const stderr of ['', 7]) assert.deepEqual(present(statusMessageOf({ ...failure, details: { stderr } })), plain)
  const long = { ...failure, category: 'crash', id: 'e1', details: { stderr: `${'x'.repeat(600)}end` } }
  const stderr = `${'x'.repeat(497)}end`
  assert.deepEqual(statusMessageOf(long), { ...plain, category: 'crash', errorId: 'e1', stderr })
})

test('RT-14 a retry names its next time; a parked one says it in words', () => {
  const status = { parts: [{ text: 'limit' }, { text: 'more' }] }
  const nowMs = Date.UTC(2026, 0, 1, 19, 5)
  const at = (parked: boolean, afterMs: number) => retryStatus(status, { parked, afterMs, nowMs })
  assert.deepEqual(at(true, 0), status)
  assert.deepEqual(at(false, 1), { ...status, nextTryAtMs: nowMs + 1 })
  const parts = [{ text: 'parked, next try at 19:06 UTC: limit' }, { text: 'more' }]
  assert.deepEqual(at(true, 60_000), { parts, nextTryAtMs: nowMs + 60_000 })
  const empty = retryStatus({ parts: [] }, { parked: true, afterMs: 1, nowMs })
  assert.deepEqual(empty.parts, [{ text: 'parked, next try at 19:05 UTC: ' }])
})

test('what everyone sees has neither the detail nor the stderr of the program', () => {
  const { detail: _detail, stderr: _stderr, ...shown } = STATUS
  assert.deepEqual(withoutDetail(STATUS), shown)
  assert.deepEqual(toAgentMessage(TASK, { messageId: 'm', status: STATUS }), {
    ...message,
    parts: STATUS.parts,
    metadata,
  })
})

test('the owner sees the text of the program after the sentence, and the end of its stderr', () => {
  assert.deepEqual(toAgentMessage(TASK, { messageId: 'm', status: STATUS, detail: true }), {
    ...message,
    parts: [{ text: 'The agent stopped.\nexit 1' }],
    metadata: { ...metadata, detail: 'no such file' },
  })
  const file: StatusMessage = { parts: [{ data: 1 }, { text: 'end' }], detail: 'exit 1' }
  const shown = toAgentMessage(TASK, { messageId: 'm', status: file, detail: true })
  assert.deepEqual(shown, { ...message, parts: [{ text: 'end\nexit 1' }] })
  const coded = toAgentMessage(TASK, { messageId: 'm', status: { parts: [], code: 'exit' } })
  assert.deepEqual(coded, { ...message, parts: [], metadata: { code: 'exit' } })
  const bare = { parts: [{ text: 'a' }, { text: 'b' }] }
  assert.deepEqual(toAgentMessage(TASK, { messageId: 'm', status: bare, detail: true }), { ...message, ...bare })
})
