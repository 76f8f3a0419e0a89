/**
 * Who may talk to whom: a workspace, its parent, its children and its siblings; workspaces without a parent are
 * siblings. One pure function for every way of talking (A2A, delegation, peers, memory), so that no door can be more
 * lenient than another. The rule is the same in both directions.
 */

/** What the rule looks at. */
export interface Kin {
  readonly id: string
  readonly parentId?: string | undefined
}

/** The reason is a sentence for whoever was refused. */
export type Verdict = { readonly ok: true } | { readonly ok: false; readonly reason: string }

const YES: Verdict = { ok: true }

export function mayTalk(from: Kin, to: Kin): Verdict {
  if (from.id === to.id) return no(`the workspace ${from.id} cannot talk to itself: it would wait for its own answer`)
  if (from.parentId === to.id || to.parentId === from.id) return YES
  if (from.parentId === to.parentId) return YES
  const reason = `the workspace ${from.id} may talk to its parent, its children and its siblings, and ${to.id} is none of them`
  return no(reason)
}

const no = (reason: string): Verdict => ({ ok: false, reason })
