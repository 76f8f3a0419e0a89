/** Tokens in a map: a ready-made secret for each role, and those that a test creates. */
import { MoleculeError } from '../../../src/errors.ts'
import { personIdentity } from '../../../src/workspaces/tokens/token-rows.ts'
import {
  type Identity,
  type NewToken,
  TOKEN_ROLES,
  type TokenRole,
  type Tokens,
} from '../../../src/workspaces/tokens.ts'

export interface FakeTokensOptions {
  /** The workspace of the tokens with the roles workspace, conversation and caller. */
  readonly workspaceId: string
  readonly secretOf: (role: TokenRole) => string
}

export function createFakeTokens({ workspaceId, secretOf }: FakeTokensOptions): Tokens {
  const known = new Map(TOKEN_ROLES.map((role) => [secretOf(role), readyMadeIdentity(role, workspaceId)]))
  const codes = new Set<string>()
  const watchers = new Map<string, Set<() => void>>()
  let made = 0
  const take = (id: string): Identity => {
    const [secret, identity] = [...known].find(([, { tokenId }]) => tokenId === id) ?? []
    if (secret === undefined || identity === undefined) throw new MoleculeError('not_found', `there is no token ${id}`)
    known.delete(secret)
    return identity
  }
  return {
    verify: async (secret) => known.get(secret),
    async create(input) {
      const id = `token-${++made}`
      known.set(`made-${id}`, identify(id, input))
      return { id, secret: `made-${id}` }
    },
    async rotate(id) {
      const secret = `rotated-${++made}`
      known.set(secret, take(id))
      return { id, secret }
    },
    async revoke(id) {
      take(id)
      for (const callback of watchers.get(id) ?? []) callback()
    },
    async revokeAll(id) {
      for (const { workspaceId: own, tokenId } of known.values()) if (own === id) take(tokenId)
    },
    async revokeConversations(id) {
      for (const { role, workspaceId: own, tokenId } of known.values()) {
        if (role === 'conversation' && own === id) take(tokenId)
      }
    },
    onRevoked({ tokenId: id }, callback) {
      const watching = watchers.get(id) ?? new Set()
      watchers.set(id, watching.add(callback))
      return () => watching.delete(callback)
    },
    whyRefused: async () => undefined,
    issueLoginCode() {
      const code = `code-${++made}`
      codes.add(code)
      return code
    },
    async exchangeLoginCode(code) {
      if (!codes.delete(code)) return undefined
      const secret = `session-${++made}`
      known.set(secret, readyMadeIdentity('admin', workspaceId))
      return { secret, maxAgeSeconds: 3600 }
    },
    async revokeBrowserLogin(secret) {
      known.delete(secret)
    },
  }
}

function readyMadeIdentity(role: TokenRole, workspaceId: string): Identity {
  if (role === 'caller') return identify(role, { name: role, role, workspaces: [workspaceId] })
  if (role === 'workspace') return identify(role, { name: role, role, workspaceId })
  if (role !== 'conversation') return identify(role, { name: role, role })
  return identify(role, { name: role, role, workspaceId, conversationId: 'conversation-1' })
}

function identify(tokenId: string, { name, role, workspaceId, conversationId, workspaces }: NewToken): Identity {
  const secretId = tokenId
  if (role === 'caller') {
    const sender = { kind: 'program', id: tokenId, name, door: 'http' } as const
    return { tokenId, secretId, name, role, principal: `token:${tokenId}`, sender, workspaces: workspaces ?? [] }
  }
  if (workspaceId === undefined) return personIdentity({ tokenId, secretId, name, role })
  const sender = { kind: 'agent', id: workspaceId, name, door: 'http' } as const
  const principal = conversationId === undefined ? `ws:${workspaceId}` : `ws:${workspaceId}/${conversationId}`
  const identity = { tokenId, secretId, name, role, principal, sender, workspaceId }
  return conversationId === undefined ? identity : { ...identity, conversationId }
}
