import assert from 'node:assert/strict'
import test from 'node:test'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import type { Clock } from '../clock.ts'
import { MoleculeError } from '../errors.ts'
import { withRetries } from './retry.ts'

/** A clock that records each wait and ends it at once. */
function hastyClock(): { clock: Clock; delays: number[] } {
  const delays: number[] = []
  const clock: Clock = {
    nowMs: () => 0,
    monotonicMs: () => 0,
    after(delayMs, callback) {
      delays.push(delayMs)
      queueMicrotask(callback)
      return () => undefined
    },
  }
  return { clock, delays }
}

const busy = (details: Record<string, unknown> = {}) =>
  new MoleculeError('queue_full', 'busy', { retryable: true, details })

test('waits double, or are as long as the platform asks, up to a minute', async () => {
  const { clock, delays } = hastyClock()
  const failures = [busy(), busy(), busy({ retryAfterMs: 2500 }), busy({ retryAfterMs: 3_600_000 })]
  const delaysSeen: number[] = []
  const work = async () => {
    const failure = failures.shift()
    if (failure) throw failure
    return 'done'
  }
  const options = { clock, onRetry: (_error: MoleculeError, delayMs: number) => delaysSeen.push(delayMs) }
  assert.equal(await withRetries(work, options), 'done')
  assert.deepEqual(delays, [1000, 2000, 2500, 60_000])
  assert.deepEqual(delaysSeen, delays)
})

test('the last failure, and an error that is not retryable, go to the caller', async () => {
  const { clock } = hastyClock()
  let tries = 0
  const failing = (error: Error) => async () => {
    tries++
    throw error
  }
  await assert.rejects(withRetries(failing(busy()), { clock }), { code: 'queue_full' })
  assert.equal(tries, 6)
  await assert.rejects(withRetries(failing(new MoleculeError('forbidden', 'no')), { clock }), { code: 'forbidden' })
  await assert.rejects(withRetries(failing(new TypeError('defect')), { clock }), TypeError)
  assert.equal(tries, 8)
})

test('an abort during the wait ends the retries with the last failure and without another try', async () => {
  const stop = new AbortController()
  let tries = 0
  const failure = new MoleculeError('store_unavailable', 'not now', { retryable: true })
  const work = async () => {
    tries += 1
    throw failure
  }
  const options = { clock: manualClock(), signal: stop.signal, onRetry: () => setImmediate(() => stop.abort()) }
  await assert.rejects(withRetries(work, options), failure)
  assert.equal(tries, 1)
})
