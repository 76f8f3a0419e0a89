/**
 * Decides which workspaces may talk: a workspace with its parent, its children and its siblings. Workspaces without a
 * parent are siblings. All ways of talking (A2A, delegation, peers, memory) use this one function, so that no door is
 * more lenient than another. The rule is symmetric.
 */
import { PERSON_ROLES } from './tokens.ts'

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

/**
 * Whether a caller may read the status line of a workspace, which tells what it works on for others. People may, and the
 * workspace itself; a program or a peer may not. Every door uses this rule.
 */
export const seesStatusText = (
  { role, workspaceId }: { readonly role: string; readonly workspaceId?: string | undefined },
  ofWorkspaceId: string,
): boolean => PEOPLE.has(role) || workspaceId === ofWorkspaceId

/** Whether the caller sees settings and the details of failures: admins and members do. Others see what a card shows. */
export const seesConfig = ({ role }: { readonly role: string }): boolean => role === 'admin' || role === 'member'

const PEOPLE: ReadonlySet<string> = new Set(PERSON_ROLES)

const denied = (reason: string): TalkDecision => ({ ok: false, reason })
