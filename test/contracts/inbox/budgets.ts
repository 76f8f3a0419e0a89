/** Budgets: what is spent of them, who is asked, and what an answer does to the messages that wait. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease, Letter } from '../../../src/inbox/inbox.ts'
import { type DelegationEnvelope, mayHaveBudget } from '../../../src/protocol/delegation.ts'
import { withMessageMetadata } from '../../../src/protocol/envelope.ts'
import { letterTo } from '../../fakes/letters.ts'
import { done, hasCode, type InboxHarness, type TestWorker } from './harness.ts'

const answerer = { name: 'Ana', principal: 'people', door: 'http' }

const withMax = (letter: Letter, maxCostUsd: number): Letter => ({
  ...letter,
  envelope: withMessageMetadata(letter.envelope, { molecule_delegation: { max_cost_usd: maxCostUsd } }),
})

const childOf = ({ workspaceId, conversationId }: Lease, to: string): Letter => ({
  ...letterTo(to, { principal: `ws:${workspaceId}/${conversationId}` }),
  parent: { workspaceId, conversationId },
})

const limitsOf = ({ envelope }: Lease) =>
  envelope.message.metadata?.['molecule_delegation'] as unknown as DelegationEnvelope

export function budgetTests(harness: InboxHarness): void {
  const admit = (letter: Letter) => harness.local.reception.admit(letter)
  const settle = (lease: Lease, costUsd?: number) =>
    harness.local.inbox.settle(lease, { ...done('ok'), usage: { durationMs: 1, ...(costUsd && { costUsd }) } })
  const check = (lease: Lease, costUsdPerDayMax?: number) => {
    const mayHaveMessageBudget = mayHaveBudget(lease.envelope.message.metadata)
    return harness.local.budgets.check({ ...lease, mayHaveMessageBudget, costUsdPerDayMax })
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
  const asks = (workspaceId: string) => harness.local.budgets.list({ workspaceId })
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
      for (let count = 0; count < 4; count++) await admit(childOf(root, peerId))
      const leases = [await peer.lease(), await peer.lease(), await peer.lease(), await peer.lease()]
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
      assert.deepEqual([asked?.taskId, asked?.waiting, asked?.spentUsd, more], [root.taskId, 2, 0.02, []])
      const steps = await harness.local.activity.read({ workspaceId: rootId, sinceSeq: 0, type: 'budget', limit: 10 })
      assert.deepEqual(
        steps.entries.map(({ name }) => name),
        ['asked'],
      )
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
      assert.deepEqual(await harness.sql('select message_id from budget_waits where workspace_id = $1', peerId), [])
      await settle(fourth)
      await settle(root, 0.001)
      const story = await harness.local.stories.find({ id: root.taskId, scopeOf: () => ({ detail: true }) })
      assert.deepEqual(story?.budgets, [
        { limitUsd: 0.05, state: 'open', taskId: root.taskId, costUsd: 0.031, unknownTurns: 1 },
      ])
    })
  })

  test('TW-10 the budget of a delegation counts what it and its own delegations cost, not what its siblings cost', async () => {
    await withTree(1, async ({ peerId, peer, root }) => {
      const thirdId = await harness.workspace(20)
      const third = harness.worker(thirdId)
      try {
        await admit(withMax(childOf(root, peerId), 0.01))
        const limited = await peer.lease()
        await admit(childOf(root, peerId))
        await settle(await peer.lease(), 0.5)
        assert.equal(await check(limited), undefined)
        await admit(childOf(limited, thirdId))
        await settle(await third.lease(), 0.02)
        await admit(childOf(limited, thirdId))
        assert.match(await park(await third.lease()), /the budget of .*, \$0\.01, is spent \(\$0\.02\)/)
        // The budget of the root goes on.
        await admit(childOf(root, peerId))
        assert.equal(await check(await peer.lease()), undefined)
      } finally {
        await third.leave()
      }
    })
  })

  test('TW-10 a stop cancels the messages that wait and those that follow, and refuses new delegations', async () => {
    await withTree(0.01, async ({ rootId, peerId, peer, root }) => {
      await admit(childOf(root, peerId))
      await admit(childOf(root, peerId))
      const [first, second] = [await peer.lease(), await peer.lease()]
      await settle(first, 0.01)
      await park(second)
      const [asked] = await asks(rootId)
      // Admitted before the stop, and leased after it.
      const later = await admit(childOf(root, peerId))
      const third = await peer.lease()
      await harness.local.budgets.stop(asked?.id ?? '', answerer)
      await harness.local.budgets.stop(asked?.id ?? '', answerer)
      await assert.rejects(harness.local.budgets.raise(asked?.id ?? '', 1, answerer), hasCode('unsupported_operation'))
      assert.equal(await harness.state(second.taskId), 'TASK_STATE_CANCELED')
      await park(third)
      await harness.local.budgets.lookAfter()
      assert.equal(await harness.state(later.taskId), 'TASK_STATE_CANCELED')
      await assert.rejects(admit(childOf(root, peerId)), hasCode('forbidden'))
      assert.deepEqual(await asks(rootId), [])
      await settle(root)
    })
  })

  test('TW-10 an answer between the check and the park is not lost, and neither is one before a crash', async () => {
    await withTree(0.01, async ({ rootId, peerId, peer, root }) => {
      await admit(childOf(root, peerId))
      await admit(childOf(root, peerId))
      const [first, second] = [await peer.lease(), await peer.lease()]
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
      await admit(childOf(root, peerId))
      const child = await peer.lease()
      await settle(root, 0.004)
      await settle(child, 0.004)
      const result = await rootWorker.lease()
      assert.deepEqual(limitsOf(result).budgets, [root.messageId])
      assert.ok(Math.abs((limitsOf(result).cost_left_usd ?? 0) - 0.002) < 1e-9)
      assert.equal(limitsOf(result).max_cost_usd, undefined)
      await admit(childOf(result, peerId))
      const next = await peer.lease()
      await settle(result, 0.004)
      assert.match(await park(next), /\$0\.01, is spent \(\$0\.012\)/)
      await harness.local.reception.cancel(next.taskId)
    })
  })

  test('TW-10 a replay of a dead letter has the budget of its message again', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      await admit(withMax(letterTo(id), 0.01))
      const lease = await worker.lease()
      const failure = { code: 'exit', message: 'it broke' }
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
      for (const text of ['one', 'two', 'three']) await admit(letterTo(id, { text }))
      const [first, second, third] = [await worker.lease(), await worker.lease(), await worker.lease()]
      assert.equal(await check(first, 1), undefined)
      await settle(first, 1)
      assert.match(await park(second, 1), /^waiting: today's budget of this workspace, \$1\.00, is spent \(\$1\.00\)/)
      await park(third, 1)
      const [asked, ...more] = await asks(id)
      assert.deepEqual([asked?.taskId, asked?.waiting, more], [undefined, 2, []])
      const { list, waitOf } = harness.local.budgets
      assert.deepEqual(await list({ id: asked?.id ?? '' }), [asked])
      const wait = { budgetId: asked?.id, askedAtMs: asked?.askedAtMs, isAsked: true }
      assert.deepEqual([await waitOf(second.taskId), await waitOf(first.taskId)], [wait, undefined])
      // A larger limit in config.yaml counts at once.
      await harness.local.budgets.raise(asked?.id ?? '', 1.5, answerer)
      assert.deepEqual([await list({ id: asked?.id ?? '' }), await waitOf(second.taskId)], [[], undefined])
      const woken = [await worker.lease(), await worker.lease()]
      assert.equal(await check(woken[0] as Lease, 1), undefined)
      await settle(woken[0] as Lease, 0.5)
      await park(woken[1] as Lease, 1)
      assert.equal(await check(woken[1] as Lease, 2), undefined)
      await harness.sql('update turn_usage set ended_at = ended_at - 86400000 where workspace_id = $1', id)
      assert.equal(await check(woken[1] as Lease, 1), undefined)
      await harness.local.reception.cancel((woken[1] as Lease).taskId)
    })
  })
}
