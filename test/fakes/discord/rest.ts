/**
 * The REST API (v10) of the fake Discord: messages with nonce, attachments, reactions, history, threads, commands,
 * interactions. Rate limits have buckets and headers; a fault can lose an answer after the message was stored.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { type CallCounts, type CallWindow, createCallCounts } from '../windows.ts'
import { type DiscordMessage, type DiscordWorld, discordUser } from './world.ts'

const CONTENT_CHARS_MAX = 2000
const NONCE_CHARS_MAX = 25
const HISTORY_MAX = 100
/** The service forgets a nonce after some minutes. */
const NONCE_MS = 3 * 60_000
/** An interaction must be answered within this time. */
const INTERACTION_MS = 3000

export interface DiscordRequest {
  readonly method: string
  /** Without `/api/v10` and without the query. */
  readonly path: string
  readonly query: URLSearchParams
  // biome-ignore lint/suspicious/noExplicitAny: bodies of many routes; each reads what it needs
  readonly body: any
  readonly files: readonly { readonly name: string; readonly content: Uint8Array; readonly mediaType?: string }[]
}

/**
 * `lost_answer`: the call succeeds, and the connection ends without an answer. `no_answer`: it succeeds, and the connection
 * stays open without one. `lost_request`: nothing happens.
 */
export type DiscordFault =
  | 'lost_answer'
  | 'no_answer'
  | 'lost_request'
  | { readonly status: number }
  | { readonly retryAfterMs: number; readonly isGlobal?: boolean }

export interface Interaction {
  readonly createdMs: number
  isAcknowledged: boolean
  readonly answered: (text: string) => void
}

export interface DiscordRestContext {
  readonly world: DiscordWorld
  dispatch(type: string, data: object): void
  readonly interactions: Map<string, Interaction>
  readonly faults: { readonly path: RegExp; readonly method: string; readonly fault: DiscordFault }[]
  readonly requests: DiscordRequest[]
  /** Calls that a channel accepts in a time window, by the kind of the call; more get a 429 with the headers of the bucket. */
  buckets: Partial<Record<DiscordBucket, CallWindow>>
  /** Downloads wait for it. */
  downloads: Promise<void>
  /** How often the bot was told to wait. */
  refusals: number
}

/** `all`: every call of the bot. */
export type DiscordBucket = 'messages' | 'edits' | 'reactions' | 'typing' | 'all'

/** The limits of the service, where a second of it takes so long. */
export const discordBuckets = (secondMs: number): Record<DiscordBucket, CallWindow> => ({
  messages: { limit: 5, windowMs: 5 * secondMs },
  edits: { limit: 5, windowMs: 5 * secondMs },
  reactions: { limit: 1, windowMs: 0.25 * secondMs },
  typing: { limit: 5, windowMs: 5 * secondMs },
  all: { limit: 50, windowMs: secondMs },
})

interface Answer {
  readonly status: number
  readonly body?: unknown
}

type Handler = (request: DiscordRequest, ids: readonly string[], context: DiscordRestContext) => Answer

const ROUTES: readonly (readonly [method: string, path: RegExp, handler: Handler])[] = [
  ['GET', /^\/gateway\/bot$/, getGateway],
  ['GET', /^\/users\/@me$/, (_, __, { world }) => ok(world.bot)],
  ['GET', /^\/applications\/@me$/, getApplication],
  ['PUT', /^\/applications\/(\d+)\/commands$/, putCommands],
  ['GET', /^\/channels\/(\d+)$/, ({ path: _ }, [id = ''], { world }) => found(world.channels.get(id), UNKNOWN_CHANNEL)],
  ['POST', /^\/channels\/(\d+)\/messages$/, postMessage],
  ['GET', /^\/channels\/(\d+)\/messages$/, getMessages],
  ['PATCH', /^\/channels\/(\d+)\/messages\/(\d+)$/, patchMessage],
  ['PUT', /^\/channels\/(\d+)\/messages\/(\d+)\/reactions\/([^/]+)\/@me$/, putReaction],
  ['DELETE', /^\/channels\/(\d+)\/messages\/(\d+)\/reactions\/([^/]+)\/@me$/, deleteReaction],
  ['POST', /^\/channels\/(\d+)\/typing$/, postTyping],
  ['POST', /^\/channels\/(\d+)\/threads$/, postThread],
  ['POST', /^\/channels\/(\d+)\/messages\/(\d+)\/threads$/, postThread],
  ['GET', /^\/users\/@me\/guilds$/, (_, __, { world }) => ok([{ id: world.guildId, name: 'server' }])],
  ['GET', /^\/guilds\/(\d+)\/channels$/, (_, __, { world }) => ok(world.guildChannels(0))],
  [
    'GET',
    /^\/guilds\/(\d+)\/threads\/active$/,
    (_, __, { world }) => ok({ threads: world.guildChannels(11), members: [] }),
  ],
  ['POST', /^\/users\/@me\/channels$/, (_, __, { world }) => ok(world.addChannel('direct'))],
  ['POST', /^\/interactions\/(\d+)\/([^/]+)\/callback$/, postCallback],
  ['PATCH', /^\/webhooks\/(\d+)\/([^/]+)\/messages\/@original$/, answerInteraction],
  ['POST', /^\/webhooks\/(\d+)\/([^/]+)$/, answerInteraction],
]

const ok = (body?: unknown): Answer => ({ status: body === undefined ? 204 : 200, body })
const refusal = (status: number, code: number, message: string): Answer => ({ status, body: { message, code } })
const UNKNOWN_CHANNEL = refusal(404, 10003, 'Unknown Channel')
const UNKNOWN_MESSAGE = refusal(404, 10008, 'Unknown Message')
const found = (body: unknown, missing: Answer): Answer => (body === undefined ? missing : ok(body))

export function createDiscordRest(context: DiscordRestContext) {
  const counts = createCallCounts()
  return async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const request = await readRequest(incoming)
    const url = new URL(incoming.url ?? '/', 'http://fake')
    if (url.pathname.startsWith('/attachments/')) {
      await context.downloads
      return sendFile(url.pathname, context.world, response)
    }
    context.requests.push(request)
    // The callbacks and webhooks of an interaction carry their own token.
    const needsToken = !/^\/(interactions|webhooks)\//.test(request.path)
    if (needsToken && incoming.headers.authorization !== `Bot ${context.world.token}`) {
      return sendAnswer(response, refusal(401, 0, '401: Unauthorized'))
    }
    const fault = takeFault(context, request)
    if (fault === 'lost_request') return void incoming.socket.destroy()
    if (typeof fault === 'object' && 'status' in fault) return sendAnswer(response, refusal(fault.status, 0, 'fault'))
    if (typeof fault === 'object') return sendRateLimit(response, fault)
    if (isOverLimit(request, context, { counts, response })) return
    const answer = route(request, context)
    if (fault === 'lost_answer') return void incoming.socket.destroy()
    if (fault === 'no_answer') return
    sendAnswer(response, answer)
  }
}

function route(request: DiscordRequest, context: DiscordRestContext): Answer {
  for (const [method, path, handler] of ROUTES) {
    const match = method === request.method ? path.exec(request.path) : null
    if (match) return handler(request, match.slice(1).map(decodeURIComponent), context)
  }
  return refusal(404, 0, `404: Not Found (${request.method} ${request.path})`)
}

async function readRequest(incoming: IncomingMessage): Promise<DiscordRequest> {
  const url = new URL(incoming.url ?? '/', 'http://fake')
  const bytes = await buffer(incoming)
  const type = incoming.headers['content-type'] ?? ''
  const base = {
    method: incoming.method ?? 'GET',
    path: url.pathname.replace(/^\/api\/v10/, ''),
    query: url.searchParams,
  }
  if (!type.startsWith('multipart/')) {
    return { ...base, body: bytes.length > 0 ? JSON.parse(String(bytes)) : {}, files: [] }
  }
  const form = await new Response(new Uint8Array(bytes), { headers: { 'content-type': type } }).formData()
  const files = await Promise.all(
    [...form.values()].flatMap((value) =>
      typeof value === 'string'
        ? []
        : [
            value
              .arrayBuffer()
              .then((content) => ({ name: value.name, content: new Uint8Array(content), mediaType: value.type })),
          ],
    ),
  )
  return { ...base, body: JSON.parse(String(form.get('payload_json') ?? '{}')), files }
}

function takeFault({ faults }: DiscordRestContext, { method, path }: DiscordRequest): DiscordFault | undefined {
  const index = faults.findIndex((entry) => entry.method === method && entry.path.test(path))
  return index === -1 ? undefined : faults.splice(index, 1)[0]?.fault
}

const BUCKETS: readonly (readonly [DiscordBucket, method: RegExp, path: RegExp])[] = [
  ['messages', /POST/, /^(\/channels\/\d+)\/messages$/],
  ['edits', /PATCH/, /^(\/channels\/\d+)\/messages\/\d+$/],
  ['reactions', /PUT|DELETE/, /^(\/channels\/\d+)\/messages\/\d+\/reactions\//],
  ['typing', /POST/, /^(\/channels\/\d+)\/typing$/],
]

function isOverLimit(
  { method, path }: DiscordRequest,
  context: DiscordRestContext,
  { counts, response }: { counts: CallCounts; response: ServerResponse },
): boolean {
  const { all } = context.buckets
  // The callbacks and webhooks of an interaction do not count.
  const ofBot = all && !/^\/(interactions|webhooks)\//.test(path) ? counts.take('all', all) : undefined
  if (ofBot?.isOver) return refuse(context, response, { retryAfterMs: ofBot.resetMs, isGlobal: true })
  const bucket = BUCKETS.find(([, methods, paths]) => methods.test(method) && paths.test(path))
  const window = bucket && context.buckets[bucket[0]]
  if (bucket === undefined || window === undefined) return false
  const [kind, , ofPath] = bucket
  const { isOver, left, resetMs } = counts.take(`${kind} ${ofPath.exec(path)?.[1]}`, window)
  response.setHeader('X-RateLimit-Bucket', `bucket-${kind}`)
  response.setHeader('X-RateLimit-Limit', window.limit)
  response.setHeader('X-RateLimit-Remaining', left)
  response.setHeader('X-RateLimit-Reset-After', resetMs / 1000)
  return isOver && refuse(context, response, { retryAfterMs: resetMs })
}

function refuse(
  context: DiscordRestContext,
  response: ServerResponse,
  limit: { readonly retryAfterMs: number; readonly isGlobal?: boolean },
): true {
  context.refusals += 1
  sendRateLimit(response, limit)
  return true
}

function sendRateLimit(
  response: ServerResponse,
  { retryAfterMs, isGlobal = false }: { retryAfterMs: number; isGlobal?: boolean },
): void {
  response.setHeader('Retry-After', retryAfterMs / 1000)
  response.setHeader('X-RateLimit-Scope', isGlobal ? 'global' : 'user')
  if (isGlobal) response.setHeader('X-RateLimit-Global', 'true')
  const message = 'You are being rate limited.'
  sendAnswer(response, { status: 429, body: { message, retry_after: retryAfterMs / 1000, global: isGlobal } })
}

function sendAnswer(response: ServerResponse, { status, body }: Answer): void {
  if (body === undefined) response.writeHead(status).end()
  else response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

function sendFile(path: string, { files }: DiscordWorld, response: ServerResponse): void {
  const content = files.get(path.split('/')[2] ?? '')
  if (content) response.end(content)
  else response.writeHead(404).end('This content is no longer available.')
}

function getGateway(_: DiscordRequest, __: readonly string[], { world }: DiscordRestContext): Answer {
  const session_start_limit = { total: 1000, remaining: 1000, reset_after: 1000, max_concurrency: 1 }
  return ok({ url: `${world.baseUrl.replace('http', 'ws')}/gateway`, shards: 1, session_start_limit })
}

function getApplication(_: DiscordRequest, __: readonly string[], { world }: DiscordRestContext): Answer {
  return ok({ id: world.bot.id, name: world.bot.username, flags: world.hasContentIntent ? 1 << 19 : 0 })
}

function putCommands({ body }: DiscordRequest, _: readonly string[], { world }: DiscordRestContext): Answer {
  const names: string[] = body.map(({ name }: { name: string }) => name)
  if (names.some((name) => !/^[-_\p{L}\p{N}]{1,32}$/u.test(name) || name !== name.toLowerCase())) {
    return refusal(400, 50035, 'Invalid Form Body')
  }
  world.commands = body
  return ok(body)
}

function postMessage(
  { body, files }: DiscordRequest,
  [id = '']: readonly string[],
  context: DiscordRestContext,
): Answer {
  const { world } = context
  const channel = world.channels.get(id)
  if (channel === undefined) return UNKNOWN_CHANNEL
  const content = String(body.content ?? '').trim()
  if (content === '' && files.length === 0) return refusal(400, 50006, 'Cannot send an empty message')
  if (content.length > CONTENT_CHARS_MAX) return refusal(400, 50035, 'Invalid Form Body: BASE_TYPE_MAX_LENGTH')
  if (String(body.nonce ?? '').length > NONCE_CHARS_MAX) return refusal(400, 50035, 'Invalid Form Body: nonce')
  if (world.denied.has('attach') && files.length > 0) return refusal(403, 50013, 'Missing Permissions')
  if (world.denied.has('history') && body.message_reference !== undefined)
    return refusal(400, 160002, 'Cannot reply without permission to read message history')
  const isSame = ({ nonce, channel_id, timestamp }: DiscordMessage) =>
    nonce === body.nonce && channel_id === id && Date.parse(timestamp) > Date.now() - NONCE_MS
  const copy = body.enforce_nonce && body.nonce !== undefined ? world.messages.find(isSame) : undefined
  if (copy) return ok(copy)
  const message = world.addMessage({
    channelId: id,
    author: world.bot,
    content,
    files,
    nonce: body.nonce,
    components: body.components ?? [],
    replyTo: body.message_reference?.message_id,
    pings: body.allowed_mentions === undefined || (body.allowed_mentions.parse ?? []).length > 0,
  })
  context.dispatch('MESSAGE_CREATE', channel.guild_id ? { ...message, guild_id: channel.guild_id } : message)
  return ok(message)
}

/** Newest first. `after` gives the messages right after an id, not the newest ones. The nonce is not shown again. */
function getMessages({ query }: DiscordRequest, [id = '']: readonly string[], { world }: DiscordRestContext): Answer {
  if (!world.channels.has(id)) return UNKNOWN_CHANNEL
  if (world.denied.has('history')) return refusal(403, 50001, 'Missing Access')
  const limit = Math.min(Number(query.get('limit') ?? 50), HISTORY_MAX)
  const after = query.get('after')
  const before = query.get('before')
  const all = world.messages
    .filter(({ channel_id }) => channel_id === id)
    .filter((message) => after === null || BigInt(message.id) > BigInt(after))
    .filter((message) => before === null || BigInt(message.id) < BigInt(before))
    .sort((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1))
  const page = after === null ? all.slice(-limit) : all.slice(0, limit)
  return ok(page.reverse().map(({ nonce: _, ...message }) => message))
}

function patchMessage({ body }: DiscordRequest, ids: readonly string[], { world }: DiscordRestContext): Answer {
  const message = world.message(ids[0] ?? '', ids[1] ?? '')
  if (message === undefined || world.denied.has('edit')) return UNKNOWN_MESSAGE
  if (message.author.id !== world.bot.id) return refusal(403, 50005, 'Cannot edit a message authored by another user')
  const content = body.content === undefined ? message.content : String(body.content).trim()
  if (content.length > CONTENT_CHARS_MAX) return refusal(400, 50035, 'Invalid Form Body: BASE_TYPE_MAX_LENGTH')
  message.content = content
  message.components = body.components ?? message.components
  world.edits.set(message.id, (world.edits.get(message.id) ?? 0) + 1)
  message.edited_timestamp = new Date().toISOString()
  return ok(message)
}

function putReaction(_: DiscordRequest, ids: readonly string[], { world }: DiscordRestContext): Answer {
  const [channelId = '', messageId = '', emoji] = ids
  if (world.message(channelId, messageId) === undefined) return UNKNOWN_MESSAGE
  world.reactions.add(`${messageId} ${emoji}`)
  return ok()
}

function deleteReaction(_: DiscordRequest, ids: readonly string[], { world }: DiscordRestContext): Answer {
  const [, messageId, emoji] = ids
  return world.reactions.delete(`${messageId} ${emoji}`) ? ok() : refusal(404, 10014, 'Unknown Emoji')
}

function postTyping(_: DiscordRequest, [id = '']: readonly string[], { world }: DiscordRestContext): Answer {
  if (!world.channels.has(id)) return UNKNOWN_CHANNEL
  world.typings.push(id)
  return ok()
}

function postThread(_: DiscordRequest, [id = '']: readonly string[], context: DiscordRestContext): Answer {
  if (!context.world.channels.has(id)) return UNKNOWN_CHANNEL
  const thread = context.world.addChannel('thread', id)
  context.dispatch('THREAD_CREATE', { ...thread, newly_created: true, thread_metadata: {} })
  return ok(thread)
}

/** Once for each interaction, within three seconds. */
function postCallback({ body }: DiscordRequest, ids: readonly string[], { interactions }: DiscordRestContext): Answer {
  const interaction = interactions.get(ids[1] ?? '')
  if (interaction === undefined || Date.now() - interaction.createdMs > INTERACTION_MS) {
    return refusal(404, 10062, 'Unknown interaction')
  }
  if (interaction.isAcknowledged) return refusal(400, 40060, 'Interaction has already been acknowledged.')
  interaction.isAcknowledged = true
  if (body.type === 4) interaction.answered(body.data.content)
  return ok()
}

function answerInteraction(request: DiscordRequest, ids: readonly string[], context: DiscordRestContext): Answer {
  const interaction = context.interactions.get(ids[1] ?? '')
  if (!interaction?.isAcknowledged) return refusal(404, 10015, 'Unknown Webhook')
  if (String(request.body.content).length > CONTENT_CHARS_MAX) return refusal(400, 50035, 'Invalid Form Body')
  interaction.answered(request.body.content)
  return ok({ id: context.world.snowflake(), author: discordUser(context.world.bot.id, 'molecule', true) })
}
