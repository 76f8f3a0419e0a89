import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readEnvelope, restoreEnvelope, writeEnvelope } from './envelope.ts'
import { readTraceContext, traceFromVariables, traceVariables } from './trace-context.ts'

const traceparentOf = (traceparent: unknown) => readTraceContext({ traceparent })?.traceparent

const TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'

test('PL-15 a valid traceparent is accepted, and an invalid one is ignored', () => {
  assert.equal(traceparentOf(TRACE), TRACE)
  assert.equal(traceparentOf(`${TRACE.replace('00', '01')}-what-comes-later`), TRACE.replace('00', '01'))
  const wrong = [
    ...['', 'x', TRACE.toUpperCase(), `${TRACE}-more`, `${TRACE}\n`, TRACE.replace('00', 'ff'), TRACE.slice(1)],
    ...['00-00000000000000000000000000000000-00f067aa0ba902b7-01', `00-${'1'.repeat(32)}-${'0'.repeat(16)}-01`],
  ]
  for (const header of [...wrong, undefined, [TRACE]]) assert.equal(traceparentOf(header), undefined, String(header))
})

test('PL-15 a trace is stored and restored with its message, and the raw envelope is unchanged', () => {
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'a' }] }
  const raw = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }
  const traced = { ...readEnvelope(raw), trace: { traceparent: TRACE, tracestate: 'a=1' } }
  assert.deepEqual(restoreEnvelope(writeEnvelope(traced)), traced)
  assert.deepEqual(traced.raw, raw)
  const sly = readEnvelope({ ...raw, _traceparent: 'anything' })
  assert.deepEqual(restoreEnvelope(writeEnvelope(sly)), sly)
})

test('PL-15 a tracestate is kept with its parent, in one plain line of up to 512 characters', () => {
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const kept = { traceparent, tracestate: 'congo=t61rcWkgMzE,rojo="00f0"' }
  assert.deepEqual(readTraceContext(kept), kept)
  assert.deepEqual(traceFromVariables(traceVariables(kept)), kept)
  assert.deepEqual(readTraceContext({ traceparent, tracestate: 'a='.padEnd(512, 'x') })?.tracestate?.length, 512)
  for (const tracestate of ['', '  ', 'a=1\r\nX: y', 'a=\u00fc', 'a='.padEnd(513, 'x'), 7, undefined]) {
    assert.deepEqual(readTraceContext({ traceparent, tracestate }), { traceparent })
  }
  assert.equal(readTraceContext({ traceparent: 'x', tracestate: 'a=1' }), undefined)
  assert.equal(traceFromVariables({}), undefined)
})
