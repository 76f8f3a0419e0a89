/** What a turn keeps for the next attempt, and what it says beside its reply. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease, LogEntry } from '../../../src/inbox/inbox.ts'
import { notesOf } from '../../../src/workspaces/brief.ts'
import { letterTo } from '../../fakes/letters.ts'
import { failure, type InboxBench } from './harness.ts'

export function notes(bench: InboxBench): void {
  const kept = (lease: Lease) => bench.store.read(() => notesOf(lease.messageId))

  test('IN-10 a note is there for the next attempt of its message, the last word of each key, and for no other', async () => {
    const id = await bench.workspace()
    await bench.withHand(id, async (hand) => {
      await bench.local.reception.admit(letterTo(id, { contextId: 'c' }))
      await bench.local.reception.admit(letterTo(id, { contextId: 'c', text: 'other' }))
      const first = await hand.lease()
      assert.deepEqual(await kept(first), {})
      const append = (more: Record<string, string>) =>
        bench.local.inbox.append(first, { from: 1, events: [], notes: more })
      assert.equal(await append({ sending: '1' }), 'held')
      assert.equal(await append({ upstream: 'a' }), 'held')
      assert.equal(await append({ upstream: 'b' }), 'held')
      const retry = { type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: false } as const
      await bench.local.inbox.settle(first, retry)
      assert.equal(await append({ upstream: 'too late' }), 'stale')
      const second = await hand.lease()
      assert.equal(second.messageId, first.messageId)
      assert.deepEqual(await kept(second), { sending: '1', upstream: 'b' })
      await bench.local.inbox.settle(second, { type: 'done', finality: 'completed', parts: [], artifacts: [] })
      const other = await hand.lease()
      assert.deepEqual(await kept(other), {})
      await bench.local.inbox.settle(other, { type: 'done', finality: 'completed', parts: [], artifacts: [] })
    })
  })

  test('an outcome may say more than its reply: a status of its own, metadata, or artifacts alone', async () => {
    const id = await bench.workspace()
    await bench.withHand(id, async (hand) => {
      const { taskId } = await bench.local.reception.admit(letterTo(id))
      const lease = await hand.lease()
      const said = { parts: [{ text: 'half done' }], metadata: { step: 1 } }
      const events = [{ type: 'status', text: 'half done', said } as const, { type: 'status', text: 'unseen' } as const]
      await bench.local.inbox.append(lease, { from: 1, events })
      const artifacts = [{ artifactId: 'a', parts: [{ text: 'table' }] }]
      const end = { parts: [{ text: 'all done' }], metadata: { cost: 3 } }
      const outcome = { type: 'done', finality: 'completed', parts: [], artifacts, said: end } as const
      await bench.local.inbox.settle(lease, outcome)
      const task = await bench.local.reception.task(taskId)
      assert.deepEqual(task?.artifacts, artifacts)
      assert.deepEqual([task?.status.message?.parts, task?.status.message?.metadata], [end.parts, end.metadata])
      const wire = (await read(taskId)).flatMap((entry) => entry.wire)
      const statuses = wire.flatMap(({ statusUpdate }) => statusUpdate?.status.message ?? [])
      assert.deepEqual(
        statuses.map(({ parts, metadata }) => ({ parts, metadata })),
        [said, end],
      )
      assert.ok(!wire.some(({ artifactUpdate }) => artifactUpdate?.artifact.artifactId.startsWith('reply-')))
    })
  })

  test('the metadata of a reply is that of its artifact', async () => {
    const id = await bench.workspace()
    await bench.withHand(id, async (hand) => {
      const { taskId } = await bench.local.reception.admit(letterTo(id))
      const lease = await hand.lease()
      const words = { parts: [{ text: 'hello' }], metadata: { mood: 'good' } }
      await bench.local.inbox.settle(lease, { type: 'done', finality: 'completed', artifacts: [], ...words })
      const [artifact] = (await bench.local.reception.task(taskId))?.artifacts ?? []
      assert.deepEqual({ parts: artifact?.parts, metadata: artifact?.metadata }, words)
    })
  })

  const read = async (taskId: string): Promise<LogEntry[]> => {
    const entries: LogEntry[] = []
    const { signal } = new AbortController()
    for await (const entry of bench.local.reception.follow(taskId, 0, signal)) entries.push(entry)
    return entries
  }
}
