/**
 * The tokens that child processes of a turn get: each acts as one conversation of its workspace. They are an HMAC of a
 * secret of the platform, so a turn writes no row. A token names its workspace, its conversation, the generation of the
 * workspace, its expiry and the start of the platform that issued it. `token-rows.ts` compares these with the store.
 * Within a period a conversation always gets the same token, because a warm agent with another one would be replaced.
 * Invariant: only the holder of the secret can make a token that `read` accepts.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { ulid } from '../../ids.ts'
import { type Store, sql, type Transaction } from '../../store/store.ts'
import { SECRET_BYTES, SECRET_PREFIX } from '../tokens.ts'

/** A token expires at the end of the period after the one in which it was issued: it lives between one and two. */
export const CONVERSATION_TOKEN_PERIOD_MS = 12 * 3600_000

export interface ConversationSubject {
  readonly workspaceId: string
  readonly conversationId: string
}

export interface ConversationGrant {
  /** The `token_generation` of the workspace. */
  readonly generation: number
  /** The processes belong to a bridge, so they outlive this platform. */
  readonly isForBridge: boolean
}

export interface ConversationClaims extends ConversationSubject {
  /** The part of the token that is not secret. */
  readonly text: string
  readonly generation: number
  readonly expiresAtMs: number
  /** The start of the platform that issued it; undefined for a bridge. */
  readonly run: string | undefined
}

export interface ConversationTokens {
  issue(subject: ConversationSubject, grant: ConversationGrant): string
  /** The claims of a token with a valid HMAC; undefined for any other text. Does not check whether it still holds. */
  read(token: string): ConversationClaims | undefined
}

export interface ConversationTokensOptions {
  readonly secret: Buffer
  /** The current start of this platform, from `beginTokenRun`. */
  readonly run: string
  readonly nowMs: () => number
}

/** Starts like every token of the platform, so that the log hides it. */
const TOKEN_PREFIX = `${SECRET_PREFIX}conversation_`
const BRIDGE_RUN = 'bridge'
/** The claims, then the HMAC of that text. */
const TOKEN_PATTERN = /^(.{1,150}_)([\w-]{43})$/
const CLAIMS_PATTERN =
  /^mol_conversation_(ws_[0-9A-Z]{26})_([0-9A-Z]{26})_(\d{1,15})_(\d{1,10})_([0-9A-Z]{26}|bridge)_$/

/** Tokens in the cache: computing one is the most expensive step of a brief. At the limit the cache is cleared. */
const ISSUED_MAX = 1000

interface IssuedConversationToken extends ConversationGrant {
  readonly token: string
  readonly lastPeriod: number
}

export function createConversationTokens({ secret, run, nowMs }: ConversationTokensOptions): ConversationTokens {
  const issued = new Map<string, IssuedConversationToken>()
  const sign = (claims: string) => createHmac('sha256', secret).update(claims).digest('base64url')
  return {
    issue({ workspaceId, conversationId }, { generation, isForBridge }) {
      const lastPeriod = Math.floor(nowMs() / CONVERSATION_TOKEN_PERIOD_MS) + 1
      const known = issued.get(conversationId)
      const isCurrent = known?.generation === generation && known.lastPeriod === lastPeriod
      if (known !== undefined && isCurrent && known.isForBridge === isForBridge) return known.token
      if (issued.size >= ISSUED_MAX) issued.clear()
      const issuer = isForBridge ? BRIDGE_RUN : run
      const claims = `${TOKEN_PREFIX}${workspaceId}_${conversationId}_${generation}_${lastPeriod}_${issuer}_`
      const token = claims + sign(claims)
      issued.set(conversationId, { token, generation, lastPeriod, isForBridge })
      return token
    },
    read(token) {
      if (!token.startsWith(TOKEN_PREFIX)) return undefined
      const [, text = '', mac = ''] = TOKEN_PATTERN.exec(token) ?? []
      const claims = parseClaims(text)
      if (claims === undefined) return undefined
      return timingSafeEqual(Buffer.from(sign(text)), Buffer.from(mac)) ? claims : undefined
    },
  }
}

/** The claims in the first part of a token, without a check of its HMAC. */
export function parseClaims(text: string): ConversationClaims | undefined {
  const [, workspaceId, conversationId, generation, lastPeriod, issuer] = CLAIMS_PATTERN.exec(text) ?? []
  if (workspaceId === undefined || conversationId === undefined) return undefined
  return {
    text,
    workspaceId,
    conversationId,
    generation: Number(generation),
    expiresAtMs: (Number(lastPeriod) + 1) * CONVERSATION_TOKEN_PERIOD_MS,
    run: issuer === BRIDGE_RUN ? undefined : issuer,
  }
}

const SECRET_NAME = 'conversation-tokens'

/** The secret of the platform, the same for every node. The first node makes it. */
export async function ensureConversationSecret(store: Store): Promise<Buffer> {
  const fresh = randomBytes(SECRET_BYTES).toString('hex')
  return Buffer.from(await store.write(() => insertIfAbsent(fresh)), 'hex')
}

function* insertIfAbsent(fresh: string): Transaction<string> {
  yield* sql('insert into secrets (name, value) values ($1, $2) on conflict (name) do nothing', [SECRET_NAME, fresh])
  const [kept] = yield* sql<{ value: string }>('select value from secrets where name = $1', [SECRET_NAME])
  return kept?.value ?? fresh
}

/** Begins a new run of this host: tokens of its earlier runs are refused, because their processes are dead. */
export async function beginTokenRun(store: Store, host: string): Promise<string> {
  const run = ulid()
  await store.write(() =>
    sql('insert into token_runs (host, run) values ($1, $2) on conflict (host) do update set run = excluded.run', [
      host,
      run,
    ]),
  )
  return run
}
