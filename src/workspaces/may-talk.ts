/**
 * Decides which workspaces may talk: a workspace with its parent, its children and its siblings. Workspaces without a
 * parent are siblings. All ways of talking (A2A, delegation, peers, memory) use this one function, so that no door is
 * more lenient than another. The rule is symmetric.
 */

export interface WorkspaceNode {
  readonly id: string
  readonly parentId?: string | undefined
}

/** The reason is a sentence for the refused caller. */
export type TalkDecision = { readonly ok: true } | { readonly ok: false; readonly reason: string }

const ALLOWED: TalkDecision = { ok: true }

export function mayTalk(from: WorkspaceNode, to: WorkspaceNode): TalkDecision {
  if (from.id === to.id)
    return denied(`the workspace ${from.id} cannot talk to itself: it would wait for its own answer`)
  if (from.parentId === to.id || to.parentId === from.id) return ALLOWED
  if (from.parentId === to.parentId) return ALLOWED
  const reason = `the workspace ${from.id} may talk to its parent, its children and its siblings, and ${to.id} is none of them`
  return denied(reason)
}

const denied = (reason: string): TalkDecision => ({ ok: false, reason })
