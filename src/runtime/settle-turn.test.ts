import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import { MoleculeError } from '../errors.ts'
import type { Inbox, Lease, NumberedEvents, Outcome } from '../inbox/worker.ts'
import { silentLog } from '../log.ts'
import { type StopReason, settleTurn } from './settle-turn.ts'

const LEASE = { messageId: 'm', epoch: 1 } as Lease
const DONE: Outcome = { type: 'done', finality: 'completed', parts: [{ text: 'reply' }], artifacts: [] }
const UNSENT: NumberedEvents = { from: 3, events: [{ type: 'status', text: 'reading' }] }
const away = () => new MoleculeError('store_unavailable', 'away', { retryable: true })

type Answer = Awaited<ReturnType<Inbox['settle']>> | MoleculeError

/** Settles on an inbox that answers as the test says, in order, and then with `settled`. */
function setUp(outcome: Outcome, { answers = [], reason }: { answers?: Answer[]; reason?: StopReason } = {}) {
  const offered: unknown[] = []
  const warned: string[] = []
  const clock = manualClock()
  const leaving = new AbortController()
  const stopped = new AbortController()
  if (reason !== undefined) stopped.abort(reason)
  const inbox: Pick<Inbox, 'settle'> = {
    async settle(_lease, given, unsent) {
      offered.push(unsent === UNSENT ? given : [given, unsent])
      if (offered.length > 20) throw new MoleculeError('internal', 'it is offered for ever')
      const answer = answers.shift() ?? 'settled'
      if (answer instanceof MoleculeError) throw answer
      return answer
    },
  }
  const settled = settleTurn(
    LEASE,
    {
      inbox: inbox as Inbox,
      clock,
      leaving: leaving.signal,
      end: { outcome, unsent: UNSENT },
      log: { ...silentLog, warn: (_fields, message) => void warned.push(message) },
    },
    stopped.signal,
  )
  return { offered, warned, clock, leaving, settled }
}

test('an unreachable inbox is asked again after 250 ms, then twice as long each time, at most 10 s', async () => {
  const waits = [250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]
  const { offered, clock, settled } = setUp(DONE, { answers: waits.map(away) })
  for (const [index, waitMs] of waits.entries()) {
    await clock.settle()
    clock.advance(waitMs - 1)
    await clock.settle()
    assert.equal(offered.length, index + 1, `not before ${waitMs} ms`)
    clock.advance(1)
    await clock.settle()
    assert.equal(offered.length, index + 2, `after ${waitMs} ms`)
  }
  await settled
  assert.deepEqual(offered, Array(9).fill(DONE))
})

test('a dead letter is offered again too; a shutdown ends the wait', async () => {
  const dead: Outcome = { type: 'dead', failure: { code: 'exit', message: 'broke' } }
  const again = setUp(dead, { answers: [away()] })
  await again.clock.settle()
  again.clock.advance(250)
  await again.settled
  assert.deepEqual(again.offered, [dead, dead])
  const left = setUp(DONE, { answers: [away(), away()] })
  await left.clock.settle()
  left.leaving.abort()
  await left.settled
  assert.deepEqual(left.offered, [DONE, DONE], 'one last try')
})

test('a result that came too late is only logged, and a stored one is not', async () => {
  const late = setUp(DONE, { answers: ['stale'] })
  await late.settled
  assert.deepEqual(late.warned, ['this result is too late: another worker has taken over the message'])
  const stored = setUp(DONE)
  await stored.settled
  assert.deepEqual([stored.warned, stored.offered], [[], [DONE]])
})

test('a refused reply becomes a dead letter without the events that were not sent', async () => {
  const { offered, settled } = setUp(DONE, { answers: [new MoleculeError('invalid_request', 'a NUL')] })
  await settled
  const failure = {
    code: 'invalid_request',
    message: 'a NUL',
    details: {},
    category: 'internal',
    sentence: 'an internal error occurred during the turn',
  }
  assert.deepEqual(offered, [DONE, [{ type: 'dead', failure }, undefined]])
})

test('a dead letter that is refused too is dropped', async () => {
  const refused = () => new MoleculeError('invalid_request', 'a text contains the character U+0000')
  const { offered, settled } = setUp(DONE, { answers: [refused(), refused()] })
  await settled
  assert.equal(offered.length, 2)
})

test('why a turn was stopped decides its outcome; what it used is stored with it', async () => {
  const usage = { inputTokens: 7 }
  const failed: Outcome = { type: 'dead', failure: { code: 'canceled', message: 'killed' }, usage }
  const released: Outcome = { type: 'released', interrupted: false }
  const settle = async (outcome: Outcome, reason?: StopReason) => {
    const { offered, settled } = setUp(outcome, reason === undefined ? {} : { reason })
    await settled
    return offered
  }
  assert.deepEqual(await settle(failed), [failed])
  assert.deepEqual(await settle(failed, 'canceled'), [{ type: 'stopped', usage }])
  assert.deepEqual(await settle(DONE, 'canceled'), [{ type: 'stopped' }])
  assert.deepEqual(await settle(failed, 'stale'), [], 'another worker has taken over')
  assert.deepEqual(await settle(DONE, 'stale'), [DONE])
  assert.deepEqual(await settle(failed, 'drain'), [{ type: 'released', interrupted: true, usage }])
  assert.deepEqual(await settle(released, 'drain'), [released])
  assert.deepEqual(await settle(DONE, 'drain'), [DONE])
})
