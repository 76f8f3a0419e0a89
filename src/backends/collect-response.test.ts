import assert from 'node:assert/strict'
import { test } from 'node:test'
import { present } from '../../test/harness/present.ts'
import { MoleculeError } from '../errors.ts'
import type { BackendEvent } from './backend.ts'
import { collectResponse, collectResult } from './collect-response.ts'

const done = (...parts: Extract<BackendEvent, { type: 'done' }>['parts']): BackendEvent => ({
  type: 'done',
  parts,
  finality: 'completed',
})

test('BK-3 the response is the reply of done and final, whatever was streamed before', async () => {
  const events = stream([{ type: 'activity' }, { type: 'text', delta: 'he' }, done({ text: 'hello' })])
  assert.deepEqual(await collectResponse(events), { parts: [{ type: 'text', text: 'hello' }], final: true })
})

test('BK-3 a response has at least one part: an empty reply is the empty text', async () => {
  assert.deepEqual(await collectResponse(stream([done()])), { parts: [{ type: 'text', text: '' }], final: true })
})

test('BK-3 files and data keep their kind', async () => {
  const { parts } = await collectResponse(
    stream([done({ raw: 'AAE=', mediaType: 'x/y' }, { url: 'https://a.example/f', filename: 'f' }, { data: [1] })]),
  )
  assert.deepEqual(parts, [
    { type: 'file', bytes: 'AAE=', mime_type: 'x/y' },
    { type: 'file', uri: 'https://a.example/f', filename: 'f' },
    { type: 'data', data: [1] },
  ])
})

test('BK-3 a failed turn throws its error, and a stream without an end is no_end', async () => {
  const error = new MoleculeError('timeout', 'too slow')
  await assert.rejects(collectResponse(stream([{ type: 'failed', error }])), error)
  await assert.rejects(collectResponse(stream([{ type: 'text', delta: 'he' }])), { code: 'no_end', retryable: true })
})

async function* stream(events: readonly BackendEvent[]): AsyncGenerator<BackendEvent> {
  yield* events
}

test('GW-8 a result has the text and the session of a turn; a failure says what the program did', async () => {
  const session: BackendEvent = { type: 'session', token: 's1' }
  const answered = await collectResult(stream([session, done({ text: 'he' }, { text: 'llo' })]))
  assert.deepEqual(answered, { isError: false, responseText: 'hello', sessionId: 's1' })
  assert.deepEqual(present(await collectResult(stream([done({ text: 'x' })]))), { isError: false, responseText: 'x' })
  const failures: [MoleculeError, string][] = [
    [new MoleculeError('timeout', 'it took too long'), 'Query timed out'],
    [new MoleculeError('no_end', 'no result'), 'Failed to parse CLI output'],
    [new MoleculeError('unreadable_output', 'it printed /srv/key'), 'Failed to parse CLI output'],
    [new MoleculeError('exit', 'it ended', { details: { stderr: `first${'x'.repeat(500)}` } }), 'x'.repeat(500)],
    [new MoleculeError('exit', 'it ended with 3', { details: { stderr: '' } }), 'it ended with 3'],
    [new MoleculeError('auth_failed', 'no log-in'), 'no log-in'],
  ]
  for (const [error, text] of failures) {
    const failed = { isError: true, responseText: text, code: error.code }
    assert.deepEqual(await collectResult(stream([{ type: 'failed', error }])), failed)
  }
  assert.deepEqual(await collectResult(stream([session])), {
    isError: true,
    responseText: 'Failed to parse CLI output',
    code: 'no_end',
  })
})
