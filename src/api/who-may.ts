/**
 * Who may do what: the one table of roles by action, for every door. Routes, A2A methods, MCP tools and chat commands each
 * name an action of it, so none of them compiles without a row here. `docs/security.md` prints the table, and
 * `test/hostile/who-may.test.ts` makes one real call for each cell. A role only says what; which workspaces and tasks a
 * token reaches is decided after it (`doors/http/server/reach.ts`).
 */
import { MoleculeError } from '../errors.ts'
import { type Identity, TOKEN_ROLES, type TokenRole } from '../workspaces/tokens.ts'

/** People in a chat. `owner`: an admin made them one. `user`: paired, or on the list of allowed people. */
export const CHAT_ROLES = ['owner', 'user', 'stranger'] as const

export type ChatRole = (typeof CHAT_ROLES)[number]

interface ActionRoles {
  /** For the documentation: what the action is. */
  readonly does: string
  readonly tokens: readonly TokenRole[]
  /** Absent: a chat has no such action. */
  readonly chat?: readonly ChatRole[]
}

const PEOPLE = ['admin', 'member', 'viewer'] as const
const AGENTS = ['workspace', 'conversation'] as const

export const WHO_MAY = {
  'platform.read': {
    does: 'see the version, the API document and itself; in a chat the help',
    tokens: TOKEN_ROLES,
    chat: ['owner', 'user', 'stranger'],
  },
  'metrics.read': { does: 'read the metrics', tokens: PEOPLE },
  'token.handle': { does: 'make, list, rotate and revoke tokens, and make login links', tokens: ['admin'] },
  'agent.read': { does: 'see which agents are installed', tokens: ['admin', 'member'] },
  'folder.read': { does: 'list folders of the machine', tokens: ['admin'] },
  'workspace.create': { does: 'create a workspace', tokens: ['admin'] },
  'workspace.read': { does: 'see workspaces and their status', tokens: TOKEN_ROLES, chat: ['owner', 'user'] },
  'workspace.change': { does: 'change the settings of a workspace', tokens: ['admin'] },
  'workspace.model': { does: 'change the model of a workspace', tokens: ['admin'], chat: ['owner'] },
  'workspace.delete': { does: 'delete a workspace', tokens: ['admin'] },
  'workspace.restart': { does: 'restart a workspace', tokens: ['admin', 'member'] },
  'workspace.pause': { does: 'pause, stop and resume workspaces', tokens: ['admin', 'member'] },
  'registry.report': { does: 'register a workspace and report that it lives', tokens: ['admin', 'workspace'] },
  'registry.peers': { does: 'list the peers of a workspace', tokens: [...PEOPLE, ...AGENTS] },
  'inbox.work': { does: 'take and settle the turns of a workspace', tokens: ['admin', 'workspace'] },
  'status.report': { does: 'set the status text of a workspace', tokens: ['admin', 'member', ...AGENTS] },
  'activity.read': {
    does: 'read activity, conversations and usage; in a chat the usage of its agent',
    tokens: [...PEOPLE, 'workspace'],
    chat: ['owner', 'user'],
  },
  'activity.report': { does: 'add a note to the activity', tokens: ['admin', 'member', ...AGENTS] },
  'file.read': { does: "read a workspace's files", tokens: ['admin'] },
  'file.write': { does: "write and delete a workspace's files", tokens: ['admin'] },
  'file.send': {
    does: 'send a file of the working folder to the people of its turn',
    tokens: ['admin', 'member', ...AGENTS],
  },
  'mcp.use': { does: 'use the MCP server of a workspace', tokens: ['admin', 'member', ...AGENTS] },
  'memory.read': { does: 'read memories', tokens: ['admin', 'member', ...AGENTS] },
  'memory.write': { does: 'add and delete memories', tokens: ['admin', 'member', ...AGENTS] },
  'message.send': {
    does: 'send a message; in a chat also begin a new conversation, or go back to one',
    tokens: ['admin', 'member', 'caller', ...AGENTS],
    chat: ['owner', 'user'],
  },
  'task.read': { does: 'read tasks, artifacts and stories', tokens: TOKEN_ROLES },
  'task.cancel': {
    does: 'cancel a task; in a chat those of this chat',
    tokens: ['admin', 'member', 'caller', ...AGENTS],
    chat: ['owner', 'user'],
  },
  'task.push': { does: 'set and see the webhooks of a task', tokens: ['admin', 'member', 'caller', ...AGENTS] },
  'schedule.read': { does: 'see schedules; a viewer without webhook addresses', tokens: PEOPLE },
  'schedule.handle': { does: 'create, change, run and delete schedules', tokens: ['admin', 'member'] },
  'channel.read': { does: 'see the chat channels', tokens: PEOPLE },
  'channel.handle': { does: 'add and remove a chat channel', tokens: ['admin'] },
  'channel.bind': { does: 'choose the workspace that answers in a chat', tokens: ['admin'], chat: ['owner'] },
  'pairing.read': { does: 'see who wrote to a bot', tokens: ['admin', 'member'] },
  'pairing.handle': {
    does: 'let a person talk to a bot, or not; in a chat only a person who wrote to it',
    tokens: ['admin', 'member'],
    chat: ['owner'],
  },
  'pairing.owner': { does: 'make a person an owner of a bot, and change or deny an owner', tokens: ['admin'] },
  'pending.read': { does: 'see what waits for a person, and rules', tokens: ['admin', 'member'] },
  'pending.answer': {
    does: 'answer permissions, budgets and deliveries, and revoke rules; in a chat only what was posted there',
    tokens: ['admin', 'member'],
    chat: ['owner'],
  },
  'dead-letter.read': { does: 'see dead letters, the overview and all usage', tokens: PEOPLE },
  'dead-letter.handle': {
    does: 'replay and discard dead letters; in a chat run its last message again',
    tokens: ['admin', 'member'],
    chat: ['owner', 'user'],
  },
} as const satisfies Readonly<Record<string, ActionRoles>>

export type Action = keyof typeof WHO_MAY

export const ACTIONS = Object.keys(WHO_MAY) as readonly Action[]

export const rolesOf = (action: Action): readonly TokenRole[] => WHO_MAY[action].tokens

export const chatRolesOf = (action: Action): readonly ChatRole[] => (WHO_MAY[action] as ActionRoles).chat ?? []

/** What a token of this role may do. */
export const actionsOf = (role: TokenRole): readonly Action[] =>
  ACTIONS.filter((action) => rolesOf(action).includes(role))

/** Throws `forbidden` with the reason. */
export function requireAccess(identity: Identity, action: Action): void {
  const allowed = rolesOf(action)
  if (allowed.includes(identity.role)) return
  const message = `the token "${identity.name}" has the role ${identity.role}; ${action} needs ${allowed.join(' or ')}`
  throw new MoleculeError('forbidden', message, { details: { action, role: identity.role } })
}

/** Throws `forbidden` with a sentence for the chat. */
export function requireChatAccess(role: ChatRole, action: Action): void {
  if (chatRolesOf(action).includes(role)) return
  throw new MoleculeError('forbidden', 'only an owner of this bot may do that', { details: { action, role } })
}
