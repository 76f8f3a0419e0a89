/**
 * Which workspaces a token reaches, once its role allows the action: people reach all, a program those on its list, a
 * workspace itself and those it may talk to. A check that cannot be made is an error, never a yes.
 */
import type { Action } from '../../../api/who-may.ts'
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import { isWorkspaceId } from '../../../ids.ts'
import { mayTalk, type TalkDecision } from '../../../workspaces/may-talk.ts'
import type { Identity } from '../../../workspaces/tokens.ts'
import {
  NAMESAKES_MAX,
  type Workspace,
  type WorkspaceLoad,
  type WorkspacePage,
  type WorkspaceQuery,
  type Workspaces,
} from '../../../workspaces/workspace.ts'

/** Contract: throws `forbidden` with the reason, or `not_found` when the workspace does not exist. */
export type Reach = (identity: Identity, workspaceId: string, action: Action) => Promise<void>

export function createReach(workspaces: Workspaces): Reach {
  return async (identity, workspaceId, action) => {
    if (isPerson(identity)) return
    if (identity.role === 'caller') return requireAllowed(identity, checkList(identity, workspaceId))
    const own = identity.workspaceId ?? ''
    // A workspace may act on itself, but it cannot send messages to itself.
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

/**
 * The id of the workspace that a URL names by its id or by its name. Only workspaces that the token reaches count, so
 * that a name that it may not see looks like one that does not exist. An id costs no query.
 */
export async function findWorkspaceId(
  identity: Identity,
  idOrName: string,
  { workspaces, reach }: { readonly workspaces: Workspaces; readonly reach: Reach },
): Promise<string> {
  if (isWorkspaceId(idOrName)) return idOrName
  const named: string[] = []
  for (const id of await workspaces.idsNamed(idOrName)) if (await isReachable(identity, id, reach)) named.push(id)
  const [found] = named
  if (found === undefined) throw noWorkspace(idOrName)
  if (named.length === 1) return found
  const count = named.length < NAMESAKES_MAX ? named.length : `at least ${named.length}`
  const message = `${count} workspaces are called ${JSON.stringify(idOrName)}; use an id: ${named.join(', ')}`
  throw new MoleculeError('invalid_request', message, { details: { candidates: named } })
}

async function isReachable(identity: Identity, workspaceId: string, reach: Reach): Promise<boolean> {
  try {
    await reach(identity, workspaceId, 'workspace.read')
    return true
  } catch (thrown) {
    if (toMoleculeError(thrown).code === 'forbidden') return false
    throw thrown
  }
}

function noWorkspace(id: string): MoleculeError {
  return new MoleculeError('not_found', `there is no workspace ${id}`, { details: { workspace: id } })
}

/** A page of the workspaces that the token may see: those it reaches, and its own. */
export async function listReachable(
  identity: Identity,
  query: WorkspaceQuery,
  workspaces: Workspaces,
): Promise<WorkspacePage> {
  if (isPerson(identity)) return workspaces.list(query)
  const { after = '', limit } = query
  const all = reachable(identity, await workspaces.all()).filter(({ id }) => id > after)
  const page = all.slice(0, limit)
  const next = all.length > limit ? page.at(-1)?.id : undefined
  return { workspaces: page, next }
}

/** Those of the workspaces that the token may see. */
export function reachable<W extends Workspace>(identity: Identity, all: readonly W[]): readonly W[] {
  if (isPerson(identity)) return all
  if (identity.role === 'caller') return all.filter(({ id }) => identity.workspaces?.includes(id))
  const own = all.find(({ id }) => id === identity.workspaceId)
  return own === undefined ? [] : all.filter((workspace) => workspace === own || mayTalk(own, workspace).ok)
}

/** For data that only a workspace itself may see or change: people may for any, an agent's token only for its own. */
export function requireOwnWorkspace({ role, name, workspaceId: own }: Identity, workspaceId: string): void {
  const isAgent = role === 'workspace' || role === 'conversation'
  if (!isAgent || own === workspaceId) return
  throw new MoleculeError('forbidden', `the token "${name}" speaks for ${own}, not for ${workspaceId}`, {
    details: { role },
  })
}

const isPerson = ({ role }: Identity): boolean => role === 'admin' || role === 'member' || role === 'viewer'

function checkList({ workspaces = [] }: Identity, workspaceId: string): TalkDecision {
  if (workspaces.includes(workspaceId)) return { ok: true }
  return { ok: false, reason: `it may use only ${workspaces.join(', ')}` }
}

function requireAllowed(identity: Identity, decision: TalkDecision): void {
  if (decision.ok) return
  const message = `the token "${identity.name}" does not reach this workspace: ${decision.reason}`
  throw new MoleculeError('forbidden', message, { details: { role: identity.role } })
}
