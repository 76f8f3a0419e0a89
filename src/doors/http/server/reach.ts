/**
 * Which workspaces a token reaches, after its role was found good for the action: people all of them, a program those
 * on its list, a workspace itself and those it may talk to. A check that cannot be made is an error and never a yes.
 */
import { MoleculeError } from '../../../errors.ts'
import { mayTalk, type TalkDecision } from '../../../workspaces/may-talk.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import type { Workspace, WorkspaceLoad, Workspaces } from '../../../workspaces/workspace.ts'
import type { Action } from './auth.ts'

/** Contract: throws `forbidden` with the reason in words, or `not_found` where there is no such workspace. */
export type Reach = (identity: Identity, workspaceId: string, action: Action) => Promise<void>

export function createReach(workspaces: Workspaces): Reach {
  return async (identity, workspaceId, action) => {
    if (isPerson(identity)) return
    if (identity.role === 'caller') return requireAllowed(identity, checkList(identity, workspaceId))
    const own = identity.workspaceId ?? ''
    // What a workspace does to itself, it may; but it cannot talk to itself.
    if (own === workspaceId && action !== 'message.send') return
    const [from, to] = await Promise.all([workspaces.get(own), workspaces.get(workspaceId)])
    if (from === undefined) throw new MoleculeError('forbidden', `the workspace ${own} of this token is gone`)
    if (to === undefined) throw noWorkspace(workspaceId)
    requireAllowed(identity, mayTalk(from, to))
  }
}

/** The workspace; throws `not_found` where there is none. */
export async function requireWorkspace(workspaces: Workspaces, id: string): Promise<Workspace & WorkspaceLoad> {
  const workspace = await workspaces.get(id)
  if (workspace === undefined) throw noWorkspace(id)
  return workspace
}

function noWorkspace(id: string): MoleculeError {
  return new MoleculeError('not_found', `there is no workspace ${id}`)
}

/** Of all workspaces those that the token may know of: what is listed is what can be reached, and itself. */
export function reachable<W extends Workspace>(identity: Identity, all: readonly W[]): readonly W[] {
  if (isPerson(identity)) return all
  if (identity.role === 'caller') return all.filter(({ id }) => identity.workspaces?.includes(id))
  const own = all.find(({ id }) => id === identity.workspaceId)
  return own === undefined ? [] : all.filter((workspace) => workspace === own || mayTalk(own, workspace).ok)
}

/** For what is nobody else's: people may about any workspace, a workspace and its children only about their own. */
export function requireOwnWorkspace({ role, name, workspaceId: own }: Identity, workspaceId: string): void {
  const isAgent = role === 'workspace' || role === 'conversation'
  if (!isAgent || own === workspaceId) return
  throw new MoleculeError('forbidden', `the token "${name}" speaks for ${own}, not for ${workspaceId}`, {
    details: { role },
  })
}

/** Configuration is for people who may change or run things; a viewer, a program and a peer see what a card shows. */
export const seesConfig = ({ role }: Identity): boolean => role === 'admin' || role === 'member'

const isPerson = ({ role }: Identity): boolean => role === 'admin' || role === 'member' || role === 'viewer'

function checkList({ workspaces = [] }: Identity, workspaceId: string): TalkDecision {
  if (workspaces.includes(workspaceId)) return { ok: true }
  return { ok: false, reason: `it may use only ${workspaces.join(', ')}` }
}

function requireAllowed(identity: Identity, verdict: TalkDecision): void {
  if (verdict.ok) return
  const message = `the token "${identity.name}" does not reach this workspace: ${verdict.reason}`
  throw new MoleculeError('forbidden', message, { details: { role: identity.role } })
}
