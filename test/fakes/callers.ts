/** Everybody who may knock at the door, for tests that try all of them. */

import { secretOf, WORKSPACE_ID } from './desk.ts'
import type { OpenDoor } from './open-door.ts'

/** other: the token of a workspace that is no kin; own: that of the workspace that is always there. */
export const CALLERS = ['none', 'wrong', 'viewer', 'caller', 'member', 'other', 'own', 'conversation', 'admin'] as const

export type Caller = (typeof CALLERS)[number]

/** One secret for each; `none` has none. The strangers' workspaces are made for it. */
export async function secretsOfCallers({ desk }: OpenDoor): Promise<Readonly<Record<Caller, string | undefined>>> {
  const sibling = await desk.workspaces.create({ name: 'sibling' })
  const stranger = await desk.workspaces.create({ name: 'stranger', parentId: sibling.id })
  const other = await desk.tokens.create({ name: 'other', role: 'workspace', workspaceId: stranger.id })
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
