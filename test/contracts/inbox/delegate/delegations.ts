/** Delegations: children of a turn, their keys, their limits, and what ends with their parent. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease } from '../../../../src/inbox/worker.ts'
import type { Task } from '../../../../src/protocol/a2a.ts'
import { readStory } from '../../../../src/views/story/story.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { waitUntil } from '../../../harness/wait.ts'
import { done, failure, hasCode, type InboxHarness, type TestWorker } from '../harness.ts'
import { storeWith } from '../nodes.ts'
import { childOf, createTeams, limitsOf, pathOf, retry, withLimits } from './team.ts'

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
      const deadline = new Date(Date.now() + 3600_000).toISOString()
      await admit(withLimits(childOf(lease, ids[1] ?? ''), { depth_left: 1, turns_left: 1, deadline }))
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
      await admit(withLimits(childOf(child, ids[2] ?? ''), wide))
      const grandchild = await (workers[2] as TestWorker).lease()
      assert.deepEqual({ ...limitsOf(grandchild) }, { ...limitsOf(child), depth_left: 0, turns_left: 0 })
      const used = /the turns that came with this task are used up/
      await assert.rejects(admit(childOf(child, ids[3] ?? '')), used)
      await assert.rejects(admit(childOf(grandchild, ids[3] ?? '')), used)
      const far = await admit(withLimits(childOf(lease, ids[3] ?? ''), { deadline: '2999-01-01T00:00:00Z' }))
      const [row] = await harness.sql('select expires_at - admitted_at as ms from messages where id = $1', far.taskId)
      assert.ok(Number(row?.['ms']) < 25 * 3600_000, 'a late deadline does not keep a message longer than usual')
      const late = withLimits(childOf(lease, ids[3] ?? ''), { deadline: new Date(Date.now() - 1000).toISOString() })
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
      const tree = async (id: string, principal?: string) => {
        const scopeOf = () => (principal === undefined ? { detail: true } : { principal })
        return (await readStory(harness.local.store, { id, scopeOf })).tree
      }
      const whole = await tree(lease.taskId)
      assert.deepEqual(
        whole?.tasks.map(({ task_id, parent_task_id, depth, workspace_id, state }) => [
          ...[task_id, parent_task_id, depth],
          ...[workspace_id, state],
        ]),
        [
          [lease.taskId, null, 0, first, 'TASK_STATE_WORKING'],
          [child.taskId, lease.taskId, 1, second, 'TASK_STATE_COMPLETED'],
          [grandchild.taskId, child.taskId, 2, third, 'TASK_STATE_WORKING'],
        ],
      )
      assert.deepEqual(await tree(grandchild.taskId), whole)
      const own = await tree(child.taskId, letter.principal)
      assert.deepEqual([own?.tasks.map(({ task_id }) => task_id), own?.hidden], [[child.taskId], 2])
      const entries = await harness.activity(first)
      const delegated = entries.filter(({ type }) => type === 'delegated')
      assert.deepEqual(
        delegated.map(({ task_id, name, subject }) => [task_id, name, subject]),
        [[lease.taskId, 'test', child.taskId]],
      )
      const story = await readStory(harness.local.store, { id: lease.taskId, scopeOf: () => ({ detail: true }) })
      assert.ok(story.steps.some(({ text }) => text === `it delegated to test, as task ${child.taskId}`))
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
        // A child is admitted before its parent waits.
        await waitUntil(async () => (await running()).running === 0, 'the parent has given up its slot')
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

  test('TW-9 TW-10 the limits and the money of the first message hold for its tree, with the path to each message', async () => {
    await withTeam(4, async ({ ids, workers }) => {
      const [a = '', b = '', c = '', d = ''] = ids
      const [home, away, far] = workers as [TestWorker, TestWorker, TestWorker]
      const deadline = new Date(Date.now() + 3600_000).toISOString()
      await admit(withLimits(letterTo(a), { turns_left: 4, depth_left: 2, deadline, max_cost_usd: 1 }))
      const root = await home.lease()
      const first = { root_task: root.taskId, root_caller: 'people', turns_max: 4, deadline, cost_left_usd: 1 }
      await admit(withLimits(childOf(root, b), { max_cost_usd: 2 }))
      const child = await away.lease()
      const covered = { ...first, budgets: [root.messageId] }
      assert.deepEqual(limitsOf(child), { ...covered, depth_left: 1, turns_left: 2, max_cost_usd: 2 })
      const later = new Date(Date.now() + 7200_000).toISOString()
      await admit(withLimits(childOf(child, c), { deadline: later }))
      const grandchild = await far.lease()
      const budgets = [root.messageId, child.messageId]
      assert.deepEqual(limitsOf(grandchild), { ...first, budgets, depth_left: 0, turns_left: 1 })
      assert.deepEqual([pathOf(root), pathOf(child), pathOf(grandchild)], [undefined, [a], [a, b]])
      await assert.rejects(admit(childOf(grandchild, d)), /: this task may not be delegated further\n/)
    })
  })

  test('TW-3 a process that outlives its turn delegates for the last message of its conversation; a turn that failed delegates nothing', async () => {
    await withTeam(3, async ({ ids, workers: [home, away], lease }) => {
      const [a = '', b = '', c = ''] = ids
      await admit(letterTo(a))
      const other = await home.lease()
      await harness.local.inbox.settle(lease, done('bye'))
      const late = await admit(childOf(lease, b))
      assert.deepEqual(await relatives(late.taskId), { parent_id: lease.messageId, root_id: lease.messageId })
      await away.lease()
      // A conversation that is not kept any more, or of another workspace, has no parent. The path stays.
      for (const unknown of [
        { ...lease, conversationId: 'gone' },
        { ...lease, workspaceId: c },
      ]) {
        const orphan = await admit(childOf(unknown, b))
        assert.deepEqual(await relatives(orphan.taskId), { parent_id: null, root_id: null })
        assert.deepEqual(pathOf(await away.lease()), [unknown.workspaceId])
      }
      await harness.local.inbox.settle(other, { type: 'dead', failure })
      await assert.rejects(admit(childOf(other, b)), /: the task that delegates has failed$/)
    })
  })

  test('TW-6 an old child has the same text, workspace and, where one is named, context; a message that continues a task is none', async () => {
    await withTeam(3, async ({ ids, workers, lease }) => {
      const [, b = '', c = ''] = ids
      const delegate = async (of: Lease, to: string, contextId?: string) =>
        (await admit(childOf(of, to, { text: 'count', ...(contextId !== undefined && { contextId }) }))).taskId
      const [toB, one, two] = [
        await delegate(lease, b),
        await delegate(lease, c, 'one'),
        await delegate(lease, c, 'two'),
      ]
      await harness.local.inbox.settle(lease, retry)
      const again = await (workers[0] as TestWorker).lease()
      assert.ok(![toB, one, two].includes(await delegate(again, c, 'three')))
      assert.equal(await delegate(again, c, 'two'), two)
      assert.equal(await delegate(again, c), one)
      const next = await admit(childOf(again, b, { text: 'count', taskId: toB }))
      assert.deepEqual([next.taskId, next.duplicate], [toB, false])
      assert.equal(await delegate(again, b), toB)
    })
  })

  test('TW-3 a child that is cancelled with its parent says why, and the next message of its conversation runs', async () => {
    await withTeam(2, async ({ ids, workers: [, away], lease }) => {
      const letter = childOf(lease, ids[1] ?? '')
      await admit(letter)
      const child = await away.lease()
      const parked = { afterMs: 3600_000, said: { parts: [{ text: 'later' }] } }
      await harness.local.inbox.settle(child, { type: 'released', interrupted: false, parked })
      const behind = await admit(letterTo(ids[1] ?? '', { principal: letter.principal, contextId: child.contextId }))
      assert.ok(await away.idle())
      await harness.local.inbox.settle(lease, { type: 'dead', failure })
      assert.equal((await away.lease()).taskId, behind.taskId)
      const { status } = (await harness.local.reception.task(child.taskId)) as Task
      assert.equal(status.state, 'TASK_STATE_CANCELED')
      assert.deepEqual(status.message?.parts, [{ text: 'the task that delegated it was cancelled or has failed' }])
    })
  })

  test('IN-9 eight turns of a workspace may wait; a further wait is refused for 5 s, and one that fails gives its slot back', async () => {
    const id = await harness.workspace(9)
    const { reception } = harness.local
    await harness.withWorker(id, async (worker) => {
      const turns: Lease[] = []
      while (turns.length < 9) {
        await admit(letterTo(id))
        turns.push(await worker.lease())
      }
      const last = turns[8] as Lease
      const gate = Promise.withResolvers<void>()
      const waits = turns.slice(0, 8).map((turn) => reception.whileWaiting(turn, () => gate.promise))
      const told: string[] = []
      while (told.length < 8) {
        const directive = await worker.next()
        assert.ok(directive.type === 'waiting' && directive.waiting)
        told.push(directive.key.messageId)
      }
      assert.deepEqual(
        told.sort(),
        turns
          .slice(0, 8)
          .map(({ messageId }) => messageId)
          .sort(),
      )
      const refused = { code: 'queue_full', retryable: true, details: { retryAfterMs: 5000 } }
      await assert.rejects(
        reception.whileWaiting(last, () => assert.fail('the work must not begin')),
        refused,
      )
      assert.deepEqual(await harness.load(id), { running: 1, waiting: 0 })
      gate.resolve()
      await Promise.all(waits)
      const failing = reception.whileWaiting(last, () => Promise.reject(new Error('no answer')))
      await assert.rejects(failing, /no answer/)
      assert.deepEqual(await harness.load(id), { running: 9, waiting: 0 })
      for (const turn of turns) await harness.local.inbox.settle(turn, done('bye'))
      assert.equal(await reception.whileWaiting(last, async () => 'late'), 'late')
    })
  })

  test('TW-3 a store that fails for a moment loses no delegation, no read and no wait', async () => {
    await withTeam(2, async ({ ids, workers: [, away], lease }) => {
      let [writes, failing] = [0, (_: number) => false]
      const store = storeWith(harness, () => {
        writes += 1
        if (failing(writes)) throw new Error('the disk is away')
      })
      const node = harness.newInbox(undefined, store)
      const fail = (when: (write: number) => boolean) => {
        writes = 0
        failing = when
      }
      // The second write is the entry in the activity of the parent.
      fail((write) => write === 2)
      const { taskId } = await node.reception.admit(childOf(lease, ids[1] ?? ''))
      fail(() => false)
      const child = await away.lease()
      assert.equal(child.taskId, taskId)
      await harness.local.inbox.settle(child, done('7'))
      const task = (await harness.local.reception.task(taskId)) as Task
      fail(() => true)
      const { workspaceId, conversationId } = lease
      await node.reception.markRead(task, { principal: `ws:${workspaceId}/${conversationId}`, conversationId })
      await assert.rejects(
        node.reception.whileWaiting(lease, () => assert.fail('the work must not begin')),
        /away/,
      )
      fail((write) => write === 2)
      assert.equal(await node.reception.whileWaiting(lease, async () => 'done'), 'done')
      node.close()
    })
  })
}
