import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { manualClock } from '../../../../test/fakes/manual-clock.ts'
import { countTimers } from '../../../../test/fakes/timer-count.ts'
import { answerOneAtATime, closeServer, createInFlight, urlOf } from './listen.ts'

/** A response that the test finishes. */
function openResponse(fields: { writableFinished?: boolean; destroyed?: boolean } = {}) {
  const response = new EventEmitter()
  return Object.assign(response, { shouldKeepAlive: true, ...fields }) as unknown as ServerResponse & EventEmitter
}

const isDone = async (promise: Promise<unknown>): Promise<boolean> =>
  Promise.race([promise.then(() => true), nextTurn().then(() => false)])

test('PL-1 the URL of a door has an IPv6 address in brackets, and loopback for all addresses', () => {
  const server = { address: () => ({ port: 8080 }) } as unknown as Server
  assert.deepEqual(
    ['0.0.0.0', '::', 'fd00::1', '10.0.0.1', 'a.test'].map((host) => urlOf(server, host)),
    ['127.0.0.1', '[::1]', '[fd00::1]', '10.0.0.1', 'a.test'].map((host) => `http://${host}:8080`),
  )
})

test('RE-3 the next request of a connection waits for the answer before it; other connections do not', () => {
  const answered: ServerResponse[] = []
  const listener = answerOneAtATime((_request, response) => void answered.push(response))
  const socket = {}
  const take = (of: object, response: ServerResponse) => listener({ socket: of } as IncomingMessage, response)
  const [first, second, third, elsewhere] = [openResponse(), openResponse(), openResponse(), openResponse()]
  take(socket, first)
  take(socket, second)
  take(socket, third)
  take({}, elsewhere)
  assert.deepEqual(answered, [first, elsewhere])
  first.emit('close')
  assert.deepEqual(answered, [first, elsewhere, second])
  second.emit('close')
  assert.deepEqual(answered, [first, elsewhere, second, third])
})

test('RE-3 a request after an answer that was sent or lost does not wait', () => {
  for (const fields of [{ writableFinished: true }, { destroyed: true }]) {
    const answered: ServerResponse[] = []
    const listener = answerOneAtATime((_request, response) => void answered.push(response))
    const request = { socket: {} } as IncomingMessage
    const [before, next] = [openResponse(fields), openResponse()]
    listener(request, before)
    listener(request, next)
    assert.deepEqual(answered, [before, next])
  }
})

test('RE-5 a door without open answers is finished at once', async () => {
  const idle = createInFlight()
  assert.ok(await isDone(idle.finish()))
  const inFlight = createInFlight()
  const response = openResponse()
  inFlight.add(response)
  response.emit('close')
  assert.ok(await isDone(inFlight.finish()), 'an answer that has closed counts no more')
})

test('RE-5 a closing door waits for every open answer, and each connection ends with its answer', async () => {
  const inFlight = createInFlight()
  const [first, second, late] = [openResponse(), openResponse(), openResponse()]
  inFlight.add(first)
  inFlight.add(second)
  assert.deepEqual([first.shouldKeepAlive, second.shouldKeepAlive], [true, true])
  const finished = inFlight.finish()
  assert.deepEqual([first.shouldKeepAlive, second.shouldKeepAlive], [false, false])
  assert.equal(await isDone(finished), false)
  inFlight.add(late)
  assert.equal(late.shouldKeepAlive, false)
  first.emit('close')
  assert.equal(await isDone(finished), false)
  second.emit('close')
  assert.equal(await isDone(finished), false)
  late.emit('close')
  assert.ok(await isDone(finished))
})

test('RE-5 one open answer is enough to wait for, and answers that close before the end do not finish it', async () => {
  const inFlight = createInFlight()
  const [early, open] = [openResponse(), openResponse()]
  inFlight.add(early)
  early.emit('close')
  inFlight.add(open)
  const finished = inFlight.finish()
  assert.equal(await isDone(finished), false)
  open.emit('close')
  assert.ok(await isDone(finished))
})

/** A server and sockets that note what happens to them, in order. */
function openServer() {
  const { clock, timers } = countTimers(manualClock())
  const events: string[] = []
  const socketsClosed = Promise.withResolvers<void>()
  let onClosed: () => void = () => undefined
  const server = {
    close(callback: () => void) {
      events.push('close')
      onClosed = callback
    },
    closeAllConnections: () => void events.push('closeAllConnections'),
  } as unknown as Server
  const inFlight = createInFlight()
  const response = openResponse()
  inFlight.add(response)
  const closing = closeServer(server, {
    endWaits: () => void events.push('endWaits'),
    closeSockets() {
      events.push('closeSockets')
      return socketsClosed.promise
    },
    inFlight,
    clock,
    graceMs: 5000,
  })
  const { resolve: endSockets } = socketsClosed
  return { advance: clock.advance, events, response, closing, endSockets, onClosed: () => onClosed(), timers }
}

test('RE-5 closing takes no new connection, ends waits and sockets, and lets answers finish', async () => {
  const { events, response, closing, endSockets, onClosed, timers } = openServer()
  assert.deepEqual(events, ['close', 'endWaits', 'closeSockets'])
  assert.equal(await isDone(closing), false)
  response.emit('close')
  await nextTurn()
  assert.deepEqual(events, ['close', 'endWaits', 'closeSockets', 'closeAllConnections'])
  onClosed()
  assert.equal(await isDone(closing), false, 'the sockets are still open')
  endSockets()
  assert.ok(await isDone(closing))
  assert.equal(timers(), 0, 'no timer is left')
})

test('RE-5 closing waits for an answer only as long as its grace, and for the last connection', async () => {
  const { events, closing, endSockets, onClosed, advance } = openServer()
  advance(4999)
  await nextTurn()
  assert.equal(events.includes('closeAllConnections'), false)
  advance(1)
  await nextTurn()
  assert.equal(events.at(-1), 'closeAllConnections')
  endSockets()
  assert.equal(await isDone(closing), false, 'a connection is still open')
  onClosed()
  assert.ok(await isDone(closing))
})
