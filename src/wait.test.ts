/** Every wait of wait.ts, ended in every way. None leaves a listener on the signal. */
import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { type TestContext, test } from 'node:test'
import { manualClock } from '../test/fakes/manual-clock.ts'
import { abortable, abortableOr, createWaitQueue, createWakeUp, onAbort, sleep } from './wait.ts'

const reason = new Error('stop')

/** A controller whose signal must have no listener when the test ends. */
function controllerOf(t: TestContext): AbortController {
  const controller = new AbortController()
  t.after(() => assert.deepEqual(getEventListeners(controller.signal, 'abort'), []))
  return controller
}

test('onAbort calls back once, at once on an aborted signal, and not after its release', (t) => {
  const controller = controllerOf(t)
  let calls = 0
  const count = () => {
    calls += 1
  }
  onAbort(controller.signal, count)
  onAbort(controller.signal, () => assert.fail('it was released'))()
  onAbort(undefined, () => assert.fail('there is no signal'))
  controller.abort(reason)
  assert.equal(calls, 1)
  onAbort(controller.signal, count)
  assert.equal(calls, 2)
})

test('abortable gives the value or the error of its promise', async (t) => {
  const { signal } = controllerOf(t)
  assert.equal(await abortable(Promise.resolve(1), signal), 1)
  await assert.rejects(abortable(Promise.reject(reason), signal), reason)
})

test('abortable rejects with the reason of the signal, while the promise is still open', async (t) => {
  const controller = controllerOf(t)
  const waiting = abortable(new Promise(() => undefined), controller.signal)
  controller.abort(reason)
  await assert.rejects(waiting, reason)
  await assert.rejects(abortable(new Promise(() => undefined), controller.signal), reason)
})

test('abortableOr gives the value, the error, or the fallback after an abort', async (t) => {
  const controller = controllerOf(t)
  assert.equal(await abortableOr(Promise.resolve(1), controller.signal, 'none'), 1)
  await assert.rejects(abortableOr(Promise.reject(reason), controller.signal, 'none'), reason)
  const waiting = abortableOr(new Promise(() => undefined), controller.signal, 'none')
  controller.abort()
  assert.equal(await waiting, 'none')
})

test('a promise that rejects after its wait was aborted causes no unhandled rejection', async (t) => {
  const controller = controllerOf(t)
  const late = Promise.withResolvers<never>()
  const waiting = abortableOr(late.promise, controller.signal, 'none')
  controller.abort()
  assert.equal(await waiting, 'none')
  late.reject(reason)
  await new Promise(setImmediate)
})

test('sleep ends after its delay, on abort, and at once on an aborted signal', async (t) => {
  const controller = controllerOf(t)
  const clock = manualClock()
  const first = sleep(clock, 100, controller.signal)
  clock.advance(100)
  await first
  const second = sleep(clock, 100, controller.signal)
  controller.abort()
  await second
  await sleep(clock, 100, controller.signal)
})

test('a wake-up ends the current wait, and without one the next', async (t) => {
  const { signal } = controllerOf(t)
  const wakeUp = createWakeUp()
  const waiting = wakeUp.wait(signal)
  wakeUp.wake()
  await waiting
  wakeUp.wake()
  await wakeUp.wait(signal)
})

test('a wait for a wake-up ends on abort and on its timer', async (t) => {
  const controller = controllerOf(t)
  const clock = manualClock()
  const wakeUp = createWakeUp()
  const timed = wakeUp.wait(controller.signal, (callback) => clock.after(50, callback))
  clock.advance(50)
  await timed
  const aborted = wakeUp.wait(controller.signal, () => () => undefined)
  controller.abort()
  await aborted
  await wakeUp.wait(controller.signal)
})

test('a queue gives its items in order, to a reader that came before or after them', async (t) => {
  const { signal } = controllerOf(t)
  const queue = createWaitQueue<number>()
  const first = queue.take(signal)
  queue.put(1)
  queue.put(2)
  assert.deepEqual([await first, await queue.take(signal)], [1, 2])
  const third = queue.take(signal)
  queue.put(3)
  assert.equal(await third, 3)
})

test('a queue gives nothing after an abort and keeps its items for clear', async (t) => {
  const controller = controllerOf(t)
  const queue = createWaitQueue<number>()
  const waiting = queue.take(controller.signal)
  controller.abort()
  assert.equal(await waiting, undefined)
  queue.put(1)
  assert.equal(await queue.take(controller.signal), undefined)
  assert.deepEqual(queue.clear(), [1])
})

test('taking from an empty queue ends with its timer', async (t) => {
  const { signal } = controllerOf(t)
  const clock = manualClock()
  const queue = createWaitQueue<number>()
  const waiting = queue.take(signal, (callback) => clock.after(50, callback))
  clock.advance(50)
  assert.equal(await waiting, undefined)
})
