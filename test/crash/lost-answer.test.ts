/**
 * The answer to a COMMIT is lost: the write is stored, and its caller gets `store_unavailable`. Every inbox write may
 * then be repeated. A message that such a write leased belongs to a live worker that does not know of it, so no
 * takeover happens. The process of that worker must find the lease and release it.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { MoleculeError } from '../../src/errors.ts'
import type { Lease } from '../../src/inbox/worker.ts'
import { openSqlite } from '../../src/store/sqlite/sqlite.ts'
import { type Store, sql } from '../../src/store/store.ts'
import { letterTo } from '../fakes/letters.ts'
import { manualClock } from '../fakes/manual-clock.ts'
import { openLocalInbox } from '../harness/stores/local-inbox.ts'

const WORKSPACE = 'ws_1'
const LEASE_MS = 30_000
const SWEEP_MS = 5000
const done = (text: string) => ({ type: 'done', finality: 'completed', parts: [{ text }], artifacts: [] }) as const
const isUnavailable = (error: unknown) =>
  error instanceof MoleculeError && error.code === 'store_unavailable' && error.retryable

/** A store that, after `loseNext`, commits the next write and rejects it as unavailable. */
function losingAnswers(store: Store) {
  let losing = false
  const unavailable = () => new MoleculeError('store_unavailable', 'the answer was lost', { retryable: true })
  const write: Store['write'] = async (transaction, key) => {
    const lost = losing
    losing = false
    const value = await store.write(transaction, key)
    if (lost) throw unavailable()
    return value
  }
  const loseNext = () => {
    losing = true
  }
  return { store: { ...store, write }, loseNext }
}

/** One process with one worker on a workspace of one slot, with a manual clock. */
async function prepare(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'molecule-crash-'))
  const clock = manualClock()
  const { store, loseNext } = losingAnswers(openSqlite({ path: join(folder, 'molecule.db'), clock }))
  const local = openLocalInbox(store, clock)
  const stop = new AbortController()
  t.after(async () => {
    stop.abort()
    local.close()
    await store.close()
    rmSync(folder, { recursive: true })
  })
  await store.write(() =>
    sql('insert into workspace_load (workspace_id, hosted, slots) values ($1, 1, 1)', [WORKSPACE]),
  )
  const worker = { id: 'host.worker', workspaces: 'hosted' } as const
  const directives = local.inbox.leases(worker, stop.signal)[Symbol.asyncIterator]()
  let next = directives.next()
  const take = async (): Promise<Lease> => {
    const { value } = await next
    next = directives.next()
    assert.equal(value?.type, 'lease')
    return value.lease
  }
  /** Advances the clock and waits for the sweeps of that time. */
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += SWEEP_MS) {
      clock.advance(SWEEP_MS)
      for (let turn = 0; turn < 20; turn++) await clock.settle()
    }
  }
  return { local, loseNext, take, pass }
}

test('RE-3 IN-1 when the answer to an admission is lost, its leased message is recovered and runs, and sent again it finds its task', async (t) => {
  const { local, loseNext, take, pass } = await prepare(t)
  const letter = letterTo(WORKSPACE, { messageId: 'only' })
  loseNext()
  await assert.rejects(local.reception.admit(letter), isUnavailable)
  const again = await local.reception.admit(letter)
  assert.equal(again.duplicate, true)
  await pass(2 * SWEEP_MS)
  const lease = await take()
  // No worker had begun it, so there is no loss.
  assert.deepEqual([lease.taskId, lease.losses, lease.interrupted], [again.taskId, 0, false])
  assert.equal(await local.inbox.settle(lease, done('hello')), 'settled')
  assert.equal((await local.reception.task(again.taskId))?.status.state, 'TASK_STATE_COMPLETED')
})

test('RE-3 IN-10 when the answer to a settle is lost, repeating it changes nothing, and the message that got its slot is recovered and runs', async (t) => {
  const { local, loseNext, take, pass } = await prepare(t)
  const first = await local.reception.admit(letterTo(WORKSPACE))
  const second = await local.reception.admit(letterTo(WORKSPACE))
  const lease = await take()
  loseNext()
  await assert.rejects(local.inbox.settle(lease, done('one')), isUnavailable)
  assert.equal(await local.inbox.settle(lease, done('one')), 'settled')
  assert.equal((await local.reception.task(first.taskId))?.status.state, 'TASK_STATE_COMPLETED')
  await pass(2 * SWEEP_MS)
  const next = await take()
  assert.deepEqual([next.taskId, next.losses], [second.taskId, 0])
  assert.equal(await local.inbox.settle(next, done('two')), 'settled')
})

test('RE-3 IN-3 a turn that runs longer than a lease without a renewal stays with its own process', async (t) => {
  const { local, take, pass } = await prepare(t)
  await local.reception.admit(letterTo(WORKSPACE))
  const lease = await take()
  await pass(4 * LEASE_MS)
  assert.deepEqual(await local.inbox.extend([lease]), ['held'])
  assert.equal(await local.inbox.settle(lease, done('late but ours')), 'settled')
})
