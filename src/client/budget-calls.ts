/** The calls of the API about budgets that are spent. */

interface BudgetRequest {
  readonly method: 'POST'
  readonly path: string
  readonly body?: string
}

export interface BudgetCalls {
  raiseBudget(id: string, maxCostUsd: number): Promise<void>
  stopBudget(id: string): Promise<void>
}

export function budgetCalls(call: (request: BudgetRequest) => Promise<unknown>): BudgetCalls {
  const answer = async (id: string, body: object) => {
    await call({ method: 'POST', path: `/budgets/${encodeURIComponent(id)}`, body: JSON.stringify(body) })
  }
  return {
    raiseBudget: (id, maxCostUsd) => answer(id, { decision: 'raise', max_cost_usd: maxCostUsd }),
    stopBudget: (id) => answer(id, { decision: 'stop' }),
  }
}
