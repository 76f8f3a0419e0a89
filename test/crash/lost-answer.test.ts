/**
 * The answer to a COMMIT is lost: what was written is stored, and whoever wrote it is told that the store is away. Each
 * inbox write may then simply be repeated. What such a write has leased is known to nobody, though it stands in the name
 * of a worker that is alive; so it must be found again and given back, by the very process of that worker.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { MoleculeError } from '../../src/errors.ts'
import type { Lease } from '../../src/inbox/inbox.ts'
import { createLocalInbox } from '../../src/inbox/local-inbox.ts'
import { silentLog } from '../../src/log.ts'
import { openSqlite } from '../../src/store/sqlite/sqlite.ts'
import { type Store, sql, statement } from '../../src/store/store.ts'
import { letterTo } from '../fakes/letters.ts'
import { manualClock } from '../fakes/manual-clock.ts'

const WORKSPACE = 'ws_1'
const LEASE_MS = 30_000
const SWEEP_MS = 5000
const done = (text: string) => ({ type: 'done', finality: 'completed', parts: [{ text }], artifacts: [] }) as const
const isAway = (error: unknown) =>
  error instanceof MoleculeError && error.code === 'store_unavailable' && error.retryable

/** A store that commits the next write and then says that it is away. */
function forgetful(store: Store) {
  let losing = false
  const away = () => new MoleculeError('store_unavailable', 'the answer was lost', { retryable: true })
  const write: Store['write'] = async (transaction, key) => {
    const lost = losing
    losing = false
    const value = await store.write(transaction, key)
    if (lost) throw away()
    return value
  }
  const loseNext = () => {
    losing = true
  }
  return { store: { ...store, write }, loseNext }
}

/** One process with one worker on a workspace with one slot; time is moved by hand. */
async function prepare(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'molecule-crash-'))
  const clock = manualClock()
  const { store, loseNext } = forgetful(openSqlite({ path: join(folder, 'molecule.db'), clock }))
  const keepSession = () => statement('select 1')
  const local = createLocalInbox({ store, clock, log: silentLog, host: 'host', keepSession })
  const leaving = new AbortController()
  t.after(async () => {
    leaving.abort()
    local.close()
    await store.close()
    rmSync(folder, { recursive: true })
  })
  await store.write(() =>
    sql('insert into workspace_load (workspace_id, hosted, slots) values ($1, 1, 1)', [WORKSPACE]),
  )
  const worker = { id: 'host.worker', workspaces: 'hosted' } as const
  const directives = local.inbox.leases(worker, leaving.signal)[Symbol.asyncIterator]()
  let next = directives.next()
  const take = async (): Promise<Lease> => {
    const { value } = await next
    next = directives.next()
    assert.equal(value?.type, 'lease')
    return value.lease
  }
  /** Lets the sweeps of so much time come, and to their end. */
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += SWEEP_MS) {
      clock.advance(SWEEP_MS)
      for (let turn = 0; turn < 20; turn++) await clock.settle()
    }
  }
  return { local, loseNext, take, pass }
}

test('RE-3 IN-1 the answer to an admission is lost: its message, leased to a worker that never heard of it, is found again and run, and sent again it finds its task', async (t) => {
  const { local, loseNext, take, pass } = await prepare(t)
  const letter = letterTo(WORKSPACE, { messageId: 'only' })
  loseNext()
  await assert.rejects(local.reception.admit(letter), isAway)
  const again = await local.reception.admit(letter)
  assert.equal(again.duplicate, true)
  await pass(2 * SWEEP_MS)
  const lease = await take()
  // Nobody had begun it, so nothing was lost.
  assert.deepEqual([lease.taskId, lease.losses, lease.interrupted], [again.taskId, 0, false])
  assert.equal(await local.inbox.settle(lease, done('hello')), 'settled')
  assert.equal((await local.reception.task(again.taskId))?.status.state, 'TASK_STATE_COMPLETED')
})

test('RE-3 IN-10 the answer to a settle is lost: repeated it changes nothing, and the message that its slot went to is found again and run', async (t) => {
  const { local, loseNext, take, pass } = await prepare(t)
  const first = await local.reception.admit(letterTo(WORKSPACE))
  const second = await local.reception.admit(letterTo(WORKSPACE))
  const lease = await take()
  loseNext()
  await assert.rejects(local.inbox.settle(lease, done('one')), isAway)
  assert.equal(await local.inbox.settle(lease, done('one')), 'settled')
  assert.equal((await local.reception.task(first.taskId))?.status.state, 'TASK_STATE_COMPLETED')
  await pass(2 * SWEEP_MS)
  const next = await take()
  assert.deepEqual([next.taskId, next.losses], [second.taskId, 0])
  assert.equal(await local.inbox.settle(next, done('two')), 'settled')
})

test('RE-3 IN-3 a turn that runs longer than a lease without being renewed is not taken from its own process', async (t) => {
  const { local, take, pass } = await prepare(t)
  await local.reception.admit(letterTo(WORKSPACE))
  const lease = await take()
  await pass(4 * LEASE_MS)
  assert.deepEqual(await local.inbox.extend([lease]), ['held'])
  assert.equal(await local.inbox.settle(lease, done('late but ours')), 'settled')
})
