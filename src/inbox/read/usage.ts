/** Sums of usage, for messages. Invariant: an unknown number is null and counted as unknown; it is never 0. */
import type { UsageSum } from '../readers.ts'

export interface SumRow {
  turns: number
  known: number
  /** Turns with a cost. */
  priced: number
  input: number | null
  output: number | null
  cost: number | null
  duration: number | null
}

export const SUMS = `count(*) as turns,
  sum(case when input_tokens is not null and output_tokens is not null then 1 else 0 end) as known,
  sum(case when cost_usd is not null then 1 else 0 end) as priced,
  sum(input_tokens) as input, sum(output_tokens) as output, sum(cost_usd) as cost, sum(duration_ms) as duration`

export const toSum = ({ turns, known, priced, input, output, cost, duration }: SumRow): UsageSum => ({
  turns,
  unknownTurns: turns - (known ?? 0),
  unknownCostTurns: turns - (priced ?? 0),
  inputTokens: input,
  outputTokens: output,
  costUsd: cost,
  durationMs: duration,
})
