import assert from 'node:assert/strict'
import { test } from 'node:test'
import { letterTo } from '../../test/fakes/letters.ts'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import { waitUntil } from '../../test/harness/wait.ts'
import type { Backend } from '../backends/backend.ts'
import type { Inbox, Lease, Outcome, RenewedStanding } from '../inbox/worker.ts'
import { silentLog } from '../log.ts'
import { onAbort } from '../wait.ts'
import { createRuntime } from './runtime.ts'

const MINUTE_MS = 60_000
const RENEW_MS = 10_000

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

/** An inbox with one lease, whose standing the test sets. */
function createOneLeaseInbox(standing: () => RenewedStanding) {
  const settled: Outcome[] = []
  const inbox: Inbox = {
    async *leases(_worker, signal) {
      yield { type: 'lease', lease: LEASE }
      await new Promise<void>((resolve) => onAbort(signal, resolve))
    },
    begin: async () => 'held',
    extend: async (keys) => keys.map(standing),
    append: async () => 'held',
    async settle(_key, outcome) {
      settled.push(outcome)
      return 'settled'
    },
    suspend: async () => 'held',
    resume: async () => 'held',
    ask: async () => 'refused',
  }
  return { inbox, settled }
}

test('TW-1 IN-9 the silence of a turn that waits for another agent is no stall', async () => {
  const clock = manualClock()
  let standing: RenewedStanding = 'waiting'
  const { inbox, settled } = createOneLeaseInbox(() => standing)
  let runs = 0
  const backend: Backend = {
    name: 'silent',
    stallMs: 5 * MINUTE_MS,
    validate: async () => ({ ok: true }),
    async *run(_turn, signal) {
      runs += 1
      await new Promise<void>((resolve) => onAbort(signal, resolve))
      yield { type: 'activity' }
    },
    close: async () => undefined,
  }
  const brief = { runtime: 'x', options: {}, systemPrompt: '', workingDir: '/', maxAttempts: 1, env: {} }
  const runtime = createRuntime({
    inbox,
    clock,
    log: silentLog,
    worker: { id: 'w', workspaces: 'hosted' },
    brief: async () => brief,
    build: () => backend,
  })
  runtime.start()
  await waitUntil(() => runs === 1, 'the turn')
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += RENEW_MS) {
      clock.advance(RENEW_MS)
      await clock.settle()
    }
  }
  await pass(30 * MINUTE_MS)
  assert.deepEqual(settled, [])
  standing = 'held'
  await pass(6 * MINUTE_MS)
  await waitUntil(() => settled.length === 1, 'the end of the turn')
  assert.match(JSON.stringify(settled[0]), /silent for 5m/)
  await runtime.drain(0)
})
