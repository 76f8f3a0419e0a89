import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { letterTo } from '../../test/fakes/letters.ts'
import { manualClock } from '../../test/fakes/manual-clock.ts'
import { temporaryDir } from '../../test/harness/process-harness.ts'
import { waitUntil } from '../../test/harness/wait.ts'
import type { Backend } from '../backends/backend.ts'
import { wireWorkspaces } from '../cli/wire-workspaces.ts'
import { MoleculeError } from '../errors.ts'
import { createLocalInbox } from '../inbox/local/local-inbox.ts'
import { silentLog } from '../log.ts'
import { openSqlite } from '../store/sqlite/sqlite.ts'
import { keepSession } from '../workspaces/sessions.ts'
import { createRuntime } from './runtime.ts'

const HOST = 'here'
const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS

/** A platform on a clock that the test moves; its provider refuses each turn. `restart` begins a new process. */
function setUp(t: TestContext, error: () => MoleculeError) {
  const dataDir = temporaryDir(t)
  const clock = manualClock(Date.parse('2026-11-15T12:00:00Z'))
  const triedAtMs: number[] = []
  let processes = 0
  const open = () => {
    const store = openSqlite({ path: join(dataDir, 'molecule.db'), clock })
    const here = { store, clock, log: silentLog, host: HOST }
    const wired = wireWorkspaces({ ...here, dataDir, check: async () => ({ ok: true }) })
    const local = createLocalInbox({ ...here, keepSession: (key, token) => keepSession(HOST, key, token) })
    const build = (): Backend => ({
      name: 'refused',
      validate: async () => ({ ok: true }),
      async *run() {
        triedAtMs.push(clock.nowMs())
        yield { type: 'failed', error: error() }
      },
      close: async () => undefined,
    })
    const worker = { id: `${HOST}.${++processes}`, workspaces: 'hosted' as const }
    const runtime = createRuntime({ ...here, inbox: local.inbox, worker, brief: wired.brief, build })
    runtime.start()
    const close = async () => {
      const drained = runtime.drain(0)
      // The drain waits for its own limit on this clock.
      await clock.settle()
      await drained
      local.close()
      await store.close()
    }
    return { wired, local, close }
  }
  let running = open()
  t.after(() => running.close())
  return {
    clock,
    triedAtMs,
    platform: () => running,
    async restart() {
      await running.close()
      running = open()
    },
  }
}

test('RT-14 RT-6 a message without an answer is tried on schedule for an hour, in two processes of the platform', async (t) => {
  const { clock, triedAtMs, platform, restart } = setUp(
    t,
    () => new MoleculeError('rate_limited', 'HTTP 429', { retryable: true }),
  )
  const { id } = await platform().wired.workspaces.create({ name: 'w' })
  const { taskId } = await platform().local.reception.admit(letterTo(id))
  const task = () => platform().local.reception.task(taskId)
  const waits = [5, 10, 20, 60, 120, 300, 600, 600, 600, 600, 600, 120].map((seconds) => seconds * SECOND_MS)
  for (const [index, waitMs] of waits.entries()) {
    await waitUntil(async () => (await task())?.status.message?.metadata?.['next_try_at'] !== undefined, 'a next try')
    const nextTryAt = (await task())?.status.message?.metadata?.['next_try_at']
    assert.equal(nextTryAt, new Date(clock.nowMs() + waitMs).toISOString(), `wait ${index + 1}`)
    if (index === 6) await restart()
    clock.advance(waitMs - 1)
    await clock.settle()
    assert.equal(triedAtMs.length, index + 1, `not before ${waitMs} ms`)
    clock.advance(1)
    await waitUntil(() => triedAtMs.length === index + 2, `attempt ${index + 2}`)
  }
  await waitUntil(async () => (await task())?.status.state === 'TASK_STATE_FAILED', 'the end of the patience')
  assert.match((await task())?.status.message?.parts[0]?.text ?? '', /^given up after 1 h \(rate_limit_patience\)/)
})

test('RT-14 a used-up quota waits for the named time, whatever the patience is', async (t) => {
  let resetAfterMs = 5 * 60 * MINUTE_MS
  const { clock, triedAtMs, platform } = setUp(
    t,
    () => new MoleculeError('quota_exhausted', 'no credit', { details: { resetAfterMs } }),
  )
  const runtimeConfig = { rate_limit_patience: '0s' }
  const { id } = await platform().wired.workspaces.create({ name: 'w', runtimeConfig })
  const { taskId } = await platform().local.reception.admit(letterTo(id))
  const status = async () => (await platform().local.reception.task(taskId))?.status
  await waitUntil(async () => /^parked, next try at 17:00 UTC: /.test((await status())?.message?.parts[0]?.text ?? ''))
  resetAfterMs = 20 * 60 * MINUTE_MS
  clock.advance(5 * 60 * MINUTE_MS)
  await waitUntil(async () => (await status())?.state === 'TASK_STATE_FAILED', 'more than a day in all')
  assert.equal(triedAtMs.length, 2)
  assert.match((await status())?.message?.parts[0]?.text ?? '', /is used up, for another 20 h: add credit/)
})
