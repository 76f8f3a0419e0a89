import assert from 'node:assert/strict'
import { test } from 'node:test'
import { letterTo } from '../../test/fakes/letters.ts'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import { MoleculeError } from '../errors.ts'
import type { Inbox, Lease } from '../inbox/worker.ts'
import { silentLog } from '../log.ts'
import { createStallTimer } from './stall-timer.ts'
import { createTurnAsks } from './turn-asks.ts'

const LEASE: Lease = {
  conversationId: 'c',
  taskId: 't',
  messageId: 'm',
  epoch: 1,
  contextId: 'c',
  ...letterTo('ws_1'),
  idempotencyKey: 'k',
  failures: 0,
  losses: 0,
  interrupted: false,
  sessionRetried: false,
}

/** The asks of a turn on an inbox that first answers with these errors and then stores each ask. */
function setUp(...errors: Error[]) {
  const clock = manualClock()
  const stored: unknown[] = []
  const inbox: Pick<Inbox, 'ask'> = {
    async ask(_key, given) {
      stored.push(given)
      const error = errors.shift()
      if (error !== undefined) throw error
      return 'held'
    },
  }
  const stall = createStallTimer(clock, undefined)
  const asks = createTurnAsks(LEASE, {
    inbox: inbox as Inbox,
    clock,
    stall,
    log: silentLog,
    onStanding: assert.fail,
  })
  const ask = (id: string) => asks.ask({ id, tool: 'Bash', subject: 'ls' }, new AbortController().signal)
  return { clock, stored, asks, ask }
}

/** The decision, or `open`: a decision that never comes must not hang the test. */
async function soon(asked: Promise<string>, clock: { settle(): Promise<void> }): Promise<string> {
  let decision = 'open'
  void asked.then((made) => {
    decision = made
  })
  for (let turn = 0; turn < 20 && decision === 'open'; turn++) await clock.settle()
  return decision
}

test('AG-16 an ask goes to the inbox with its tool and subject, again each second while the inbox is away', async () => {
  const { clock, stored, asks, ask } = setUp(new MoleculeError('store_unavailable', 'away', { retryable: true }))
  const asked = ask('an id of the agent')
  await clock.settle()
  const sent = {
    kind: 'permission',
    id: '1',
    tool: 'Bash',
    subject: 'ls',
    parts: [{ text: 'waiting for permission to use Bash' }],
  }
  clock.advance(999)
  await clock.settle()
  assert.deepEqual(stored, [sent])
  clock.advance(1)
  await clock.settle()
  assert.deepEqual(stored, [sent, sent])
  asks.deliverAnswer('1', 'allowed')
  assert.equal(await soon(asked, clock), 'allowed')
})

test('AG-16 an ask that the inbox refuses for good is denied; an ask with the id of an answered one has its answer', async () => {
  const { clock, asks, ask } = setUp(new MoleculeError('invalid_request', 'no'))
  assert.equal(await soon(ask('1'), clock), 'denied')
  const second = ask('2')
  await clock.settle()
  asks.deliverAnswer('2', 'allowed')
  assert.deepEqual([await soon(second, clock), await soon(ask('2'), clock)], ['allowed', 'allowed'])
})
