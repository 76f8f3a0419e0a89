/** The turn that delegates, for the token of a conversation. */
import type { Letter } from '../inbox/reception.ts'
import type { Identity } from '../workspaces/tokens.ts'

export function parentOf({ workspaceId, conversationId }: Identity): Pick<Letter, 'parent'> {
  if (workspaceId === undefined || conversationId === undefined) return {}
  return { parent: { workspaceId, conversationId } }
}
