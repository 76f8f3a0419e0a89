/** The message by which a conversation gets the result of its delegation: order, text, address and limits. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease, Outcome } from '../../../../src/inbox/worker.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { done, failure, type InboxHarness, type TestWorker } from '../harness.ts'
import { childOf, createTeams, limitsOf, pathOf, retry, textOf, withLimits } from './team.ts'

export function resultLetterTests(harness: InboxHarness): void {
  const { admit, withTeam, relatives } = createTeams(harness)

  test('TW-3 TW-4 a child that fails late is reported as a failed delegation with three ways on', async () => {
    await withTeam(2, async ({ ids, workers: [home, away], lease }) => {
      await admit(childOf(lease, ids[1] ?? ''))
      const childLease = await away.lease()
      await harness.local.inbox.settle(lease, done('later'))
      await harness.local.inbox.settle(childLease, { type: 'dead', failure })
      assert.match(textOf(await home.lease()), /\[A2A_ERROR\] DELEGATION FAILED: test gave no answer \(it broke\)/)
    })
  })

  test('TW-3 results come in the order of their ends, and none while the parent waits for its next attempt', async () => {
    await withTeam(2, async ({ ids, workers: [home, away], lease }) => {
      const children: Lease[] = []
      for (const text of ['one', 'two', 'running']) {
        await admit(childOf(lease, ids[1] ?? '', { text }))
        children.push(await away.lease())
      }
      for (const child of children.slice(0, 2)) await harness.local.inbox.settle(child, done(textOf(child)))
      const earlier = children[1]?.messageId ?? ''
      await harness.sql('update messages set settled_at = settled_at - 1000 where id = $1', earlier)
      await harness.local.inbox.settle(lease, { ...retry, afterMs: 3600_000 })
      await harness.local.children.lookAfter()
      assert.ok(await home.idle())
      assert.equal(await harness.state(children[2]?.taskId ?? ''), 'TASK_STATE_WORKING')
      for (const table of ['messages', 'conversations'])
        await harness.sql(
          `update ${table} set ready_at = 0 where workspace_id = $1 and ready_at > 0`,
          lease.workspaceId,
        )
      await harness.local.queues.limitsChanged(lease.workspaceId)
      await harness.local.inbox.settle(await home.lease(), done('bye'))
      for (const text of ['two', 'one']) {
        const result = await home.lease()
        assert.match(textOf(result), new RegExp(`Your task was: ${text}\n`))
        await harness.local.inbox.settle(result, done('thanks'))
      }
    })
  })

  test('TW-3 a result waits while the queue of the parent is full, and goes nowhere when the parent is deleted', async () => {
    await withTeam(2, async ({ ids, workers: [home, away], lease }) => {
      const [id = '', to = ''] = ids
      await admit(childOf(lease, to))
      const child = await away.lease()
      await harness.local.inbox.settle(lease, done('later'))
      await harness.sql('update workspace_load set waiting = 1000 where workspace_id = $1', id)
      await harness.local.inbox.settle(child, done('7'))
      await harness.local.children.lookAfter()
      assert.ok(await home.idle())
      await harness.sql('update workspace_load set waiting = 0 where workspace_id = $1', id)
      await harness.local.children.lookAfter()
      const result = await home.lease()
      assert.match(textOf(result), /\n\n7$/)
      await admit(childOf(result, to))
      const orphan = await away.lease()
      await harness.local.inbox.settle(result, done('thanks'))
      await harness.sql('delete from messages where id = $1', result.messageId)
      await harness.local.inbox.settle(orphan, done('8'))
      await harness.local.children.lookAfter()
      assert.ok(await home.idle())
    })
  })

  test('TW-3 a result comes from the child, shortens the task, has the whole answer, and is answered where the parent was', async () => {
    await withTeam(2, async ({ ids, workers: [home, away] }) => {
      const [id = '', to = ''] = ids
      const replyTo = { door: `results-${id}`, channel: 'c1' }
      await admit({ ...letterTo(id, { principal: 'discord:c1', contextId: 'talk' }), replyTo })
      const root = await home.lease()
      await admit(childOf(root, to, { text: `count ${'x'.repeat(400)}` }))
      await harness.local.inbox.settle(root, done('later'))
      const artifacts = [{ artifactId: 'f', parts: [{ text: 'file' }] }]
      const child = await away.lease()
      await harness.local.inbox.settle(child, { ...done('there are 7'), artifacts } as Outcome)
      const result = await home.lease()
      assert.deepEqual([result.contextId, result.principal], ['talk', 'discord:c1'])
      assert.deepEqual(result.sender, { kind: 'agent', id: to, name: 'test', door: 'delegation' })
      const about = `The task ${child.taskId} that you gave to test is completed.`
      assert.deepEqual(result.envelope.message.parts, [
        { text: `${about}\nYour task was: count ${'x'.repeat(293)}…\nIts answer:\n\n` },
        ...[{ text: 'there are 7' }, { text: 'file' }],
      ])
      await harness.local.inbox.settle(result, done('there are 7 files'))
      const { deliveries } = harness.local
      const sent: unknown[] = []
      for (
        let delivery = await deliveries.take(replyTo.door);
        delivery;
        delivery = await deliveries.take(replyTo.door)
      ) {
        sent.push([delivery.channel, delivery.body.parts])
        await deliveries.finish(delivery.id, { type: 'sent' })
      }
      assert.deepEqual(sent, [
        ['c1', [{ text: 'later' }]],
        ['c1', [{ text: 'there are 7 files' }]],
      ])
    })
  })

  test('TW-3 TW-4 a child that asks for a login, or rejects its task, is reported with its words', async () => {
    await withTeam(2, async ({ ids, workers: [home, away], lease }) => {
      const endings = [
        ['auth_required', /is auth required\.\n.*\nIt asks: please$/],
        ['rejected', /is rejected\.\n.*\n\[A2A_ERROR\] DELEGATION FAILED: test gave no answer \(please\)/],
      ] as const
      const children: Lease[] = []
      for (const _ of endings) {
        await admit(childOf(lease, ids[1] ?? ''))
        children.push(await away.lease())
      }
      await harness.local.inbox.settle(lease, done('later'))
      for (const [index, [finality, text]] of endings.entries()) {
        await harness.local.inbox.settle(children[index] as Lease, { ...done('please'), finality } as Outcome)
        const result = await home.lease()
        assert.match(textOf(result), text)
        await harness.local.inbox.settle(result, done('thanks'))
      }
    })
  })

  test('TW-9 a result renews no limit: it has the place, the path and the turns of its parent, less those that were used', async () => {
    await withTeam(3, async ({ ids, workers, lease: root }) => {
      const [, away, far] = workers as [TestWorker, TestWorker, TestWorker]
      const [a = '', b = '', c = ''] = ids
      await admit(withLimits(childOf(root, b), { turns_left: 2 }))
      const middle = await away.lease()
      await admit(childOf(middle, c))
      await harness.local.inbox.settle(middle, done('later'))
      await harness.local.inbox.settle(await far.lease(), done('7'))
      const result = await away.lease()
      const { turns_left: turnsLeft, depth_left: depthLeft, root_task: rootTask } = limitsOf(result)
      assert.deepEqual([turnsLeft, depthLeft, rootTask], [1, limitsOf(middle).depth_left, root.taskId])
      assert.deepEqual(pathOf(result), [a])
      assert.deepEqual(await relatives(result.messageId), { parent_id: root.messageId, root_id: root.messageId })
    })
  })
}
