/** Budgets: what is spent of them, who is asked, and what an answer does to the messages that wait. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Letter } from '../../../../src/inbox/reception.ts'
import type { Lease } from '../../../../src/inbox/worker.ts'
import { mayHaveBudget } from '../../../../src/protocol/delegation.ts'
import { readBudgetAsks, readBudgetWait } from '../../../../src/views/needs/budget-asks.ts'
import { readNeeds } from '../../../../src/views/needs/needs.ts'
import { readStory } from '../../../../src/views/story/story.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { waitUntil } from '../../../harness/wait.ts'
import { childOf, limitsOf, withLimits } from '../delegate/team.ts'
import { done, failure, hasCode, type InboxHarness, type TestWorker } from '../harness.ts'
import { storeWith } from '../nodes.ts'

const answerer = { name: 'Ana', principal: 'people', door: 'http' }

const withMax = (letter: Letter, maxCostUsd: number) => withLimits(letter, { max_cost_usd: maxCostUsd })

export function budgetTests(harness: InboxHarness): void {
  const admit = (letter: Letter) => harness.local.reception.admit(letter)
  const settle = (lease: Lease, costUsd?: number) =>
    harness.local.inbox.settle(lease, { ...done('ok'), usage: { durationMs: 1, ...(costUsd && { costUsd }) } })
  const check = (lease: Lease, costUsdPerDayMax?: number, budgets = harness.local.budgets) => {
    const mayHaveMessageBudget = mayHaveBudget(lease.envelope.message.metadata)
    return budgets.check({ ...lease, mayHaveMessageBudget, costUsdPerDayMax })
  }
  /** Parks the message as the runtime does. */
  const park = async (lease: Lease, costUsdPerDayMax?: number): Promise<string> => {
    const parked = await check(lease, costUsdPerDayMax)
    assert.ok(parked !== undefined)
    const { afterMs, reason } = parked
    const said = { parts: [{ text: reason }] }
    await harness.local.inbox.settle(lease, { type: 'released', interrupted: false, parked: { afterMs, said } })
    return reason
  }
  const begin = async (letter: Letter, worker: TestWorker): Promise<Lease> => {
    await admit(letter)
    return await worker.lease()
  }
  const steps = async (workspaceId: string) => {
    const entries = await harness.activity(workspaceId, 'budget')
    return entries.map(({ task_id, name, text, by }) => [task_id, name, text, by])
  }
  const asks = (workspaceId: string) => readBudgetAsks(harness.local.store, { workspaceId })
  const waitOf = (taskId: string) => readBudgetWait(harness.local.store, taskId)
  /** A running root with a budget, and a worker for it and for a peer. */
  const withTree = async (maxCostUsd: number, work: (tree: Tree) => Promise<void>) => {
    const [rootId, peerId] = [await harness.workspace(20), await harness.workspace(20)]
    const [rootWorker, peer] = [harness.worker(rootId), harness.worker(peerId)]
    try {
      await admit(withMax(letterTo(rootId), maxCostUsd))
      await work({ rootId, peerId, rootWorker, peer, root: await rootWorker.lease() })
    } finally {
      await rootWorker.leave()
      await peer.leave()
    }
  }
  interface Tree {
    readonly rootId: string
    readonly peerId: string
    readonly rootWorker: TestWorker
    readonly peer: TestWorker
    readonly root: Lease
  }

  test('TW-10 a tree that has spent its budget parks its messages, asks once, and a raise wakes exactly those', async () => {
    await withTree(0.01, async ({ rootId, peerId, peer, root }) => {
      assert.equal(await check(root), undefined)
      const leases: Lease[] = []
      while (leases.length < 4) leases.push(await begin(childOf(root, peerId), peer))
      const [first, second, third, fourth] = leases as [Lease, Lease, Lease, Lease]
      assert.deepEqual([limitsOf(first).cost_left_usd, limitsOf(first).budgets], [0.01, [root.messageId]])
      assert.equal(await check(first), undefined)
      await settle(first, 0.02)
      const reason = await park(second)
      assert.equal(
        reason,
        'waiting: the budget of this message, $0.01, is spent ($0.02); the owner is asked to raise it or to stop',
      )
      await park(third)
      const [asked, ...more] = await asks(rootId)
      assert.deepEqual([asked?.task_id, asked?.waiting, asked?.cost_usd, more], [root.taskId, 2, 0.02, []])
      const raise = (usd: number) => harness.local.budgets.raise(asked?.id ?? '', usd, answerer)
      await assert.rejects(raise(0.02), hasCode('invalid_request'))
      assert.ok(await peer.idle())
      await raise(0.05)
      // The same answer again changes nothing; another one is refused.
      await raise(0.05)
      await assert.rejects(raise(0.03), hasCode('unsupported_operation'))
      await assert.rejects(harness.local.budgets.stop(asked?.id ?? '', answerer), hasCode('unsupported_operation'))
      assert.deepEqual(await asks(rootId), [])
      const woken = [await peer.lease(), await peer.lease()]
      assert.deepEqual(woken.map(({ messageId }) => messageId).sort(), [second.messageId, third.messageId].sort())
      for (const lease of woken) {
        assert.equal(await check(lease), undefined)
        await settle(lease, 0.005)
      }
      await settle(fourth)
      await settle(root, 0.001)
      const story = await readStory(harness.local.store, { id: root.taskId, scopeOf: () => ({ detail: true }) })
      assert.deepEqual(story.budgets, [
        { max_cost_usd: 0.05, state: 'open', task_id: root.taskId, cost_usd: 0.031, unknown_turns: 1 },
      ])
    })
  })

  test('TW-10 the budget of a delegation counts what it and its own delegations cost, not what its siblings cost', async () => {
    await withTree(1, async ({ peerId, peer, root }) => {
      const thirdId = await harness.workspace(20)
      const third = harness.worker(thirdId)
      try {
        const limited = await begin(withMax(childOf(root, peerId), 0.01), peer)
        await settle(await begin(childOf(root, peerId), peer), 0.5)
        assert.equal(await check(limited), undefined)
        await settle(await begin(childOf(limited, thirdId), third), 0.02)
        assert.match(
          await park(await begin(childOf(limited, thirdId), third)),
          /the budget of .*, \$0\.01, is spent \(\$0\.02\)/,
        )
        // The budget of the root goes on.
        assert.equal(await check(await begin(childOf(root, peerId), peer)), undefined)
      } finally {
        await third.leave()
      }
    })
  })

  test('TW-10 a stop cancels the messages that wait and those that follow, and refuses new delegations', async () => {
    await withTree(0.01, async ({ rootId, peerId, peer, root }) => {
      const [first, second] = [await begin(childOf(root, peerId), peer), await begin(childOf(root, peerId), peer)]
      await settle(first, 0.01)
      await park(second)
      const [asked] = await asks(rootId)
      // Admitted before the stop, and leased after it.
      const third = await begin(childOf(root, peerId), peer)
      await harness.local.budgets.stop(asked?.id ?? '', answerer)
      await harness.local.budgets.stop(asked?.id ?? '', answerer)
      await assert.rejects(harness.local.budgets.raise(asked?.id ?? '', 1, answerer), hasCode('unsupported_operation'))
      assert.equal(await harness.state(second.taskId), 'TASK_STATE_CANCELED')
      await park(third)
      await harness.local.budgets.lookAfter()
      assert.equal(await harness.state(third.taskId), 'TASK_STATE_CANCELED')
      await assert.rejects(admit(childOf(root, peerId)), hasCode('forbidden'))
      assert.deepEqual(await asks(rootId), [])
      await settle(root)
    })
  })

  test('TW-10 an answer between the check and the park is not lost, and neither is one before a crash', async () => {
    await withTree(0.01, async ({ rootId, peerId, peer, root }) => {
      const [first, second] = [await begin(childOf(root, peerId), peer), await begin(childOf(root, peerId), peer)]
      await settle(first, 0.01)
      const parked = await check(second)
      const [asked] = await asks(rootId)
      await harness.local.budgets.raise(asked?.id ?? '', 1, answerer)
      // The runtime settles after the raise: the message would wait for an hour.
      const outcome = { afterMs: parked?.afterMs ?? 0, said: { parts: [{ text: 'x' }] } }
      await harness.local.inbox.settle(second, { type: 'released', interrupted: false, parked: outcome })
      const other = harness.newInbox()
      try {
        await other.budgets.lookAfter()
      } finally {
        other.close()
      }
      const again = await peer.lease()
      assert.equal(again.messageId, second.messageId)
      await settle(again)
      await settle(root)
    })
  })

  test('TW-10 a late result is one more message of the same budget, not a new budget', async () => {
    await withTree(0.01, async ({ peerId, rootWorker, peer, root }) => {
      const child = await begin(childOf(root, peerId), peer)
      await settle(root, 0.004)
      await settle(child, 0.004)
      const result = await rootWorker.lease()
      assert.deepEqual(limitsOf(result).budgets, [root.messageId])
      assert.ok(Math.abs((limitsOf(result).cost_left_usd ?? 0) - 0.002) < 1e-9)
      assert.equal(limitsOf(result).max_cost_usd, undefined)
      const next = await begin(childOf(result, peerId), peer)
      await settle(result, 0.004)
      assert.match(await park(next), /\$0\.01, is spent \(\$0\.012\)/)
      await harness.local.reception.cancel(next.taskId)
    })
  })

  test('TW-10 a replay of a dead letter has the budget of its message again', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const lease = await begin(withMax(letterTo(id), 0.01), worker)
      await harness.local.inbox.settle(lease, { type: 'dead', failure, usage: { durationMs: 1, costUsd: 0.02 } })
      await harness.local.deadLetters.replay(id, lease.messageId)
      const again = await worker.lease()
      assert.equal(await check(again), undefined)
      const retry = { type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: false } as const
      await harness.local.inbox.settle(again, { ...retry, usage: { durationMs: 1, costUsd: 0.02 } })
      const third = await worker.lease()
      await park(third)
      await harness.local.reception.cancel(third.taskId)
    })
  })

  test('TW-10 the budget of a day counts the turns of today, is asked once, and is over with the day', async () => {
    const id = await harness.workspace(5)
    await harness.withWorker(id, async (worker) => {
      const [first, second] = [await begin(letterTo(id), worker), await begin(letterTo(id), worker)]
      const third = await begin(letterTo(id), worker)
      assert.equal(await check(first, 1), undefined)
      await settle(first, 1)
      assert.match(await park(second, 1), /^waiting: today's budget of this workspace, \$1\.00, is spent \(\$1\.00\)/)
      await park(third, 1)
      const [asked, ...more] = await asks(id)
      assert.deepEqual([asked?.task_id, asked?.waiting, more], [null, 2, []])
      const read = () => readNeeds(harness.local.store, { workspaceId: id, workspaces: [] })
      const [need] = (await read()).needs_you
      assert.deepEqual([(await read()).count, need?.id, need?.reason, need?.budget], [1, asked?.id, asked?.text, asked])
      await harness.sql('update budgets set day = day - 1 where workspace_id = $1', id)
      assert.equal((await read()).count, 0, 'the budget of yesterday')
      await harness.sql('update budgets set day = day + 1 where workspace_id = $1', id)
      const wait = { budgetId: asked?.id, askedAtMs: Date.parse(asked?.asked_at ?? ''), isAsked: true }
      assert.deepEqual([await waitOf(second.taskId), await waitOf(first.taskId)], [wait, undefined])
      // A larger limit in config.yaml counts at once.
      await harness.local.budgets.raise(asked?.id ?? '', 1.5, answerer)
      assert.deepEqual([await asks(id), await waitOf(second.taskId)], [[], undefined])
      const woken = [await worker.lease(), await worker.lease()] as const
      assert.equal(await check(woken[0], 1), undefined)
      await settle(woken[0], 0.5)
      await park(woken[1], 1)
      assert.equal((await asks(id))[0]?.max_cost_usd, 1.5, 'it is asked again')
      assert.equal(await check(woken[1], 2), undefined)
      await harness.sql('update turn_usage set ended_at = ended_at - 86400000 where workspace_id = $1', id)
      assert.equal(await check(woken[1], 1), undefined)
      await harness.local.reception.cancel(woken[1].taskId)
    })
  })

  test('TW-10 a raise wakes what waits for that budget, and no other message; a wrong amount or id is refused', async () => {
    await withTree(0.01, async ({ rootId, peerId, rootWorker, peer, root }) => {
      const other = await begin(withMax(letterTo(rootId), 0.01), rootWorker)
      const failed = await begin(letterTo(peerId), peer)
      const retry = { type: 'retry', failure, afterMs: 3600_000, reason: 'failure', interrupted: false } as const
      await harness.local.inbox.settle(failed, retry)
      const leases = [await begin(childOf(root, peerId), peer), await begin(childOf(other, peerId), peer)] as const
      const [child, stranger] = leases
      for (const parent of [root, other]) await settle(await begin(childOf(parent, peerId), peer), 0.02)
      for (const lease of leases) await park(lease)
      const { raise } = harness.local.budgets
      for (const usd of [0, 1_000_001]) {
        await assert.rejects(raise(root.messageId, usd, answerer), hasCode('invalid_request'))
      }
      await assert.rejects(raise('none', 1, answerer), hasCode('not_found'))
      const changed: unknown[] = []
      const stopFollowing = harness.local.activity.onChange((id) => changed.push(id))
      await raise(root.messageId, 0.05, answerer)
      stopFollowing()
      assert.ok(
        [rootId, peerId].every((id) => changed.includes(id)),
        'readers are told',
      )
      assert.equal((await peer.lease()).messageId, child.messageId)
      assert.ok(await peer.idle())
      assert.deepEqual(
        (await asks(rootId)).map(({ id }) => id),
        [other.messageId],
      )
      const spent = 'the budget of this message, $0.01, is spent ($0.02): the owner is asked'
      assert.deepEqual(await steps(rootId), [
        [root.taskId, 'asked', spent, undefined],
        [other.taskId, 'asked', spent, undefined],
        [root.taskId, 'raised', 'the budget was raised from $0.01 to $0.05', 'Ana'],
      ])
      for (const { taskId } of [stranger, failed]) await harness.local.reception.cancel(taskId)
    })
  })

  test('TW-10 a budget is summed to the cent, names turns of unknown cost, and is asked about while a message waits', async () => {
    await withTree(0.8, async ({ rootId, peerId, rootWorker, peer, root }) => {
      const other = await begin(withMax(letterTo(rootId), 0.8), rootWorker)
      const child = await begin(childOf(root, peerId), peer)
      // As a sum of floating point numbers it is a little less than 0.8.
      for (const cost of [0.7, undefined, 0.1]) await settle(await begin(childOf(root, peerId), peer), cost)
      const spent = 'the budget of this message, $0.80, is spent (≥ $0.80, 1 turn of unknown cost)'
      assert.equal(await park(child), `waiting: ${spent}; the owner is asked to raise it or to stop`)
      const [asked, ...more] = await asks(rootId)
      assert.deepEqual([asked?.text, asked?.unknown_turns, more], [`${spent}; 1 message waits`, 1, []])
      assert.equal(limitsOf(await begin(childOf(root, peerId), peer)).cost_left_usd, 0)
      assert.equal(await check(other), undefined)
      await harness.local.reception.cancel(child.taskId)
      assert.deepEqual(await asks(rootId), [], 'no message waits for it')
    })
  })

  test('TW-10 a stop cancels what waits with the reason, and what that has delegated, with its running turn', async () => {
    await withTree(0.01, async ({ peerId, peer, root }) => {
      const thirdId = await harness.workspace()
      await harness.withWorker(thirdId, async (third) => {
        const child = await begin(childOf(root, peerId), peer)
        const grandchild = await begin(childOf(child, thirdId), third)
        await settle(await begin(childOf(root, peerId), peer), 0.02)
        await park(child)
        await harness.local.budgets.stop(root.messageId, answerer)
        const task = await harness.local.reception.task(child.taskId)
        const reason = 'the budget of this message, $0.01, is spent ($0.02), and the owner stopped it'
        assert.deepEqual([task?.status.state, task?.status.message?.parts], ['TASK_STATE_CANCELED', [{ text: reason }]])
        await waitUntil(async () => (await harness.state(grandchild.taskId)) === 'TASK_STATE_CANCELED')
        assert.equal((await third.next()).type, 'stop')
      })
    })
  })

  test('TW-10 a message whose budget was deleted waits no more', async () => {
    await withTree(0.01, async ({ peerId, peer, root }) => {
      const child = await begin(childOf(root, peerId), peer)
      await settle(await begin(childOf(root, peerId), peer), 0.02)
      await park(child)
      await harness.sql('delete from budgets where id = $1', root.messageId)
      await harness.local.budgets.lookAfter()
      assert.equal((await peer.lease()).messageId, child.messageId)
    })
  })

  test('TW-10 a raise that comes between the look at a budget and the hold lets the turn begin', async () => {
    const { budgets } = harness.local
    /** The check has read the store, and its write waits for the raise. */
    const checkDuring = async (lease: Lease, raise: () => Promise<void>, costUsdPerDayMax?: number) => {
      const [reached, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
      const store = storeWith(harness, () => {
        reached.resolve()
        return gate.promise
      })
      const node = harness.newInbox(undefined, store)
      const checked = check(lease, costUsdPerDayMax, node.budgets)
      await reached.promise
      await raise()
      gate.resolve()
      node.close()
      return await checked
    }
    await withTree(0.01, async ({ rootId, peerId, peer, root }) => {
      await settle(await begin(childOf(root, peerId), peer), 0.02)
      const child = await begin(childOf(root, peerId), peer)
      assert.equal(await checkDuring(child, () => budgets.raise(root.messageId, 0.05, answerer)), undefined)
      const waiting = await begin(letterTo(peerId), peer)
      await park(waiting, 0.02)
      const [asked] = await asks(peerId)
      const raise = () => budgets.raise(asked?.id ?? '', 1, answerer)
      assert.equal(await checkDuring(child, raise, 0.02), undefined)
      assert.deepEqual([...(await asks(rootId)), ...(await asks(peerId))], [])
    })
  })

  test('TW-10 the budget of a day has the turns of one workspace, from the first moment of a UTC day to its last', async () => {
    const [id, other] = [await harness.workspace(5), await harness.workspace(5)]
    await harness.withWorker(other, (elsewhere) =>
      harness.withWorker(id, async (worker) => {
        const [lease, spending] = [await begin(letterTo(id), worker), await begin(letterTo(id), worker)]
        const stranger = await begin(letterTo(other), elsewhere)
        await settle(spending, 1)
        const isHeldAt = async (sinceMidnightMs: number) => {
          const text = 'update turn_usage set ended_at = now_ms() / 86400000 * 86400000 + $2 where workspace_id = $1'
          await harness.sql(text, id, sinceMidnightMs)
          return (await check(lease, 1)) !== undefined
        }
        const held: boolean[] = []
        for (const ms of [-1, 0, 86_399_999, 86_400_000]) held.push(await isHeldAt(ms))
        assert.deepEqual(held, [false, true, true, false])
        assert.equal(await check(stranger, 1), undefined)
        assert.equal(await check(lease), undefined, 'this workspace has no budget')
      }),
    )
  })

  test('TW-10 the stop of a day cancels what waited then; what comes later waits for the next day', async () => {
    const id = await harness.workspace(5)
    const { budgets } = harness.local
    await harness.withWorker(id, async (worker) => {
      const [first, later] = [await begin(letterTo(id), worker), await begin(letterTo(id), worker)]
      await settle(await begin(letterTo(id), worker), 1)
      await park(first, 1)
      const [asked] = await asks(id)
      await budgets.stop(asked?.id ?? '', answerer)
      assert.equal(await harness.state(first.taskId), 'TASK_STATE_CANCELED')
      await harness.sql('update budgets set answered_at = answered_at - 1 where id = $1', asked?.id ?? '')
      const spent = "today's budget of this workspace, $1.00, is spent ($1.00)"
      const { afterMs = 0 } = (await check(later, 1)) ?? {}
      assert.ok(afterMs > 0 && afterMs <= 600_000, 'the limit of the day may change')
      assert.equal(await park(later, 1), `waiting: ${spent}; it goes on at midnight UTC at the latest`)
      await budgets.lookAfter()
      const wait = { budgetId: asked?.id, askedAtMs: Date.parse(asked?.asked_at ?? ''), isAsked: false }
      assert.deepEqual(await waitOf(later.taskId), wait)
      assert.equal(await harness.state(later.taskId), 'TASK_STATE_WORKING')
      assert.deepEqual(await steps(id), [
        [first.taskId, 'asked', `${spent}: the owner is asked`, undefined],
        [first.taskId, 'stopped', `${spent}: what waits for it is cancelled`, 'Ana'],
      ])
    })
  })
}
