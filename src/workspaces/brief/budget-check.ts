/**
 * Checks the budgets of a turn when its brief is made, so it holds for bridges too. A turn whose budget is spent is
 * parked. A turn without a budget costs no query.
 */
import type { Lease } from '../../inbox/worker.ts'
import type { Brief } from '../../protocol/brief.ts'
import { mayHaveBudget } from '../../protocol/delegation.ts'

/** Why the turn must wait; undefined when it may begin. */
export type CheckBudget = (turn: {
  readonly workspaceId: string
  readonly messageId: string
  readonly taskId: string
  readonly mayHaveMessageBudget: boolean
  readonly costUsdPerDayMax?: number | undefined
}) => Promise<Brief['parked']>

export function withBudgetCheck<B>(
  makeBrief: (lease: Lease, bridge?: B) => Promise<Brief>,
  check: CheckBudget,
): (lease: Lease, bridge?: B) => Promise<Brief> {
  return async (lease, bridge) => {
    const brief = await makeBrief(lease, bridge)
    const { costUsdPerDayMax } = brief
    const mayHaveMessageBudget = mayHaveBudget(lease.envelope.message.metadata)
    if (!mayHaveMessageBudget && costUsdPerDayMax === undefined) return brief
    const { workspaceId, messageId, taskId } = lease
    const parked = await check({ workspaceId, messageId, taskId, mayHaveMessageBudget, costUsdPerDayMax })
    return parked === undefined ? brief : { ...brief, parked }
  }
}
