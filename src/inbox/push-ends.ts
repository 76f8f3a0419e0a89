/** Ends webhooks for good, in the transaction of `src/workspaces` that ends the token or the schedule behind them. */
import { type Statement, sql, statement, type Transaction, together } from '../store/store.ts'

const END = `update push_configs set state = 'failed', reason = $2, worker = null where state = 'active' and`

/** The webhooks that a token has set. */
export function* endPushesOfToken(tokenId: string, reason: string): Transaction<void> {
  yield* sql(`${END} token_id = $1`, [tokenId, reason])
}

/** The webhooks that the tokens of a workspace's conversations have set: such a token is named by its principal. */
export function* endPushesOfConversations(workspaceId: string, reason: string): Transaction<void> {
  const prefix = `ws:${workspaceId}/`
  yield* sql(`${END} token_id is not null and substr(token_id, 1, ${prefix.length}) = $1`, [prefix, reason])
}

/** The webhook of this id of each task. */
export function* endPushesOfTasks(
  taskIds: readonly string[],
  { id, reason }: { readonly id: string; readonly reason: string },
): Transaction<void> {
  yield* together(taskIds.map((taskId) => statement(`${END} task_id = $1 and id = $3`, [taskId, reason, id])))
}

/** All webhooks of this store. */
export const endEveryPush = (reason: string): Statement =>
  statement("update push_configs set state = 'failed', reason = $1, worker = null where state = 'active'", [reason])
