import assert from 'node:assert/strict'
import { test } from 'node:test'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import { MoleculeError } from '../errors.ts'
import type { Inbox, Lease, Outcome } from '../inbox/inbox.ts'
import { silentLog } from '../log.ts'
import { settleTurn } from './settle-turn.ts'

const LEASE = { messageId: 'm', epoch: 1 } as Lease
const DONE: Outcome = { type: 'done', finality: 'completed', parts: [{ text: 'reply' }], artifacts: [] }

function setUp(refusals: (Error | undefined)[]) {
  const offered: Outcome[] = []
  const settle: Inbox['settle'] = async (_key, outcome) => {
    offered.push(outcome)
    const refusal = refusals.shift()
    if (refusal !== undefined) throw refusal
    return 'settled'
  }
  const clock = manualClock()
  const leaving = new AbortController()
  const settling = {
    inbox: { settle } as Partial<Inbox> as Inbox,
    clock,
    log: silentLog,
    end: { outcome: DONE, unsent: { from: 1, events: [] } },
    leaving: leaving.signal,
  }
  return { offered, clock, leaving, settling }
}
const away = () => new MoleculeError('store_unavailable', 'away', { retryable: true })
const refused = () => new MoleculeError('invalid_request', 'a text contains the character U+0000')
const running = new AbortController().signal

test('a reply is offered to an unreachable inbox until it is stored', async () => {
  const { offered, clock, settling } = setUp([away(), away(), away()])
  const settled = settleTurn(LEASE, settling, running)
  for (let look = 0; look < 4; look++) {
    await clock.settle()
    clock.advance(10_000)
  }
  await settled
  assert.deepEqual(offered, [DONE, DONE, DONE, DONE])
})

test('a reply that the store refuses for good becomes a dead letter with the reason', async () => {
  const { offered, settling } = setUp([refused()])
  await settleTurn(LEASE, settling, running)
  const [first, second] = offered
  assert.deepEqual([offered.length, first?.type], [2, 'done'])
  assert.equal(second?.type === 'dead' && second.failure.code, 'invalid_request')
})

test('a dead letter that is refused is dropped, and so is any outcome when the runtime shuts down', async () => {
  const twice = setUp([refused(), refused()])
  await settleTurn(LEASE, twice.settling, running)
  assert.equal(twice.offered.length, 2)
  const left = setUp([away()])
  left.leaving.abort()
  await settleTurn(LEASE, left.settling, running)
  assert.equal(left.offered.length, 1)
})
