/** Notes for the next attempt, and outcomes that say more than their reply. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readNotes } from '../../../../src/inbox/brief-reads.ts'
import type { LogEntry } from '../../../../src/inbox/reception.ts'
import type { Lease } from '../../../../src/inbox/worker.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { failure, type InboxHarness } from '../harness.ts'

export function noteTests(harness: InboxHarness): void {
  const kept = (lease: Lease) => harness.store.read(() => readNotes(lease.messageId))

  test('IN-10 the next attempt at a message gets its notes, the last value of each key, and no other message does', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      await harness.local.reception.admit(letterTo(id, { contextId: 'c' }))
      await harness.local.reception.admit(letterTo(id, { contextId: 'c', text: 'other' }))
      const first = await worker.lease()
      assert.deepEqual(await kept(first), {})
      const append = (more: Record<string, string>) =>
        harness.local.inbox.append(first, { from: 1, events: [], notes: more })
      assert.equal(await append({ sending: '1' }), 'held')
      assert.equal(await append({ upstream: 'a' }), 'held')
      assert.equal(await append({ upstream: 'b' }), 'held')
      const retry = { type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: false } as const
      await harness.local.inbox.settle(first, retry)
      assert.equal(await append({ upstream: 'too late' }), 'stale')
      const second = await worker.lease()
      assert.equal(second.messageId, first.messageId)
      assert.deepEqual(await kept(second), { sending: '1', upstream: 'b' })
      await harness.local.inbox.settle(second, { type: 'done', finality: 'completed', parts: [], artifacts: [] })
      const other = await worker.lease()
      assert.deepEqual(await kept(other), {})
      await harness.local.inbox.settle(other, { type: 'done', finality: 'completed', parts: [], artifacts: [] })
    })
  })

  test('an outcome may have a status of its own, metadata, or artifacts without a reply', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await harness.local.reception.admit(letterTo(id))
      const lease = await worker.lease()
      const said = { parts: [{ text: 'half done' }], metadata: { step: 1 } }
      const events = [{ type: 'status', text: 'half done', said } as const, { type: 'status', text: 'unseen' } as const]
      await harness.local.inbox.append(lease, { from: 1, events })
      const artifacts = [{ artifactId: 'a', parts: [{ text: 'table' }] }]
      const end = { parts: [{ text: 'all done' }], metadata: { cost: 3 } }
      const outcome = { type: 'done', finality: 'completed', parts: [], artifacts, said: end } as const
      await harness.local.inbox.settle(lease, outcome)
      const task = await harness.local.reception.task(taskId)
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

  test('the artifact of a reply carries the metadata of the reply', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await harness.local.reception.admit(letterTo(id))
      const lease = await worker.lease()
      const content = { parts: [{ text: 'hello' }], metadata: { mood: 'good' } }
      await harness.local.inbox.settle(lease, { type: 'done', finality: 'completed', artifacts: [], ...content })
      const [artifact] = (await harness.local.reception.task(taskId))?.artifacts ?? []
      assert.deepEqual({ parts: artifact?.parts, metadata: artifact?.metadata }, content)
    })
  })

  const read = async (taskId: string): Promise<LogEntry[]> => {
    const entries: LogEntry[] = []
    const { signal } = new AbortController()
    for await (const entry of harness.local.reception.follow(taskId, { afterSeq: 0 }, signal)) entries.push(entry)
    return entries
  }
}
