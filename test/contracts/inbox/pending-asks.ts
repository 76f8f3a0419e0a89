/** Permissions: a running turn asks, an owner answers once, and a timeout denies. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease } from '../../../src/inbox/inbox.ts'
import { sql } from '../../../src/store/store.ts'
import { letterTo } from '../../fakes/letters.ts'
import { done, hasCode, type InboxHarness, type TestWorker } from './harness.ts'

const answerer = (name: string) => ({ name, principal: `token:${name}`, door: 'http' })

export function pendingAskTests(harness: InboxHarness): void {
  const request = {
    kind: 'permission',
    id: '1',
    parts: [{ text: 'waiting' }],
    tool: 'Bash',
    subject: 'rm -rf build',
  } as const
  const permissions = async (workspaceId: string) => {
    const query = { workspaceId, sinceSeq: 0, type: 'permission', limit: 10 } as const
    return (await harness.local.activity.read(query)).entries
  }
  const { ask, answered } = {
    async ask(id: string, worker: TestWorker): Promise<{ lease: Lease; pendingId: string }> {
      await harness.local.reception.admit(letterTo(id))
      const lease = await worker.lease()
      assert.equal(await harness.local.inbox.ask(lease, request), 'held')
      const [asked] = (await harness.local.pendingAsks.list({ workspaceId: id })).rows
      return { lease, pendingId: asked?.id ?? '' }
    },
    async answered(worker: TestWorker) {
      const directive = await worker.next()
      return directive.type === 'answer' && [directive.askId, directive.parts]
    },
  }

  test("AG-16 a permission is listed with exactly what the agent would do, and an owner's answer reaches the turn", async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { lease, pendingId } = await ask(id, worker)
      assert.equal(await harness.state(lease.taskId), 'TASK_STATE_AUTH_REQUIRED')
      const [asked] = (await harness.local.pendingAsks.list({})).rows
      assert.ok((await harness.local.pendingAsks.list({})).rows.some((one) => one.id === pendingId))
      assert.ok(asked !== undefined && asked.expiresInMs > 29 * 60_000)
      const [own] = (await harness.local.pendingAsks.list({ workspaceId: id })).rows
      assert.deepEqual([own?.tool, own?.subject, own?.taskId], ['Bash', 'rm -rf build', lease.taskId])
      await harness.local.pendingAsks.answer(pendingId, 'allowed', answerer('Ana'))
      assert.deepEqual(await answered(worker), ['1', []])
      assert.equal(await harness.state(lease.taskId), 'TASK_STATE_WORKING')
      assert.deepEqual((await harness.local.pendingAsks.list({ workspaceId: id })).rows, [])
      await harness.local.inbox.settle(lease, done('gone'))
    })
    assert.deepEqual(
      (await permissions(id)).map(({ name, text, by, principal, door }) => [name, text, by, principal, door]),
      [['Bash', 'allowed', 'Ana', 'token:Ana', 'http']],
    )
  })

  test('AG-16 PL-23 the story says who answered an ask and through which door, also when the log is pruned', async () => {
    const id = await harness.workspace()
    const story = async (taskId: string, detail: boolean) => {
      const found = await harness.local.stories.find({ id: taskId, scopeOf: () => ({ detail }) })
      return found?.steps.flatMap(({ type, text }) => (type === 'permission' ? [text] : []))
    }
    await harness.withWorker(id, async (worker) => {
      const { lease, pendingId } = await ask(id, worker)
      await harness.local.pendingAsks.answer(pendingId, 'denied', answerer('Ana'))
      await harness.local.inbox.settle(lease, done('left alone'))
      const told = ['"Ana" (token:Ana) denied the use of Bash through http']
      assert.deepEqual(await story(lease.taskId, true), told)
      assert.deepEqual(await story(lease.taskId, false), ['a person denied the use of Bash'])
      await harness.store.write(() => sql('delete from events where task_id = $1', [lease.taskId]))
      assert.deepEqual(await story(lease.taskId, true), told)
    })
  })

  test('AG-16 an answer counts once: the same answer again changes nothing, another one is refused', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { lease, pendingId } = await ask(id, worker)
      const both = await Promise.allSettled([
        harness.local.pendingAsks.answer(pendingId, 'denied', answerer('Ana')),
        harness.local.pendingAsks.answer(pendingId, 'denied', answerer('Bo')),
      ])
      assert.deepEqual(
        both.map(({ status }) => status),
        ['fulfilled', 'fulfilled'],
      )
      await assert.rejects(
        harness.local.pendingAsks.answer(pendingId, 'allowed', answerer('Ana')),
        hasCode('unsupported_operation'),
      )
      assert.deepEqual(await answered(worker), ['1', undefined])
      // The sweep repeats the directive until the turn settles.
      while (!(await worker.idle())) assert.deepEqual(await answered(worker), ['1', undefined])
      await harness.local.inbox.settle(lease, done('left alone'))
      await assert.rejects(
        harness.local.pendingAsks.answer(pendingId, 'allowed', answerer('Ana')),
        hasCode('unsupported_operation'),
      )
    })
    assert.deepEqual(
      (await permissions(id)).map(({ text }) => text),
      ['denied'],
    )
    for (const unknown of ['', 'x', `${'x'.repeat(99)}.1.1`, '01M7FPH65GBDK8DY0646KAE617.1.1']) {
      await assert.rejects(harness.local.pendingAsks.answer(unknown, 'allowed', answerer('Ana')), hasCode('not_found'))
    }
  })

  test('AG-16 a message to the task is no permission: it waits behind the turn, and the task stays auth-required', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { lease, pendingId } = await ask(id, worker)
      await harness.local.reception.admit(letterTo(id, { taskId: lease.taskId, text: 'yes, allowed' }))
      assert.equal(await harness.state(lease.taskId), 'TASK_STATE_AUTH_REQUIRED')
      assert.ok(await worker.idle())
      await harness.local.pendingAsks.answer(pendingId, 'denied', answerer('Ana'))
      assert.deepEqual(await answered(worker), ['1', undefined])
      await harness.local.inbox.settle(lease, done('not done'))
      const behind = await worker.lease()
      assert.deepEqual(behind.envelope.message.parts, [{ text: 'yes, allowed' }])
      await harness.local.inbox.settle(behind, done('heard'))
      assert.equal(await harness.state(lease.taskId), 'TASK_STATE_COMPLETED')
    })
  })

  test('AG-16 an ask without an answer in time is denied, and a late answer is refused', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      await harness.local.reception.admit(letterTo(id))
      const lease = await worker.lease()
      await harness.local.inbox.ask(lease, { ...request, timeoutMs: 1 })
      const [asked] = (await harness.local.pendingAsks.list({ workspaceId: id })).rows
      // The sweep denies it; it runs every few seconds.
      assert.deepEqual(await answered(worker), ['1', undefined])
      await assert.rejects(
        harness.local.pendingAsks.answer(asked?.id ?? '', 'allowed', answerer('Ana')),
        hasCode('unsupported_operation'),
      )
      await harness.local.inbox.settle(lease, done('not done'))
    })
    const [denied] = await permissions(id)
    assert.deepEqual([denied?.text, denied?.by], ['denied: no answer came in time', undefined])
  })

  test('AG-16 an ask survives a restart of the list, not of its turn: a new attempt asks again', async () => {
    const id = await harness.workspace()
    const worker = harness.worker(id)
    const { pendingId } = await ask(id, worker)
    await worker.leave()
    await harness.local.recover()
    assert.deepEqual((await harness.local.pendingAsks.list({ workspaceId: id })).rows, [])
    await assert.rejects(
      harness.local.pendingAsks.answer(pendingId, 'allowed', answerer('Ana')),
      hasCode('unsupported_operation'),
    )
    await harness.withWorker(id, async (other) => {
      const again = await other.lease()
      assert.equal(await harness.local.inbox.ask(again, request), 'held')
      const [asked] = (await harness.local.pendingAsks.list({ workspaceId: id })).rows
      assert.notEqual(asked?.id, pendingId)
      await harness.local.pendingAsks.answer(asked?.id ?? '', 'allowed', answerer('Ana'))
      assert.deepEqual(await answered(other), ['1', []])
      await harness.local.inbox.settle(again, done('done'))
    })
  })

  test('AG-16 an answer on another node reaches the worker of this node', async () => {
    const id = await harness.workspace()
    const elsewhere = harness.newInbox()
    try {
      await harness.withWorker(id, async (worker) => {
        const { lease, pendingId } = await ask(id, worker)
        await elsewhere.pendingAsks.answer(pendingId, 'allowed', answerer('Ana'))
        assert.deepEqual(await answered(worker), ['1', []])
        await harness.local.inbox.settle(lease, done('done'))
      })
    } finally {
      elsewhere.close()
    }
  })
}
