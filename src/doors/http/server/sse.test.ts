import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { FakeResponse, fakeRequest } from '../../../../test/fakes/http-exchange.ts'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { countTimers } from '../../../../test/fakes/timer-count.ts'
import { within } from '../../../../test/harness/wait.ts'
import { createWaitQueue } from '../../../wait.ts'
import { SSE_LIMITS, type SseEvent, writeEvents, writeOnlyEvent } from './sse.ts'

const LIMITS = { keepAliveMs: 1000, unsentBytesMax: 20_000, unsentMs: 5000 }
const HEADERS = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store',
  'X-Accel-Buffering': 'no',
  'X-Content-Type-Options': 'nosniff',
  'X-Request-Id': 'req_1',
}
const COMMENT = ': keep-alive\n\n'

/** A stream whose events the test puts; `undefined` is its end, an error is thrown. */
function openEvents() {
  const { clock, timers } = countTimers(manualClock())
  const client = new FakeResponse()
  client.on('error', () => undefined)
  const queue = createWaitQueue<SseEvent | Error | 'end'>()
  let taken = 0
  const never = new AbortController().signal
  async function* events() {
    for (;;) {
      const next = await queue.take(never)
      if (next === 'end' || next === undefined) return
      if (next instanceof Error) throw next
      taken++
      yield next
    }
  }
  const exchange = { request: fakeRequest(), response: client.response, requestId: 'req_1' }
  let state = 'open'
  const writing = writeEvents(exchange, events(), { clock, limits: LIMITS }).then(
    () => {
      state = 'ended'
    },
    (error: unknown) => {
      state = String(error)
    },
  )
  const rest = async () => {
    for (let turn = 0; turn < 5; turn++) await nextTurn()
  }
  const written = () => within(writing, 'the end of the stream', 10_000)
  return { clock, timers, client, written, put: queue.put, taken: () => taken, state: () => state, rest }
}

test('PL-5 a stream waits 15 s before a keep-alive, and 30 s for a reader, with 1 MiB unsent', () => {
  assert.deepEqual(SSE_LIMITS, { keepAliveMs: 15_000, unsentBytesMax: 1_048_576, unsentMs: 30_000 })
})

test('PL-5 events are written with id and data, in order, then the answer ends', async () => {
  const { client, put, written, state, timers } = openEvents()
  assert.deepEqual([client.status, client.headers], [200, HEADERS])
  put({ id: '1.0', data: '{"a":1}' })
  put({ id: '1.1', data: '{"b":2}' })
  put('end')
  await written()
  assert.equal(state(), 'ended')
  assert.equal(client.text, 'id: 1.0\ndata: {"a":1}\n\nid: 1.1\ndata: {"b":2}\n\n')
  assert.ok(client.writableEnded)
  assert.equal(timers(), 0)
})

test('PL-5 the headers of a stream without an event are sent after 10 ms', async () => {
  const { clock, client, put, written } = openEvents()
  clock.advance(9)
  assert.equal(client.flushes, 0)
  clock.advance(1)
  assert.equal(client.flushes, 1)
  put('end')
  await written()
  const short = openEvents()
  short.put('end')
  await short.written()
  short.clock.advance(1000)
  assert.equal(short.client.flushes, 0, 'the timer of an ended stream does nothing')
})

test('PL-5 a quiet stream gets a comment in each interval, and none after its end', async () => {
  const { clock, client, put, written } = openEvents()
  clock.advance(999)
  assert.equal(client.text, '')
  clock.advance(1)
  assert.equal(client.text, COMMENT)
  clock.advance(2000)
  assert.equal(client.text, COMMENT.repeat(3))
  put('end')
  await written()
  clock.advance(10_000)
  assert.equal(client.text, COMMENT.repeat(3))
})

test('RE-3 a reader that is behind gets no comment and no next event until it has read', async () => {
  const { clock, client, put, taken, rest, written, state } = openEvents()
  client.stopReading()
  const big = { id: '1.0', data: 'x'.repeat(16_384 - 'id: 1.0\ndata: \n\n'.length) }
  put(big)
  put({ id: '2.0', data: '{}' })
  await rest()
  assert.deepEqual([taken(), client.sent.length], [1, 1])
  clock.advance(4999)
  await rest()
  assert.deepEqual([taken(), client.sent.length, state()], [1, 1, 'open'])
  client.readAll()
  await rest()
  assert.equal(taken(), 2)
  assert.equal(client.text, `id: 1.0\ndata: ${big.data}\n\nid: 2.0\ndata: {}\n\n`)
  clock.advance(60_000)
  assert.equal(client.destroyed, false, 'it has read in time')
  assert.deepEqual([client.listenerCount('drain'), client.listenerCount('close')], [0, 0])
  put('end')
  await written()
})

test('RE-3 a reader that has not read within its time is disconnected, and no more events are taken', async () => {
  const { clock, client, put, taken, written, rest, state } = openEvents()
  client.stopReading()
  put({ id: '1.0', data: 'x'.repeat(16_384) })
  put({ id: '2.0', data: '{}' })
  await rest()
  clock.advance(5000)
  assert.equal(client.destroyed, true)
  await written()
  assert.deepEqual([state(), taken(), client.listenerCount('drain'), client.listenerCount('close')], ['ended', 1, 0, 0])
  clock.advance(60_000)
  assert.doesNotMatch(client.text, /keep-alive/)
})

test('RE-3 a large event is written in pieces of the limit, each after the piece before was read', async () => {
  const { clock, client, put, rest, written } = openEvents()
  client.stopReading()
  const data = 'ä'.repeat(25_000)
  const text = `id: 1.0\ndata: ${data}\n\n`
  put({ id: '1.0', data })
  for (const piece of [1, 2]) {
    await rest()
    assert.equal(client.sent.length, piece)
    clock.advance(4000)
    client.readAll()
    client.stopReading()
  }
  client.readAll()
  put('end')
  await written()
  assert.deepEqual(
    client.bytes.map(({ length }) => length),
    [20_000, 20_000, Buffer.byteLength(text) - 40_000],
  )
  assert.equal(Buffer.concat(client.bytes).toString(), text)
})

test('RE-3 a large event is not written further to a reader that disconnected', async () => {
  const { client, put, rest, written, state } = openEvents()
  client.stopReading()
  put({ id: '1.0', data: 'x'.repeat(100_000) })
  await rest()
  client.destroy()
  await once(client, 'close')
  await written()
  assert.deepEqual([client.sent.length, state()], [1, 'ended'])
})

test('PL-5 a large event with an even number of pieces arrives whole', async () => {
  const { client, put, written } = openEvents()
  const frame = 'id: 1.0\ndata: \n\n'.length
  const data = 'x'.repeat(40_000 - frame)
  put({ id: '1.0', data })
  put('end')
  await written()
  assert.deepEqual([client.sent.length, client.text], [2, `id: 1.0\ndata: ${data}\n\n`])
})

test('PL-5 a source that fails breaks the connection, and the caller receives the error', async () => {
  const { clock, client, put, written, state, timers } = openEvents()
  put(new Error('the store is gone'))
  await written()
  assert.deepEqual([state(), client.destroyed, client.writableEnded], ['Error: the store is gone', true, false])
  clock.advance(60_000)
  assert.deepEqual([client.text, client.flushes, timers()], ['', 0, 0])
})

test('PL-5 nothing is written to a client that has gone', async () => {
  const client = new FakeResponse()
  client.destroy()
  const exchange = { request: fakeRequest(), response: client.response, requestId: 'req_1' }
  let taken = false
  async function* events() {
    taken = true
    yield { id: '1.0', data: '{}' }
  }
  await writeEvents(exchange, events(), { clock: manualClock(), limits: LIMITS })
  writeOnlyEvent(exchange, {})
  assert.deepEqual([client.status, taken], [undefined, false])
})

test('PL-5 a stream that cannot begin is one event without an id, and the end', async () => {
  const client = new FakeResponse()
  writeOnlyEvent({ request: fakeRequest(), response: client.response, requestId: 'req_1' }, { error: 'no' })
  assert.deepEqual([client.status, client.headers, client.text], [200, HEADERS, 'data: {"error":"no"}\n\n'])
  assert.ok(client.writableEnded)
})
