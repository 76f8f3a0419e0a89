/** Messages that are parked for a limit of the model provider: counted and shown from stored rows, on every engine. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MoleculeError } from '../../../../src/errors.ts'
import { findExpired } from '../../../../src/inbox/upkeep/expire.ts'
import { markWaitingTime } from '../../../../src/inbox/upkeep/waiting-time.ts'
import type { Lease, Outcome } from '../../../../src/inbox/worker.ts'
import { outcomeOfFailure } from '../../../../src/runtime/retry-policy.ts'
import { readStory } from '../../../../src/views/story/story.ts'
import { findWorkspace, listWorkspaces } from '../../../../src/workspaces/workspace-rows.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { done, failure, type InboxHarness } from '../harness.ts'

const HOUR_MS = 3600_000
const RETRY = { type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: false } as const
const SENTENCE = "the model provider's rate limit is reached (rate_limited, err_1)"
const PARKED: Outcome = {
  ...RETRY,
  failure: { code: 'rate_limited', message: 'HTTP 429', sentence: SENTENCE, category: 'rate_limited', id: 'err_1' },
  afterMs: 300_000,
  parked: true,
}
const NEXT_TRY =
  /^parked, next try at \d\d:\d\d UTC: the model provider's rate limit is reached \(rate_limited, err_1\)$/

export function parkedTests(harness: InboxHarness): void {
  /** As after `ms`, for the one waiting message of the workspace. */
  const pass = async (id: string, ms: number) => {
    const moved = `ready_at = ready_at - $2, parked_at = parked_at - $2`
    await harness.sql(`update messages set ${moved} where workspace_id = $1`, id, ms)
    await harness.sql('update conversations set ready_at = ready_at - $2 where workspace_id = $1', id, ms)
  }
  /** Runs the next attempt in a new process, which knows only what is stored. */
  const attempt = async (id: string, outcomeOf: (lease: Lease) => Outcome): Promise<Outcome> => {
    const local = harness.newInbox()
    const worker = harness.worker(id, local)
    try {
      const lease = await worker.lease()
      const outcome = outcomeOf(lease)
      assert.equal(await local.inbox.settle(lease, outcome), 'settled')
      return outcome
    } finally {
      await worker.leave()
      local.close()
    }
  }

  /** A heartbeat of a bridge. */
  const hear = (id: string, report = {}) =>
    harness.sql(
      'insert into presence (workspace_id, registered_at, heard_at, report) values ($1, now_ms(), now_ms(), $2)',
      id,
      JSON.stringify(report),
    )

  test('RT-14 RT-6 the schedule of a rate limit is counted from stored rows: each attempt is in another process', async () => {
    const id = await harness.workspace()
    const { taskId } = await harness.local.reception.admit(letterTo(id))
    const error = new MoleculeError('rate_limited', 'HTTP 429', { retryable: true })
    const policy = { error, maxAttempts: 4, usedTool: false, rateLimitPatienceMs: HOUR_MS }
    const waits: (number | string)[] = []
    for (;;) {
      const outcome = await attempt(id, (lease) => outcomeOfFailure({ ...policy, lease }))
      if (outcome.type !== 'retry') break
      const [row] = await harness.sql('select ready_at - now_ms() as ms from messages where workspace_id = $1', id)
      // Rounded: the wait has begun when the row is read.
      waits.push(Math.round(Number(row?.['ms']) / 5000) * 5)
      await pass(id, outcome.afterMs)
    }
    const [last, ...schedule] = waits.toReversed()
    assert.deepEqual(schedule.toReversed(), [5, 10, 20, 60, 120, 300, 600, 600, 600, 600, 600])
    // The time between the attempts counts too.
    assert.ok(Number(last) > 0 && Number(last) <= 120, `the last wait was ${last} s`)
    const [message] = await harness.sql('select failures, state from messages where id = $1', taskId)
    // Three retries and the end; parking counts no attempt.
    assert.deepEqual([Number(message?.['failures']), message?.['state']], [4, 'dead'])
    const task = await harness.local.reception.task(taskId)
    assert.match(task?.status.message?.parts[0]?.text ?? '', /^given up after 1 h/)
    assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
  })

  test('RT-14 a counted failure ends the parked phase, and the next limit has its whole time again', async () => {
    const id = await harness.workspace()
    await harness.local.reception.admit(letterTo(id))
    await attempt(id, (lease) => {
      assert.equal(lease.parked, undefined)
      return PARKED
    })
    await pass(id, HOUR_MS)
    await attempt(id, ({ failures, parked }) => {
      assert.deepEqual([failures, parked?.times], [0, 1])
      assert.ok(parked !== undefined && parked.sinceMs >= HOUR_MS)
      return RETRY
    })
    await attempt(id, ({ failures, parked }) => {
      assert.deepEqual([failures, parked], [1, undefined])
      return done('at last')
    })
  })

  test('RT-14 reason and next time are in the task, its events, the activity, explain, and behind it', async () => {
    const id = await harness.workspace()
    const { reception, store } = harness.local
    const { taskId } = await reception.admit(letterTo(id, { contextId: 'c' }))
    const beforeMs = Date.now()
    await attempt(id, () => PARKED)
    const status = (await reception.task(taskId))?.status
    assert.equal(status?.state, 'TASK_STATE_WORKING')
    assert.match(status?.message?.parts[0]?.text ?? '', NEXT_TRY)
    const { next_try_at: nextTryAt, ...metadata } = status?.message?.metadata ?? {}
    assert.deepEqual(metadata, { code: 'rate_limited', category: 'rate_limited', error_id: 'err_1' })
    const inMs = Date.parse(String(nextTryAt)) - beforeMs
    assert.ok(inMs > 240_000 && inMs < 600_000, `next try in ${inMs} ms`)
    const owner = await reception.task(taskId, { detail: true })
    assert.match(owner?.status.message?.parts[0]?.text ?? '', /^parked, .*\nHTTP 429$/)
    const entries = await harness.activity(id)
    assert.match(entries.at(-1)?.text ?? '', NEXT_TRY)
    const texts = (await readStory(store, { id: taskId, scopeOf: () => ({}) })).steps.map(({ text }) => text)
    assert.match(texts.at(-2) ?? '', /^attempt 1 failed; parked, next try at /)
    assert.match(texts.at(-1) ?? '', /^it will be tried again in [45] min$/)
    await hear(id)
    const behind = await reception.admit(letterTo(id, { contextId: 'c', messageId: 'behind' }))
    const why = (await reception.task(behind.taskId))?.status.message?.parts[0]?.text ?? ''
    assert.match(
      why,
      /^waiting behind message \w+ of the same conversation: parked, next try at \d\d:\d\d UTC: the model/,
    )
    await reception.cancel(taskId)
    await reception.cancel(behind.taskId)
    assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
  })

  test('RT-14 PL-4 a workspace whose message is parked is degraded, with the reason and the next time', async () => {
    const id = await harness.workspace()
    const { taskId } = await harness.local.reception.admit(letterTo(id))
    await attempt(id, () => PARKED)
    await hear(id, { problem: 'its last turn failed' })
    const found = await harness.store.read(() => findWorkspace(id))
    const listed = (await harness.store.read(listWorkspaces)).find((workspace) => workspace.id === id)
    for (const workspace of [found, listed]) {
      assert.equal(workspace?.status, 'degraded')
      assert.match(workspace?.statusReason ?? '', /^a message waits: parked, next try at \d\d:\d\d UTC: the model/)
    }
    await harness.local.reception.cancel(taskId)
    const later = await harness.store.read(() => findWorkspace(id))
    assert.equal(later?.statusReason, 'its last turn failed')
  })

  test('RT-13 a message that its worker gave back until a time waits for it, at most an hour', async () => {
    for (const [afterMs, waitMs] of [
      [1_800_000, 1_800_000],
      [3 * HOUR_MS, HOUR_MS],
      [-5, 0],
    ] as const) {
      const id = await harness.workspace()
      const { taskId } = await harness.local.reception.admit(letterTo(id))
      const said = { parts: [{ text: 'the turns of the hour are used up' }] }
      await attempt(id, () => ({ type: 'released', interrupted: false, parked: { afterMs, said } }))
      if (waitMs > 0) {
        const status = (await harness.local.reception.task(taskId))?.status
        assert.deepEqual([status?.state, status?.message?.parts], ['TASK_STATE_WORKING', said.parts])
        assert.deepEqual(status?.message?.metadata, { code: 'waiting' })
        await pass(id, waitMs - 60_000)
        await harness.withWorker(id, async (worker) => assert.ok(await worker.idle()))
        await pass(id, 60_000)
      }
      await attempt(id, ({ failures, losses, interrupted }) => {
        assert.deepEqual([failures, losses, interrupted], [0, 0, false])
        return done('ok')
      })
    }
  })

  test('RT-14 a parked message does not expire: it was started in time', async () => {
    const id = await harness.workspace()
    const { taskId } = await harness.local.reception.admit(letterTo(id))
    await attempt(id, () => PARKED)
    await harness.sql('update messages set expires_at = 0 where id = $1', taskId)
    const late = await harness.workspace()
    const unstarted = await harness.local.reception.admit({ ...letterTo(late), expiresInMs: HOUR_MS })
    await harness.sql('update messages set expires_at = 0 where id = $1', unstarted.taskId)
    assert.equal(await markWaitingTime(harness.store), true)
    const expired = await harness.store.read(findExpired)
    const hasExpired = (workspaceId: string) => expired.some((message) => message.workspaceId === workspaceId)
    assert.ok(!hasExpired(id))
    // The sweep of this inbox may have come first.
    assert.ok(hasExpired(late) || (await harness.state(unstarted.taskId)) === 'TASK_STATE_FAILED')
    await harness.local.reception.cancel(taskId)
  })
}
