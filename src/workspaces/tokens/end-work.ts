/**
 * Ends what a token began and what goes on without further calls: its webhooks get nothing more, its schedules pause.
 * Runs in the transaction that revokes the token. Expiry and rotation are noticed when the work is due
 * (`inbox/deliver/push-configs.ts`, `schedules.ts`).
 */
import { endPushesOfConversations, endPushesOfToken } from '../../inbox/push-ends.ts'
import type { Transaction } from '../../store/store.ts'
import { stopSchedules } from '../schedules.ts'

const REVOKED = 'the token was revoked'

export function* endWorkOf(tokenId: string): Transaction<void> {
  yield* endPushesOfToken(tokenId, REVOKED)
  yield* stopSchedules({ column: 'token_id', value: tokenId }, 'the token that made it was revoked')
}

/** Of conversation tokens, which have no row: `grantOf` names them by their principal. */
export function* endWorkOfConversations(workspaceId: string): Transaction<void> {
  yield* endPushesOfConversations(workspaceId, REVOKED)
}
