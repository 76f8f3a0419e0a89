/**
 * Identifies the caller. A bearer token or the log-in cookie of a browser becomes an Identity through `Tokens`; nothing else
 * in a request identifies the caller. Closed by default, on loopback too. What a role may do is in `api/who-may.ts`,
 * which workspaces a token may act on is in `reach.ts`.
 */
import { formatDuration } from '../../../duration.ts'
import { MoleculeError } from '../../../errors.ts'
import type { TaskScope } from '../../../views/trees.ts'
import type { Identity, RefusedSecret, Tokens } from '../../../workspaces/tokens.ts'
import { type AddressedRequest, type Addresses, PUBLIC_URL_HINT } from './addresses.ts'
import { createOpenBodies, type OpenBodies, type OpenBody } from './open-bodies.ts'
import type { RateLimit } from './rate-limit.ts'
import type { WrongTokenLimit } from './wrong-token-limit.ts'

export interface AuthRequest extends AddressedRequest {
  readonly method?: string | undefined
}

export interface HttpAuth {
  /** Contains the port: a browser shares cookies among the ports of a host, so two platforms need two names. */
  readonly cookieName: string
  /** Also counts the request against the rate limit of its token, unless `counted` is false. */
  identify(request: AuthRequest, options?: { readonly counted: boolean }): Promise<Identity>
  /**
   * Counts a body of this caller while it arrives: against the limits of unfinished bodies and, unless `counted` is
   * false, against the rate limit of its token. A caller without a token is its address.
   */
  openBody(
    identity: Identity | undefined,
    request: AuthRequest,
    options?: { readonly counted: boolean },
  ): () => OpenBody
  /** Counts the bytes of a whole request against the rate limit of its token, before they are parsed. */
  countBytes(identity: Identity, bytes: number): void
  /** The secret in the log-in cookie, unverified. */
  loginSecret(request: AuthRequest): string | undefined
  /**
   * Prevents requests by another page with the user's cookie. A browser adds the cookie to any page's requests, also to
   * those of a local program on another port, which SameSite counts as the same site. The Origin tells them apart.
   */
  requireSameOrigin(request: AuthRequest): void
  /**
   * Prevents that a foreign page opens sockets, with the user's cookie or with guessed tokens: browsers let any page open
   * a socket to anywhere. Every browser sends the Origin of the page with an upgrade; other clients send none.
   */
  requireOwnPage(request: AuthRequest): void
}

export interface HttpAuthOptions {
  readonly tokens: Tokens
  readonly port: number
  readonly addresses: Addresses
  readonly rateLimit: RateLimit
  readonly byteLimit: RateLimit
  readonly openBodies?: OpenBodies
  readonly wrongTokenLimit: WrongTokenLimit
}

export function createHttpAuth(options: HttpAuthOptions): HttpAuth {
  const { tokens, port, addresses, rateLimit, byteLimit, wrongTokenLimit, openBodies = createOpenBodies() } = options
  const cookieName = `molecule_session_${port}`
  const loginSecret = (request: AuthRequest) => readCookie(request.headers.cookie, cookieName)
  const countBytes: HttpAuth['countBytes'] = ({ role, tokenId }, bytes) => {
    if (role !== 'admin') byteLimit.count(tokenId, bytes)
  }
  const { callerAddress, hasOwnOrigin } = addresses
  const requireSameOrigin: HttpAuth['requireSameOrigin'] = (request) => {
    if (request.method !== 'GET' && request.method !== 'HEAD' && !hasOwnOrigin(request))
      throw foreignPage('send changes', request)
  }
  return {
    cookieName,
    loginSecret,
    countBytes,
    requireSameOrigin,
    requireOwnPage(request) {
      if (request.headers.origin !== undefined && !hasOwnOrigin(request)) throw foreignPage('open a socket', request)
    },
    openBody:
      (identity, request, { counted } = { counted: true }) =>
      () => {
        const body = openBodies.open(identity?.tokenId ?? `address ${callerAddress(request)}`)
        if (identity === undefined || !counted) return body
        const add = (bytes: number) => {
          body.add(bytes)
          countBytes(identity, bytes)
        }
        return { add, close: body.close }
      },
    async identify(request, { counted } = { counted: true }) {
      const secret = secretOf(request, { loginSecret, requireSameOrigin })
      const identity = await wrongTokenLimit.verify(secret, callerAddress(request), tokens.verify)
      // Looked up only after the limit of wrong tokens: it costs a query.
      if (identity === undefined) throw unauthenticated(refusedText(await tokens.whyRefused(secret)))
      requireSession(request, identity)
      if (counted && identity.role !== 'admin') rateLimit.count(identity.tokenId)
      return identity
    },
  }
}

/** The secret of a request: the bearer token, else the cookie, which is accepted only from the platform's own page. */
function secretOf(
  request: AuthRequest,
  { loginSecret, requireSameOrigin }: Pick<HttpAuth, 'loginSecret' | 'requireSameOrigin'>,
): string {
  const { authorization } = request.headers
  if (authorization !== undefined) return bearer(authorization)
  const secret = loginSecret(request)
  if (secret === undefined) throw unauthenticated('this request needs a token')
  requireSameOrigin(request)
  return secret
}

function foreignPage(deed: string, { headers }: AuthRequest): MoleculeError {
  const message = `a browser may ${deed} only from a page of this platform`
  // A page behind a proxy has the name of the proxy, which the platform knows only from its owner.
  return new MoleculeError('forbidden', message, { details: { origin: headers.origin ?? null, hint: PAGE_HINT } })
}

const PAGE_HINT = `the page must be at a public URL of the platform; ${PUBLIC_URL_HINT}`

/**
 * A task is visible to its principal, to its workspace and to people; for other callers it does not exist. `principal`
 * is absent when the caller sees all tasks. A conversation's token does not see all tasks of its workspace: it must not
 * read the messages of other callers.
 */
export function taskScope({ role, principal, workspaceId: own }: Identity, workspaceId: string): TaskScope {
  // The output of a failed program is for owners; other callers receive one sentence without internals.
  if (role === 'admin' || role === 'member') return { detail: true }
  if (role === 'viewer') return {}
  return role === 'workspace' && own === workspaceId ? {} : { principal }
}

/** The ways in which this caller may see a task: as its sender, and for a workspace also as its receiver. */
export function taskViewsOf(identity: Identity): readonly (TaskScope & { readonly workspaceId?: string })[] {
  const { workspaceId: own } = identity
  const sent = taskScope(identity, '')
  if (own === undefined) return [sent]
  const received = taskScope(identity, own)
  return received.principal === undefined ? [sent, { ...received, workspaceId: own }] : [sent]
}

/**
 * The page names the session in which a person wrote a message. Prevents that the message is sent by another person who
 * has logged in since, in another tab: the cookie is the browser's, and not the page's.
 */
function requireSession({ headers }: AuthRequest, { tokenId }: Identity): void {
  const written = headers['molecule-session']
  if (written === undefined || written === tokenId) return
  throw unauthenticated('this browser is logged in with another session now')
}

function bearer(authorization: string): string {
  const secret = /^bearer +([\x21-\x7e]+) *$/i.exec(authorization)?.[1]
  if (secret === undefined) throw unauthenticated('the Authorization header must be "Bearer <token>"')
  return secret
}

function refusedText(refused: RefusedSecret | undefined): string {
  if (refused === undefined) return 'this token is not known here'
  const since = `${formatDuration(Math.floor(refused.sinceMs / 1000) * 1000)} ago`
  if (refused.reason === 'expired') return `this token expired ${since}; an admin can make a new one`
  return `this secret was replaced by a rotation and ended ${since}; use the new secret of the token`
}

function unauthenticated(message: string): MoleculeError {
  return new MoleculeError('unauthenticated', message)
}

function readCookie(header: string | undefined, name: string): string | undefined {
  if (header === undefined) return undefined
  for (const pair of header.split(';')) {
    const at = pair.indexOf('=')
    if (at > 0 && pair.slice(0, at).trim() === name) return pair.slice(at + 1).trim() || undefined
  }
  return undefined
}
