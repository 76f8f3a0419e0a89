/** What is counted of a turn when it ends: how it ended, what it failed of, what it used. */
import type { Outcome } from '../inbox/inbox.ts'
import type { Metrics } from '../metrics.ts'

export function countTurn(metrics: Metrics, outcome: Outcome): void {
  metrics.count('molecule_turns_total', { outcome: outcome.type })
  if (outcome.type === 'retry' || outcome.type === 'dead') {
    metrics.count('molecule_turn_failures_total', { code: outcome.failure.code })
  }
  if (outcome.usage === undefined) return
  const { inputTokens = 0, outputTokens = 0 } = outcome.usage
  metrics.count('molecule_tokens_total', { direction: 'input' }, inputTokens)
  metrics.count('molecule_tokens_total', { direction: 'output' }, outputTokens)
}
