/** Every kind of caller of the door, for tests that try all of them. */
import type { OpenDoor } from '../../harness/open-door.ts'
import { secretOf, WORKSPACE_ID } from './fake-platform.ts'

/** `own` has the token of the workspace `WORKSPACE_ID`, `other` the token of a workspace that may not talk to it. */
export const CALLER_KINDS = [
  'none',
  'wrong',
  'viewer',
  'caller',
  'member',
  'other',
  'own',
  'conversation',
  'admin',
] as const

export type CallerKind = (typeof CALLER_KINDS)[number]

/** The secret of each kind; `none` has none. Creates the workspaces that `other` needs. */
export async function secretsOfCallers({
  fakePlatform,
}: OpenDoor): Promise<Readonly<Record<CallerKind, string | undefined>>> {
  const sibling = await fakePlatform.workspaces.create({ name: 'sibling' })
  const stranger = await fakePlatform.workspaces.create({ name: 'stranger', parentId: sibling.id })
  const other = await fakePlatform.tokens.create({ name: 'other', role: 'workspace', workspaceId: stranger.id })
  return {
    none: undefined,
    wrong: 'wrong-secret',
    viewer: secretOf('viewer'),
    caller: secretOf('caller'),
    member: secretOf('member'),
    other: other.secret,
    own: secretOf('workspace'),
    conversation: secretOf('conversation'),
    admin: secretOf('admin'),
  }
}

export const A2A_PATH = `/workspaces/${WORKSPACE_ID}/a2a`
