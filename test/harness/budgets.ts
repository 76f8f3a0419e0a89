/** Two workspaces whose turns have budgets, and a worker for each that parks a message as the runtime does. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Lease, Letter } from '../../src/inbox/inbox.ts'
import { mayHaveBudget } from '../../src/protocol/delegation.ts'
import { withMessageMetadata } from '../../src/protocol/envelope.ts'
import { done, openInboxOnClock } from './inbox-on-clock.ts'

/** The letter with a budget. */
export const withMax = (letter: Letter, maxCostUsd: number): Letter => ({
  ...letter,
  envelope: withMessageMetadata(letter.envelope, { molecule_delegation: { max_cost_usd: maxCostUsd } }),
})

export async function openBudgets(t: TestContext) {
  const inbox = openInboxOnClock(t)
  const [a, b] = [await inbox.workspace({ slots: 20 }), await inbox.workspace({ slots: 20 })]
  const [workerA, workerB] = [inbox.worker([a]), inbox.worker([b])]
  const check = (lease: Lease | undefined, costUsdPerDayMax?: number) => {
    assert.ok(lease !== undefined)
    const mayHaveMessageBudget = mayHaveBudget(lease.envelope.message.metadata)
    return inbox.local.budgets.check({ ...lease, mayHaveMessageBudget, costUsdPerDayMax })
  }
  return {
    inbox,
    a,
    b,
    workerA,
    workerB,
    check,
    /** Admits the letter, and its turn begins. */
    async begin(letter: Letter): Promise<Lease> {
      await inbox.local.reception.admit(letter)
      return await (letter.workspaceId === a ? workerA : workerB).lease()
    },
    settle: (lease: Lease, costUsd?: number) =>
      inbox.local.inbox.settle(lease, { ...done('ok'), usage: { durationMs: 1, ...(costUsd && { costUsd }) } }),
    /** The budget must be spent. Returns for how long and why the message is parked. */
    async park(lease: Lease, costUsdPerDayMax?: number) {
      const parked = await check(lease, costUsdPerDayMax)
      assert.ok(parked !== undefined, 'the budget is not spent')
      const said = { parts: [{ text: parked.reason }] }
      const outcome = { type: 'released', interrupted: false, parked: { afterMs: parked.afterMs, said } } as const
      await inbox.local.inbox.settle(lease, outcome)
      return parked
    },
    /** The budgets of messages, in the order of their messages. */
    async budgets() {
      const rows = await inbox.sql('select id, state, limit_usd from budgets order by id')
      return rows.map((row) => [row['id'], row['state'], row['limit_usd']])
    },
  }
}
