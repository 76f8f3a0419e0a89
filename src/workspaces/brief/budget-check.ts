/**
 * Checks the budgets of a turn when its brief is made, so it holds for bridges too. A turn whose budget is spent is
 * parked. A turn without a budget costs no query.
 */
import type { Lease } from '../../inbox/worker.ts'
import type { Brief } from '../../protocol/brief.ts'
import { mayHaveBudget } from '../../protocol/delegation.ts'
import type { BriefStep } from './make-brief.ts'

/** Why the turn must wait; undefined when it may begin. */
export type CheckBudget = (turn: {
  readonly workspaceId: string
  readonly messageId: string
  readonly taskId: string
  readonly mayHaveMessageBudget: boolean
  readonly costUsdPerDayMax?: number | undefined
}) => Promise<Brief['parked']>

export function budgetStep(check: CheckBudget): BriefStep<Lease> {
  return async (brief, lease) => {
    const { costUsdPerDayMax } = brief
    const mayHaveMessageBudget = mayHaveBudget(lease.envelope.message.metadata)
    if (!mayHaveMessageBudget && costUsdPerDayMax === undefined) return brief
    const { workspaceId, messageId, taskId } = lease
    const parked = await check({ workspaceId, messageId, taskId, mayHaveMessageBudget, costUsdPerDayMax })
    return parked === undefined ? brief : { ...brief, parked }
  }
}
