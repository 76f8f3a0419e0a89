/** Delegations: children of a turn, their keys, their limits, and what ends with their parent. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease, Letter } from '../../../src/inbox/inbox.ts'
import type { Metadata } from '../../../src/protocol/a2a.ts'
import type { DelegationEnvelope } from '../../../src/protocol/delegation.ts'
import { letterTo } from '../../fakes/letters.ts'
import { waitUntil } from '../../harness/wait.ts'
import { done, failure, hasCode, type InboxHarness, type TestWorker } from './harness.ts'
import { childOf, createTeams, retry } from './team.ts'

const limitsOf = (lease: Lease) =>
  lease.envelope.message.metadata?.['molecule_delegation'] as unknown as DelegationEnvelope

export function delegationTests(harness: InboxHarness): void {
  const { admit, withTeam, relatives } = createTeams(harness)

  test('TW-3 a child knows its parent and the first message of its tree, and a root message has neither', async () => {
    await withTeam(3, async ({ ids, workers, lease }) => {
      const child = await admit(childOf(lease, ids[1] ?? ''))
      const childLease = await (workers[1] as TestWorker).lease()
      const grandchild = await admit(childOf(childLease, ids[2] ?? ''))
      const root = lease.messageId
      assert.deepEqual(await relatives(root), { parent_id: null, root_id: null })
      assert.deepEqual(await relatives(child.taskId), { parent_id: root, root_id: root })
      assert.deepEqual(await relatives(grandchild.taskId), { parent_id: child.taskId, root_id: root })
    })
  })

  test('TW-6 a new attempt meets the children of the attempt before, in order; a deliberate repeat is a new task', async () => {
    await withTeam(2, async ({ ids, workers, lease }) => {
      const [, to = ''] = ids
      const delegate = (of: Lease, messageId: string, text = 'count') => admit(childOf(of, to, { messageId, text }))
      const first = await delegate(lease, 'a1')
      const second = await delegate(lease, 'a2')
      const other = await delegate(lease, 'a3', 'sing')
      assert.equal(new Set([first.taskId, second.taskId, other.taskId]).size, 3)
      assert.equal((await delegate(lease, 'a1')).taskId, first.taskId, 'a repeated call')
      await harness.local.inbox.settle(lease, retry)
      const again = await (workers[0] as TestWorker).lease()
      assert.deepEqual(await delegate(again, 'b1'), { ...first, duplicate: true })
      assert.deepEqual(await delegate(again, 'b1'), { ...first, duplicate: true }, 'a repeated call')
      assert.equal((await delegate(again, 'b2')).taskId, second.taskId)
      const third = await delegate(again, 'b3')
      assert.deepEqual([third.duplicate, third.taskId === first.taskId], [false, false])
      assert.equal((await delegate(again, 'b4', 'sing')).taskId, other.taskId)
    })
  })

  test('TW-6 a key that the caller gives decides alone, also in a new attempt', async () => {
    await withTeam(2, async ({ ids, workers, lease }) => {
      const [, to = ''] = ids
      const delegate = (of: Lease, idempotencyKey: string) => admit(childOf(of, to, { text: 'count', idempotencyKey }))
      const first = await delegate(lease, 'k1')
      await harness.local.inbox.settle(lease, retry)
      const again = await (workers[0] as TestWorker).lease()
      assert.equal((await delegate(again, 'k1')).taskId, first.taskId)
      assert.notEqual((await delegate(again, 'k2')).taskId, first.taskId)
    })
  })

  test('TW-3 cancelling a task cancels what it delegated, down the tree, with the running turns', async () => {
    await withTeam(3, async ({ ids, workers, rootTask, lease }) => {
      const child = await admit(childOf(lease, ids[1] ?? ''))
      const childLease = await (workers[1] as TestWorker).lease()
      const grandchild = await admit(childOf(childLease, ids[2] ?? ''))
      await (workers[2] as TestWorker).lease()
      await harness.local.reception.cancel(rootTask)
      for (const { taskId } of [child, grandchild]) assert.equal(await harness.state(taskId), 'TASK_STATE_CANCELED')
      for (const worker of workers) assert.equal((await worker.next()).type, 'stop')
      await assert.rejects(admit(childOf(childLease, ids[2] ?? '')), hasCode('forbidden'))
    })
  })

  test('TW-3 a dead letter cancels its open children; completion cancels none', async () => {
    for (const outcome of [{ type: 'dead', failure } as const, done('ready')]) {
      await withTeam(2, async ({ ids, lease }) => {
        const { taskId } = await admit(childOf(lease, ids[1] ?? ''))
        await harness.local.inbox.settle(lease, outcome)
        if (outcome.type === 'dead') {
          return await waitUntil(async () => (await harness.state(taskId)) === 'TASK_STATE_CANCELED')
        }
        await harness.local.children.lookAfter()
        assert.equal(await harness.state(taskId), 'TASK_STATE_WORKING')
      })
    }
  })

  test('TW-9 one message has at most ten open delegations, and the refusal shows the tree', async () => {
    await withTeam(2, async ({ ids, workers, lease }) => {
      const [, to = ''] = ids
      const admitted = await Promise.allSettled(Array.from({ length: 14 }, () => admit(childOf(lease, to))))
      assert.equal(admitted.filter(({ status }) => status === 'fulfilled').length, 10)
      await assert.rejects(admit(childOf(lease, to)), (error: Error) => {
        assert.match(error.message, /10 delegations are open, and one message may have 10\ntest \(ws_/)
        return error.message.split('\n').filter((line) => line.startsWith('  test (ws_')).length === 10
      })
      const child = await (workers[1] as TestWorker).lease()
      assert.equal((await admit(childOf(lease, to, { taskId: child.taskId }))).taskId, child.taskId, 'it continues')
      await harness.local.inbox.settle(child, done('1'))
      await harness.local.inbox.settle(await (workers[1] as TestWorker).lease(), done('2'))
      await waitUntil(async () => (await admit(childOf(lease, to)).catch(() => undefined)) !== undefined)
    })
  })

  test('TW-9 one message causes at most 50 turns, those of late results and of retries included', async () => {
    await withTeam(2, async ({ ids, workers, lease: first }) => {
      const [home, away] = workers as [TestWorker, TestWorker]
      let lease = first
      let turns = 1
      for (;;) {
        try {
          await admit(childOf(lease, ids[1] ?? ''))
        } catch (error) {
          assert.match((error as Error).message, /may cause 50 turns, and this one has caused 5[01]\n/)
          break
        }
        const child = await away.lease()
        // Every other child ends during the turn of its parent.
        const order = turns % 4 === 1 ? [child, lease] : [lease, child]
        for (const each of order) await harness.local.inbox.settle(each, done('ping'))
        lease = await home.lease()
        turns += 2
      }
      assert.ok(turns === 50 || turns === 51, String(turns))
    })
  })

  test('TW-9 the limits that travel with a delegation only narrow', async () => {
    await withTeam(4, async ({ ids, workers, lease }) => {
      const given = (letter: Letter, limits: Metadata): Letter => {
        const metadata = { molecule_delegation: limits }
        return { ...letter, envelope: { ...letter.envelope, message: { ...letter.envelope.message, metadata } } }
      }
      const deadline = new Date(Date.now() + 3600_000).toISOString()
      await admit(given(childOf(lease, ids[1] ?? ''), { depth_left: 1, turns_left: 1, deadline }))
      const child = await (workers[1] as TestWorker).lease()
      assert.deepEqual(limitsOf(child), {
        root_task: lease.taskId,
        root_caller: 'people',
        depth_left: 1,
        turns_left: 1,
        turns_max: 50,
        deadline,
      })
      const wide = { depth_left: 90, turns_left: 90, deadline: '2999-01-01T00:00:00Z', root_caller: 'admin' }
      await admit(given(childOf(child, ids[2] ?? ''), wide))
      const grandchild = await (workers[2] as TestWorker).lease()
      assert.deepEqual({ ...limitsOf(grandchild) }, { ...limitsOf(child), depth_left: 0, turns_left: 0 })
      const used = /the turns that came with this task are used up/
      await assert.rejects(admit(childOf(child, ids[3] ?? '')), used)
      await assert.rejects(admit(childOf(grandchild, ids[3] ?? '')), used)
      const far = await admit(given(childOf(lease, ids[3] ?? ''), { deadline: '2999-01-01T00:00:00Z' }))
      const [row] = await harness.sql('select expires_at - admitted_at as ms from messages where id = $1', far.taskId)
      assert.ok(Number(row?.['ms']) < 25 * 3600_000, 'a late deadline does not keep a message longer than usual')
      const late = given(childOf(lease, ids[3] ?? ''), { deadline: new Date(Date.now() - 1000).toISOString() })
      await assert.rejects(admit(late), /its deadline .* is over/)
    })
  })

  test('TW-3 the story of each task has the whole tree, the activity has each delegation once, and a reader sees its own', async () => {
    await withTeam(3, async ({ ids, workers, lease }) => {
      const [first = '', second = '', third = ''] = ids
      const letter = childOf(lease, second)
      const child = await admit(letter)
      await admit(letter)
      const childLease = await (workers[1] as TestWorker).lease()
      const grandchild = await admit(childOf(childLease, third))
      await harness.local.inbox.settle(childLease, done('7'))
      const tree = (id: string, principal?: string) =>
        harness.local.stories
          .find({ id, scopeOf: () => (principal === undefined ? { detail: true } : { principal }) })
          .then((found) => found?.tree)
      const whole = await tree(lease.taskId)
      assert.deepEqual(
        whole?.tasks.map(({ taskId, parentTaskId, depth, workspaceId, state }) => [
          ...[taskId, parentTaskId, depth],
          ...[workspaceId, state],
        ]),
        [
          [lease.taskId, undefined, 0, first, 'TASK_STATE_WORKING'],
          [child.taskId, lease.taskId, 1, second, 'TASK_STATE_COMPLETED'],
          [grandchild.taskId, child.taskId, 2, third, 'TASK_STATE_WORKING'],
        ],
      )
      assert.deepEqual(await tree(grandchild.taskId), whole)
      const own = await tree(child.taskId, letter.principal)
      assert.deepEqual([own?.tasks.map(({ taskId }) => taskId), own?.hidden], [[child.taskId], 2])
      const { entries } = await harness.local.activity.read({ workspaceId: first, sinceSeq: 0, limit: 100 })
      const delegated = entries.filter(({ type }) => type === 'delegated')
      assert.deepEqual(
        delegated.map(({ taskId, name, subject }) => [taskId, name, subject]),
        [[lease.taskId, 'test', child.taskId]],
      )
      const story = await harness.local.stories.find({ id: lease.taskId, scopeOf: () => ({ detail: true }) })
      assert.ok(story?.steps.some(({ text }) => text === `it delegated to test, as task ${child.taskId}`))
    })
  })

  test('IN-9 TW-3 a turn that waits for its child gives up its slot until the last wait has ended', async () => {
    const [id, other] = [await harness.workspace(1), await harness.workspace(2)]
    const running = async () => (await harness.load(id)) as { running: number }
    await harness.withWorker(id, (worker) =>
      harness.withWorker(other, async (away) => {
        await admit(letterTo(id))
        const lease = await worker.lease()
        const wait = (text: string) =>
          harness.local.reception.send(childOf(lease, other, { text }), { maxMs: 60_000 }, AbortSignal.timeout(60_000))
        const waits = [wait('a'), wait('b')]
        const children = [await away.lease(), await away.lease()] as const
        assert.equal((await running()).running, 0)
        await harness.local.inbox.settle(children[0], done('1'))
        await Promise.race(waits)
        assert.equal((await running()).running, 0)
        await harness.local.inbox.settle(children[1], done('2'))
        await Promise.all(waits)
        assert.equal((await running()).running, 1)
        await harness.local.inbox.settle(lease, done('both'))
        assert.equal((await running()).running, 0)
      }),
    )
  })
}
