/** Retention: what has ended goes after its time; what has not, or needs a person, never does. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prune } from '../../../src/inbox/retention.ts'
import { letterTo } from '../../fakes/letters.ts'
import { done, failure, type InboxBench } from './harness.ts'

export function retention(bench: InboxBench): void {
  const forever = 1e15
  const signal = new AbortController().signal

  test('IN-6 tasks that ended long ago go with all they had; unsettled mail and unhandled dead letters stay', async () => {
    const id = await bench.workspace(1)
    const old = await bench.local.reception.admit(letterTo(id, { contextId: 'old', messageId: 'old-1' }))
    const dead = await bench.local.reception.admit(letterTo(id, { contextId: 'dead' }))
    const retrying = await bench.local.reception.admit(letterTo(id, { contextId: 'retrying' }))
    const asking = await bench.local.reception.admit(letterTo(id, { contextId: 'asking' }))
    const waiting = await bench.local.reception.admit(letterTo(id, { contextId: 'waiting' }))
    await bench.withHand(id, async (hand) => {
      await bench.local.inbox.settle(await hand.lease(), done('old'))
      await bench.local.inbox.settle(await hand.lease(), { type: 'dead', failure })
      const retry = { type: 'retry', failure, afterMs: 3600_000, reason: 'failure', interrupted: false } as const
      await bench.local.inbox.settle(await hand.lease(), retry)
      const question = { type: 'done', finality: 'input_required', parts: [{ text: '?' }], artifacts: [] } as const
      await bench.local.inbox.settle(await hand.lease(), question)
      await hand.lease()
      for (const table of ['tasks', 'messages'] as const) {
        const columns =
          table === 'tasks' ? 'updated_at = 1' : 'admitted_at = 1, settled_at = settled_at - settled_at + 1'
        await bench.sql(`update ${table} set ${columns} where workspace_id = $1`, id)
      }
      await bench.sql('update events set at_ms = 1 where workspace_id = $1', id)
      await prune(bench.store, { taskMs: -60_000, eventMs: forever, deltaMs: forever }, signal)
    })
    assert.equal(await bench.local.reception.task(old.taskId), undefined)
    const [kept] = await bench.sql('select count(*) as rows from events where task_id = $1', old.taskId)
    assert.equal(Number(kept?.['rows']), 0)
    for (const { taskId } of [dead, retrying, asking, waiting]) assert.ok(await bench.local.reception.task(taskId))
    const [letter] = await bench.local.deadLetters.list(id)
    assert.equal(letter?.taskId, dead.taskId)
    await bench.local.deadLetters.discard(id, letter?.id ?? '')
    await bench.sql('update tasks set updated_at = 1 where workspace_id = $1', id)
    await prune(bench.store, { taskMs: -60_000, eventMs: forever, deltaMs: forever }, signal)
    assert.equal(await bench.local.reception.task(dead.taskId), undefined)
    assert.equal(
      (await bench.local.reception.admit(letterTo(id, { messageId: 'old-1', text: 'new life' }))).duplicate,
      false,
    )
  })

  test('IN-6 pieces of a reply go an hour after it, and the reply stays', async () => {
    const id = await bench.workspace()
    const { taskId } = await bench.local.reception.admit(letterTo(id))
    await bench.withHand(id, async (hand) => {
      const lease = await hand.lease()
      await bench.local.inbox.append(lease, { from: 1, events: [{ type: 'text', delta: 'hel' }] })
      await bench.sql('update events set at_ms = 1 where workspace_id = $1', id)
      await prune(bench.store, { taskMs: forever, eventMs: 3600_000, deltaMs: 3600_000 }, signal)
      const [running] = await bench.sql('select count(*) as rows from events where task_id = $1', taskId)
      assert.equal(Number(running?.['rows']), 3, 'a turn that runs keeps its story')
      await bench.local.inbox.settle(lease, done('hello'))
    })
    await bench.sql('update events set at_ms = 1 where workspace_id = $1', id)
    await bench.sql('update messages set settled_at = 1 where workspace_id = $1', id)
    await prune(bench.store, { taskMs: forever, eventMs: forever, deltaMs: 3600_000 }, signal)
    const seen: string[] = []
    for await (const { wire } of bench.local.reception.follow(taskId, 0, AbortSignal.timeout(5000))) {
      for (const { artifactUpdate } of wire) if (artifactUpdate) seen.push(artifactUpdate.artifact.parts[0]?.text ?? '')
    }
    assert.deepEqual(seen, ['hello'])
  })
}
