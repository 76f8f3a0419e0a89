import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { listEvents, streamedText } from '../../../test/fakes/turns.ts'
import { MoleculeError } from '../../errors.ts'
import { onAbort } from '../../wait.ts'
import type { BackendEvent } from '../backend.ts'
import { createTurnEngine, type EndEvent, type TurnStream } from './turn-engine.ts'

const never = new AbortController().signal
const done: EndEvent = { type: 'done', parts: [{ text: 'x' }], finality: 'completed' }
const aborted = (signal: AbortSignal) => new Promise<void>((resolve) => void onAbort(signal, resolve))
const codeOf = (events: readonly BackendEvent[]) => {
  const end = events.at(-1)
  return end?.type === 'failed' ? end.error.code : end?.type
}

function setUp(maxTimeMs?: number) {
  const clock = manualClock()
  return { clock, turns: createTurnEngine({ clock, outputBytesMax: 10, maxTimeMs }) }
}

test('work does not wait for a slow reader, and much waiting text becomes one event', async () => {
  const turns = createTurnEngine({ clock: manualClock(), outputBytesMax: 5000 })
  const work = async ({ emit }: TurnStream) => {
    for (let n = 0; n < 5000; n += 1) emit({ type: 'text', delta: 'x' })
    return done
  }
  const events = await listEvents(turns.run(work, never))
  assert.equal(events.length, 257)
  assert.equal(streamedText(events).length, 5000)
})

test('a thrown MoleculeError fails the turn unchanged, any other error as internal', async () => {
  const { turns } = setUp()
  const throwing = (error: Error) => listEvents(turns.run(() => Promise.reject(error), never))
  assert.equal(codeOf(await throwing(new MoleculeError('rate_limited', 'x'))), 'rate_limited')
  assert.equal(codeOf(await throwing(new Error('x'))), 'internal')
})

test('a cancelled turn waits for its work and fails as canceled, whatever the work throws', async () => {
  const { turns } = setUp()
  const cancel = new AbortController()
  let ended = false
  const running = listEvents(
    turns.run(async ({ signal }) => {
      await aborted(signal)
      await new Promise(setImmediate)
      ended = true
      throw new Error('broken')
    }, cancel.signal),
  )
  cancel.abort()
  assert.equal(codeOf(await running), 'canceled')
  assert.ok(ended)
})

test('an error with the same code as the stop keeps its own message and details', async () => {
  const { turns } = setUp()
  const cancel = new AbortController()
  const running = listEvents(
    turns.run(async ({ signal }) => {
      await aborted(signal)
      return { type: 'failed', error: new MoleculeError('canceled', 'command "x" was canceled') }
    }, cancel.signal),
  )
  cancel.abort()
  const end = (await running).at(-1)
  assert.equal(end?.type === 'failed' && end.error.message, 'command "x" was canceled')
})

test('a callback that fails the turn stops its work, and the turn ends with that error', async () => {
  const { turns } = setUp()
  const work = async ({ fail, signal }: TurnStream): Promise<EndEvent> => {
    setImmediate(() => fail(new Error('cannot parse')))
    await aborted(signal)
    return { type: 'failed', error: new MoleculeError('canceled', 'the process was stopped') }
  }
  const end = (await listEvents(turns.run(work, never))).at(-1)
  assert.ok(end?.type === 'failed')
  assert.deepEqual([end.error.code, end.error.message], ['internal', 'cannot parse'])
})

test('AG-1 max_time pauses while a person is asked', async () => {
  const { turns, clock } = setUp(1000)
  const answer = Promise.withResolvers<string>()
  const running = listEvents(
    turns.run(async ({ pauseDuring, signal }) => {
      await pauseDuring(answer.promise)
      await aborted(signal)
      return done
    }, never),
  )
  await clock.settle()
  clock.advance(60_000)
  answer.resolve('yes')
  await clock.settle()
  clock.advance(900)
  await clock.settle()
  let ended = false
  void running.then(() => (ended = true))
  await clock.settle()
  assert.ok(!ended)
  clock.advance(200)
  await running
})

test('events emitted while the reader is busy come before the end', async () => {
  const { turns } = setUp()
  const seen: string[] = []
  const busy = Promise.withResolvers<void>()
  const work = async ({ emit }: TurnStream) => {
    emit({ type: 'session', token: 's' })
    await busy.promise
    emit({ type: 'usage', inputTokens: 1 })
    return done
  }
  for await (const event of turns.run(work, never)) {
    seen.push(event.type)
    busy.resolve()
    await new Promise(setImmediate)
  }
  assert.deepEqual(seen, ['session', 'usage', 'done'])
})
