/** Retention: ended tasks are deleted after their time; unsettled ones and those that need a person never are. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prune } from '../../../../src/inbox/upkeep/retention.ts'
import type { Outcome } from '../../../../src/inbox/worker.ts'
import { readDeadLetters } from '../../../../src/views/needs/dead-letters.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { waitUntil } from '../../../harness/wait.ts'
import { done, failure, type InboxHarness } from '../harness.ts'
import { withNode } from '../nodes.ts'

export function retentionTests(harness: InboxHarness): void {
  const forever = 1e15
  const signal = new AbortController().signal

  test('IN-6 old ended tasks are deleted with all their rows; unsettled messages and unhandled dead letters stay', async () => {
    const id = await harness.workspace(1)
    const old = await harness.local.reception.admit(letterTo(id, { contextId: 'old', messageId: 'old-1' }))
    const dead = await harness.local.reception.admit(letterTo(id, { contextId: 'dead' }))
    const retrying = await harness.local.reception.admit(letterTo(id, { contextId: 'retrying' }))
    const asking = await harness.local.reception.admit(letterTo(id, { contextId: 'asking' }))
    const waiting = await harness.local.reception.admit(letterTo(id, { contextId: 'waiting' }))
    await harness.withWorker(id, async (worker) => {
      await harness.local.inbox.settle(await worker.lease(), done('old'))
      await harness.local.inbox.settle(await worker.lease(), { type: 'dead', failure })
      const retry = { type: 'retry', failure, afterMs: 3600_000, reason: 'failure', interrupted: false } as const
      await harness.local.inbox.settle(await worker.lease(), retry)
      const question = { type: 'done', finality: 'input_required', parts: [{ text: '?' }], artifacts: [] } as const
      await harness.local.inbox.settle(await worker.lease(), question)
      await worker.lease()
      for (const table of ['tasks', 'messages'] as const) {
        const columns =
          table === 'tasks' ? 'updated_at = 1' : 'admitted_at = 1, settled_at = settled_at - settled_at + 1'
        await harness.sql(`update ${table} set ${columns} where workspace_id = $1`, id)
      }
      await harness.sql('update events set at_ms = 1 where workspace_id = $1', id)
      await prune(harness.store, { taskMs: -60_000, eventMs: forever, deltaMs: forever }, signal)
    })
    assert.equal(await harness.local.reception.task(old.taskId), undefined)
    const [kept] = await harness.sql('select count(*) as rows from events where task_id = $1', old.taskId)
    assert.equal(Number(kept?.['rows']), 0)
    for (const { taskId } of [dead, retrying, asking, waiting]) assert.ok(await harness.local.reception.task(taskId))
    const [letter] = (await readDeadLetters(harness.local.store, { workspaceId: id, detail: true })).dead_letters
    assert.equal(letter?.task_id, dead.taskId)
    await harness.local.deadLetters.discard(id, letter?.id ?? '')
    await harness.sql('update tasks set updated_at = 1 where workspace_id = $1', id)
    await prune(harness.store, { taskMs: -60_000, eventMs: forever, deltaMs: forever }, signal)
    assert.equal(await harness.local.reception.task(dead.taskId), undefined)
    assert.equal(
      (await harness.local.reception.admit(letterTo(id, { messageId: 'old-1', text: 'new life' }))).duplicate,
      false,
    )
  })

  test('IN-6 a task whose reply is not delivered stays, however old it is', async () => {
    const id = await harness.workspace()
    const door = `door-of-${id}`
    const { taskId } = await harness.local.reception.admit({ ...letterTo(id), replyTo: { door, channel: 'c' } })
    await harness.withWorker(id, async (worker) => {
      await harness.local.inbox.settle(await worker.lease(), done('answer'))
    })
    const pruneAll = async () => {
      await harness.sql('update tasks set updated_at = 1 where workspace_id = $1', id)
      await prune(harness.store, { taskMs: -60_000, eventMs: forever, deltaMs: forever }, signal)
    }
    const { deliveries } = harness.local
    await pruneAll()
    assert.ok(await harness.local.reception.task(taskId), 'pending')
    const delivery = await deliveries.take(door)
    assert.deepEqual(delivery?.body.parts, [{ text: 'answer' }])
    await pruneAll()
    assert.ok(await harness.local.reception.task(taskId), 'sending')
    await deliveries.finish(delivery?.id ?? '', { type: 'unknown', error: 'no answer' })
    await pruneAll()
    assert.ok(await harness.local.reception.task(taskId), 'unknown')
    await deliveries.resolve(delivery?.id ?? '', 'dismiss', 'Ana')
    await pruneAll()
    assert.equal(await harness.local.reception.task(taskId), undefined)
  })

  test('IN-6 a conversation and its session stay while one of its tasks does', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    const tasks: string[] = []
    await harness.withWorker(id, async (worker) => {
      for (const text of ['one', 'two']) {
        tasks.push((await reception.admit(letterTo(id, { contextId: 'c', text }))).taskId)
        await inbox.settle(await worker.lease(), { ...done(text), session: 's' } as Outcome)
      }
    })
    const [first = '', second = ''] = tasks
    const left = async () => {
      await prune(harness.store, { taskMs: -60_000, eventMs: forever, deltaMs: forever }, signal)
      const count = async (table: string) =>
        (await harness.sql(`select 1 as one from ${table} where workspace_id = $1`, id)).length
      return {
        tasks: await count('tasks'),
        conversations: await count('conversations'),
        sessions: await count('sessions'),
      }
    }
    await harness.sql('update tasks set updated_at = now_ms() + 86400000 where id = $1', second)
    assert.deepEqual(await left(), { tasks: 1, conversations: 1, sessions: 1 })
    assert.equal(await reception.task(first), undefined)
    await harness.sql('update tasks set updated_at = 1 where id = $1', second)
    assert.deepEqual(await left(), { tasks: 0, conversations: 0, sessions: 0 })
  })

  test('IN-6 text deltas are deleted an hour after the reply, and the reply stays', async () => {
    const id = await harness.workspace()
    const { taskId } = await harness.local.reception.admit(letterTo(id))
    await harness.withWorker(id, async (worker) => {
      const lease = await worker.lease()
      await harness.local.inbox.append(lease, { from: 1, events: [{ type: 'text', delta: 'hel' }] })
      await harness.sql('update events set at_ms = 1 where workspace_id = $1', id)
      await prune(harness.store, { taskMs: forever, eventMs: 3600_000, deltaMs: 3600_000 }, signal)
      const [running] = await harness.sql('select count(*) as rows from events where task_id = $1', taskId)
      assert.equal(Number(running?.['rows']), 3, 'a running turn keeps its events')
      await harness.local.inbox.settle(lease, done('hello'))
    })
    await harness.sql('update events set at_ms = 1 where workspace_id = $1', id)
    await harness.sql('update messages set settled_at = 1 where workspace_id = $1', id)
    await prune(harness.store, { taskMs: forever, eventMs: forever, deltaMs: 3600_000 }, signal)
    const seen: string[] = []
    for await (const { wire } of harness.local.reception.follow(taskId, { afterSeq: 0 }, AbortSignal.timeout(5000))) {
      for (const { artifactUpdate } of wire) if (artifactUpdate) seen.push(artifactUpdate.artifact.parts[0]?.text ?? '')
    }
    assert.deepEqual(seen, ['hello'])
  })

  test('IN-6 a prune deletes every old task, however it ended, with all of its rows, unless it is stopped', async () => {
    const id = await harness.workspace(30)
    const { reception, inbox, deadLetters, pushConfigs } = harness.local
    const tasks: string[] = []
    await harness.withWorker(id, async (worker) => {
      for (let count = 0; count < 2; count++) tasks.push((await reception.admit(letterTo(id))).taskId)
      const [first = '', second = ''] = tasks
      const config = { taskId: first, id: 'hook', url: 'https://a.test/' }
      await pushConfigs.put({ workspaceId: id, version: '1.0', config, afterSeq: 0 })
      const lease = await worker.lease()
      await inbox.append(lease, { from: 1, events: [{ type: 'text', delta: 'x' }], notes: { key: 'value' } })
      await inbox.ask(lease, { kind: 'question', id: 'q', parts: [{ text: '?' }] })
      await inbox.settle(lease, { type: 'dead', failure })
      await inbox.settle(await worker.lease(), { ...done('no'), finality: 'rejected' } as Outcome)
      tasks.push(await deadLetters.replay(id, first))
      await inbox.settle(await worker.lease(), done('mended'))
      assert.equal(await harness.state(second), 'TASK_STATE_REJECTED')
    })
    await harness.local.queues.pause(id, { now: false })
    for (let count = 0; count < 30; count++) {
      const { taskId } = await reception.admit(letterTo(id))
      await reception.cancel(taskId)
    }
    await harness.sql('update tasks set updated_at = 1 where workspace_id = $1', id)
    const old = { taskMs: -60_000, eventMs: forever, deltaMs: forever }
    assert.equal(await prune(harness.store, old, AbortSignal.abort()), 0)
    await prune(harness.store, old, signal)
    for (const table of ['tasks', 'messages', 'asks', 'turn_notes', 'push_configs', 'conversations'])
      assert.deepEqual(await harness.sql(`select 1 as one from ${table} where workspace_id = $1`, id), [], table)
    const left = await harness.sql('select 1 as one from events where workspace_id = $1 and task_id is not null', id)
    assert.deepEqual(left, [])
  })

  test('IN-6 old rows are deleted soon after a start', async () => {
    await harness.sql(
      `insert into turn_usage (message_id, epoch, workspace_id, task_id, outcome, ended_at)
       values ('old', 1, 'w', 'none', 'done', 0)`,
    )
    await withNode(harness, async (_node, clock) => {
      clock.advance(10_000)
      const isGone = async () =>
        (await harness.sql(`select 1 as one from turn_usage where message_id = 'old'`)).length === 0
      await waitUntil(isGone)
    })
  })
}
