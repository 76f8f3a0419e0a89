import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { leaseOf } from '../../test/fakes/letters.ts'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import { MoleculeError } from '../errors.ts'
import type { Inbox, LeaseStanding } from '../inbox/worker.ts'
import { silentLog } from '../log.ts'
import { createTurnAsks } from './turn-asks.ts'

const LEASE = leaseOf()
const never = new AbortController().signal

type Answer = Awaited<ReturnType<Inbox['ask']>> | Error

/** The asks of a turn on an inbox that answers as the test says, in order; the last answer is repeated. */
function setUp(...given: [Answer, ...Answer[]]) {
  const answers = [...given]
  const stored: string[] = []
  const sent: unknown[] = []
  const standings: LeaseStanding[] = []
  let paused = 0
  const clock = manualClock()
  const inbox = {
    async ask(_key: unknown, asked: { id: string }) {
      stored.push(asked.id)
      sent.push(asked)
      const answer = answers.length > 1 ? answers.shift() : answers[0]
      if (answer instanceof Error) throw answer
      return answer
    },
  } as unknown as Inbox
  const stall = {
    pause() {
      paused += 1
      return () => {
        paused -= 1
      }
    },
  } as never
  const asks = createTurnAsks(LEASE, {
    inbox,
    clock,
    stall,
    log: silentLog,
    onStanding: (standing) => void standings.push(standing),
  })
  const ask = (id: string, subject = 'ls', signal = never) => asks.ask({ id, tool: 'Bash', subject } as never, signal)
  return { ask, asks, stored, sent, standings, clock, paused: () => paused }
}

/** The decision, or `open`: a decision that never comes must not hang the test. */
async function soon(asked: Promise<string>): Promise<string> {
  let decision = 'open'
  void asked.then((made) => {
    decision = made
  })
  for (let turn = 0; turn < 20 && decision === 'open'; turn++) await nextTurn()
  return decision
}

test('an ask waits for its answer with the stall timer paused; the next ask comes after it; ids are numbers', async () => {
  const { ask, asks, stored, paused } = setUp('held')
  const [first, second] = [ask('an id of the agent'), ask('another')]
  await nextTurn()
  assert.deepEqual([stored, paused()], [['1'], 1])
  asks.deliverAnswer('7', 'allowed')
  asks.deliverAnswer('1', 'allowed')
  assert.equal(await soon(first), 'allowed')
  await nextTurn()
  assert.deepEqual([stored, paused()], [['1', '2'], 1])
  asks.deliverAnswer('2', 'denied')
  assert.equal(await soon(second), 'denied')
  assert.equal(paused(), 0)
})

test('an ask that is refused, or whose lease is lost, is denied, and the turn hears of the lease', async () => {
  const { ask, standings, paused } = setUp('refused', 'stop')
  assert.equal(await soon(ask('1')), 'denied')
  assert.deepEqual(standings, [])
  assert.equal(await soon(ask('2')), 'denied')
  assert.deepEqual([standings, paused()], [['stop'], 0])
})

test('AG-16 an ask goes to the inbox with its tool and subject, again each second while the inbox is away; another failure denies', async () => {
  const away = new MoleculeError('store_unavailable', 'away', { retryable: true })
  const { ask, asks, stored, sent, clock } = setUp(away, away, 'held', 'held', new Error('a bug'))
  const asked = ask('1')
  await nextTurn()
  for (const count of [2, 3]) {
    clock.advance(999)
    await nextTurn()
    assert.equal(stored.length, count - 1)
    clock.advance(1)
    await nextTurn()
    assert.equal(stored.length, count)
  }
  const parts = [{ text: 'waiting for permission to use Bash' }]
  const ofAsk = { kind: 'permission', id: '1', tool: 'Bash', subject: 'ls', parts }
  assert.deepEqual(sent, [ofAsk, ofAsk, ofAsk])
  asks.deliverAnswer('1', 'allowed')
  assert.deepEqual([await soon(asked), await soon(ask('1'))], ['allowed', 'allowed'], 'an answered ask has its answer')
  assert.equal(await soon(ask('2')), 'denied')
})

test('an aborted turn denies: while it waits for the answer, for the inbox, and before it asks', async () => {
  const abort = new AbortController()
  const { ask, stored, paused } = setUp('held')
  const asked = ask('1', 'ls', abort.signal)
  await nextTurn()
  abort.abort()
  assert.equal(await soon(asked), 'denied')
  assert.equal(await soon(ask('2', 'ls', abort.signal)), 'denied')
  assert.deepEqual([stored, paused()], [['1'], 0])
  const retrying = new AbortController()
  const unreachable = setUp(new MoleculeError('store_unavailable', 'away', { retryable: true }))
  const waiting = unreachable.ask('1', 'ls', retrying.signal)
  await nextTurn()
  retrying.abort()
  assert.equal(await soon(waiting), 'denied')
})

test('a subject that is too long to be shown is denied and not stored', async () => {
  const { ask, asks, stored } = setUp('held')
  assert.equal(await soon(ask('1', 'x'.repeat(256 * 1024 + 1))), 'denied')
  assert.deepEqual(stored, [])
  const longest = ask('2', 'x'.repeat(256 * 1024))
  await nextTurn()
  asks.deliverAnswer('1', 'allowed')
  assert.equal(await soon(longest), 'allowed')
})
