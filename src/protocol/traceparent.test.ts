import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readEnvelope, restoreEnvelope, writeEnvelope } from './envelope.ts'
import { readTraceparent } from './traceparent.ts'

const TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'

test('PL-15 a valid traceparent is accepted, and an invalid one is ignored', () => {
  assert.equal(readTraceparent(TRACE), TRACE)
  assert.equal(readTraceparent(`${TRACE.replace('00', '01')}-what-comes-later`), TRACE.replace('00', '01'))
  const wrong = [
    ...['', 'x', TRACE.toUpperCase(), `${TRACE}-more`, `${TRACE}\n`, TRACE.replace('00', 'ff'), TRACE.slice(1)],
    ...['00-00000000000000000000000000000000-00f067aa0ba902b7-01', `00-${'1'.repeat(32)}-${'0'.repeat(16)}-01`],
  ]
  for (const header of [...wrong, undefined, [TRACE]]) assert.equal(readTraceparent(header), undefined, String(header))
})

test('PL-15 a trace is stored and restored with its message, and the raw envelope is unchanged', () => {
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'a' }] }
  const raw = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }
  const traced = { ...readEnvelope(raw), traceparent: TRACE }
  assert.deepEqual(restoreEnvelope(writeEnvelope(traced)), traced)
  assert.deepEqual(traced.raw, raw)
  const sly = readEnvelope({ ...raw, _traceparent: 'anything' })
  assert.deepEqual(restoreEnvelope(writeEnvelope(sly)), sly)
})
