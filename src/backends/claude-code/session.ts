/**
 * The session token of claude: the id of its session, alone unless there is more to know for the next turn. Pure.
 * - `model`: the model that the conversation chose. claude keeps it for the session, so a turn that goes back to the usual
 *   model must name that one.
 * - `costUsd`: what the session has cost. Some versions report only this sum, and then a turn costs the difference.
 */
import { parseJsonObject } from '../../protocol/json.ts'

export interface ClaudeSession {
  readonly id: string
  readonly model?: string | undefined
  readonly costUsd?: number | undefined
}

export const writeSession = ({ id, model, costUsd }: ClaudeSession): string =>
  model === undefined && costUsd === undefined ? id : JSON.stringify({ id, model, costUsd })

/** Undefined without a token. A token that is no JSON is the id itself. */
export function readSession(token: string | undefined): ClaudeSession | undefined {
  if (token === undefined) return undefined
  const value = parseJsonObject(token)
  if (value === undefined || typeof value['id'] !== 'string') return { id: token }
  const { id, model, costUsd } = value
  return {
    id,
    ...(typeof model === 'string' && { model }),
    ...(typeof costUsd === 'number' && { costUsd }),
  }
}

/** What was spent between two sums; unknown if one of them is. A sum that is smaller has begun again. */
export function costSince(before: number | undefined, after: number | undefined): number | undefined {
  if (before === undefined || after === undefined) return undefined
  return after >= before ? after - before : after
}
