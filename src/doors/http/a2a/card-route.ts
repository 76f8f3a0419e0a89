/**
 * `GET .../a2a/.well-known/agent-card.json`: the card, without a token and cacheable. The `A2A-Version` header chooses
 * one of its two forms, so `Vary` tells caches to keep them apart.
 */
import { hash } from 'node:crypto'
import { isWorkspaceId } from '../../../ids.ts'
import type { Workspaces } from '../../../workspaces/workspace.ts'
import type { Addresses } from '../server/addresses.ts'
import { type HttpExchange, REQUEST_ID_HEADER } from '../server/answer.ts'
import type { HttpAuth } from '../server/auth.ts'
import { findWorkspaceId, type Reach, requireWorkspace } from '../server/reach.ts'
import { agentCard } from './agent-card.ts'
import { CAPABILITIES } from './methods.ts'

export const CARD_PATH = '/.well-known/agent-card.json'
/** The second one is from before 0.3; some clients ask only there. */
export const CARD_PATHS: readonly string[] = [CARD_PATH, '/.well-known/agent.json']

const CACHE_SECONDS = 60

export interface CardRouteOptions {
  readonly workspaces: Workspaces
  readonly auth: HttpAuth
  readonly reach: Reach
  readonly addresses: Addresses
  readonly version: string
  readonly grpcPort?: () => number | undefined
}

export async function writeCard(
  { request, response, requestId }: HttpExchange,
  idOrName: string,
  { workspaces, auth, reach, addresses, version, grpcPort }: CardRouteOptions,
): Promise<void> {
  // A name can be guessed, an id cannot: without a token, only the id leads to a card.
  const workspaceId = isWorkspaceId(idOrName)
    ? idOrName
    : await findWorkspaceId(await auth.identify(request), idOrName, { workspaces, reach })
  const workspace = await requireWorkspace(workspaces, workspaceId)
  const options = { base: addresses.baseUrl(request), version, capabilities: CAPABILITIES, grpcPort: grpcPort?.() }
  const isPlain = /^1\./.test(String(request.headers['a2a-version'] ?? ''))
  const body = JSON.stringify(agentCard(workspace, options, isPlain ? '1.0' : '0.3'))
  const etag = `"${hash('sha256', body, 'base64url').slice(0, 27)}"`
  const headers = {
    ETag: etag,
    'Last-Modified': new Date(workspace.createdAtMs).toUTCString(),
    // By its name a card is only for callers who may see the workspace.
    'Cache-Control': isWorkspaceId(idOrName) ? `public, max-age=${CACHE_SECONDS}` : 'no-store',
    Vary: 'A2A-Version',
    'X-Content-Type-Options': 'nosniff',
    [REQUEST_ID_HEADER]: requestId,
  }
  // Only the ETag counts: a modification time misses a new name, a new address or a new version of the platform.
  if (matchesEtag(request.headers['if-none-match'], etag)) {
    response.writeHead(304, headers).end()
    return
  }
  const length = { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) }
  response.writeHead(200, { ...headers, ...length }).end(body)
}

/** Whether an `If-None-Match` header contains this ETag. */
function matchesEtag(header: string | undefined, etag: string): boolean {
  return header?.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag) ?? false
}
