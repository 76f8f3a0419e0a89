import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { MoleculeError } from '../../errors.ts'
import type { Store } from '../../store/store.ts'
import { createReadiness } from './readiness.ts'

function open(write: () => Promise<unknown> = async () => undefined, read = async () => undefined) {
  const clock = manualClock()
  const state = { writes: 0, write }
  const store = {
    engine: 'sqlite',
    read,
    write: () => {
      state.writes += 1
      return state.write()
    },
  } as unknown as Store
  return { clock, state, readiness: createReadiness({ store, clock, host: 'h' }) }
}

test('RE-10 polls of /ready within five seconds share one write', async () => {
  const { clock, state, readiness } = open()
  const reasons = await Promise.all(Array.from({ length: 100 }, () => readiness.unready()))
  assert.ok(reasons.every((reason) => reason === undefined))
  clock.advance(4999)
  await readiness.unready()
  assert.equal(state.writes, 1)
  clock.advance(1)
  await readiness.unready()
  assert.equal(state.writes, 2)
})

test('RE-10 a store that cannot be written is not ready, and is ready again a second after it can', async () => {
  const full = new MoleculeError('store_unavailable', 'the store is unavailable: the disk is full', { retryable: true })
  const { clock, state, readiness } = open(() => Promise.reject(full))
  assert.equal(await readiness.unready(), full.message)
  state.write = async () => undefined
  assert.equal(await readiness.unready(), full.message)
  clock.advance(1000)
  assert.equal(await readiness.unready(), undefined)
})

test('RE-10 a platform whose own write failed a moment ago is not ready, although the probe would fit', async () => {
  const full = new MoleculeError('store_unavailable', 'the store is unavailable: the disk is full', { retryable: true })
  const { clock, state, readiness } = open()
  assert.equal(await readiness.unready(), undefined)
  state.write = () => Promise.reject(full)
  await assert.rejects(
    readiness.store.write(function* () {}),
    full,
  )
  state.write = async () => undefined
  assert.equal(await readiness.unready(), full.message)
  clock.advance(1000)
  assert.equal(await readiness.unready(), undefined)
  state.write = () => Promise.reject(new MoleculeError('not_found', 'no such workspace'))
  await assert.rejects(
    readiness.store.write(function* () {}),
    /no such workspace/,
  )
  assert.equal(await readiness.unready(), undefined)
})

test('RE-10 a write without an answer is not ready after three seconds and is not repeated', async () => {
  const { clock, state, readiness } = open(() => new Promise(() => undefined))
  const polls = [readiness.unready(), readiness.unready()]
  await new Promise(setImmediate)
  clock.advance(3000)
  assert.deepEqual(await Promise.all(polls), Array(2).fill('the store does not answer a write'))
  assert.equal(state.writes, 1)
})

test('RE-10 an internal message is not shown; a store that cannot be read is noticed at once', async () => {
  const unreadable = open(undefined, () => Promise.reject(new Error('secret path')))
  assert.equal(await unreadable.readiness.unready(), 'the store cannot be read or written')
  assert.equal(unreadable.state.writes, 0)
  const stopping = open()
  stopping.readiness.shutDown()
  assert.equal(await stopping.readiness.unready(), 'shutting down')
})
