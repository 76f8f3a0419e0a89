/** HTTP of the fake Slack: tokens, scopes, limits and faults before each method; uploads, downloads and response addresses. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { buffer, text as readText } from 'node:stream/consumers'
import { type Args, METHODS, SlackRefusal } from './methods.ts'
import type { SlackSockets } from './socket-mode.ts'
import type { SlackWorld } from './world.ts'

export type SlackFault =
  | { readonly status: number }
  | { readonly retryAfterMs: number }
  | { readonly error: string }
  | 'lost_answer'
  | 'no_answer'

export interface SlackWebContext {
  readonly world: SlackWorld
  readonly sockets: SlackSockets
  /** The next call of one of these methods fails. */
  readonly faults: { readonly methods: readonly string[]; readonly fault: SlackFault }[]
  readonly calls: { readonly method: string; readonly args: Args }[]
  /** How long a second of the service takes; 0 = no limits. */
  secondMs: number
  refusals: number
  downloads: Promise<void>
  /** By the last part of a response address. */
  readonly responses: Map<string, (text: string) => void>
}

export function createSlackWeb(context: SlackWebContext) {
  const limits = createLimits(context)
  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const { pathname } = new URL(request.url ?? '/', 'http://slack.test')
    const [, first = '', ...rest] = pathname.split('/')
    if (first === 'api') return await answerCall(request, response, { context, method: rest.join('/'), limits })
    if (first === 'upload') return await takeUpload(request, response, { context, id: rest[1] ?? '' })
    if (first === 'files-pri') return await sendFile(request, response, { context, id: rest[0]?.split('-')[1] ?? '' })
    if (first === 'response') {
      const { text = '' } = JSON.parse(await readText(request)) as { text?: string }
      const answered = context.responses.get(rest[0] ?? '')
      response.writeHead(answered === undefined ? 404 : 200).end('ok')
      return answered?.(text)
    }
    response.writeHead(404).end()
  }
}

type Limits = (method: string, channel: string) => number | undefined

/** The time to wait, by method and minute, and by channel and second for new messages. */
function createLimits(context: SlackWebContext): Limits {
  const windows = new Map<string, { untilMs: number; count: number }>()
  const take = (key: string, max: number, windowMs: number): number | undefined => {
    const nowMs = Date.now()
    const known = windows.get(key)
    if (known === undefined || known.untilMs <= nowMs) {
      windows.set(key, { untilMs: nowMs + windowMs, count: 1 })
      return undefined
    }
    known.count += 1
    return known.count > max ? known.untilMs - nowMs : undefined
  }
  return (method, channel) => {
    const { secondMs } = context
    if (secondMs === 0) return undefined
    const isNew = method === 'chat.postMessage' || method === 'files.completeUploadExternal'
    const ofChannel = isNew ? take(`${secondMs} post ${channel}`, 1, secondMs) : undefined
    return ofChannel ?? take(`${secondMs} ${method}`, METHODS[method]?.perMinute ?? 1, 60 * secondMs)
  }
}

interface SlackCall {
  readonly context: SlackWebContext
  readonly method: string
  readonly limits: Limits
}

async function answerCall(request: IncomingMessage, response: ServerResponse, call: SlackCall): Promise<void> {
  const { method, context, limits } = call
  const { world, sockets } = context
  const args: Args = Object.fromEntries(new URLSearchParams(await readText(request)))
  context.calls.push({ method, args })
  const write = (status: number, body: object, headers: Record<string, string> = {}) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers })
    response.end(JSON.stringify(body))
  }
  const scopes = { 'x-oauth-scopes': [...world.scopes].join(',') }
  const found = Object.hasOwn(METHODS, method) ? METHODS[method] : undefined
  if (found === undefined || request.method !== 'POST') return write(200, { ok: false, error: 'unknown_method' })
  const refused = tokenProblem(request, found.token, world)
  if (refused !== undefined) return write(200, { ok: false, error: refused })
  const index = context.faults.findIndex(({ methods }) => methods.includes(method))
  const fault = index === -1 ? undefined : context.faults.splice(index, 1)[0]?.fault
  const waitMs = isFault(fault, 'retryAfterMs')
    ? fault.retryAfterMs
    : limits(method, args['channel'] ?? args['channel_id'] ?? '')
  if (waitMs !== undefined) {
    context.refusals += 1
    return write(429, { ok: false, error: 'ratelimited' }, { 'retry-after': String(waitMs / 1000) })
  }
  if (isFault(fault, 'status')) return write(fault.status, {})
  if (isFault(fault, 'error')) return write(200, { ok: false, error: fault.error })
  const scope = found.scope?.(args)
  if (scope !== undefined && !world.scopes.has(scope))
    return write(200, { ok: false, error: 'missing_scope', needed: scope }, scopes)
  try {
    const answer = found.run(args, { world, sockets })
    if (fault === 'lost_answer') return void request.socket.destroy()
    if (fault === 'no_answer') return
    write(200, { ok: true, ...answer }, found.token === 'bot' ? scopes : {})
  } catch (error) {
    if (!(error instanceof SlackRefusal)) throw error
    write(200, { ok: false, error: error.message, ...(error.needed && { needed: error.needed }) })
  }
}

function isFault<Key extends string>(fault: unknown, key: Key): fault is Record<Key, never> {
  return typeof fault === 'object' && fault !== null && key in fault
}

function tokenProblem(request: IncomingMessage, kind: 'bot' | 'app', world: SlackWorld): string | undefined {
  const token = request.headers.authorization?.replace(/^Bearer /, '')
  if (token === undefined) return 'not_authed'
  if (world.isTokenRevoked) return 'token_revoked'
  if (token === (kind === 'bot' ? world.botToken : world.appToken)) return undefined
  return token === world.botToken || token === world.appToken ? 'not_allowed_token_type' : 'invalid_auth'
}

interface FileCall {
  readonly context: SlackWebContext
  readonly id: string
}

async function takeUpload(
  request: IncomingMessage,
  response: ServerResponse,
  { context, id }: FileCall,
): Promise<void> {
  const content = await buffer(request)
  const file = context.world.files.get(id)
  const isRight = file !== undefined && file.content === undefined && content.length === file.length
  if (isRight) file.content = content
  response.writeHead(isRight ? 200 : 400).end(isRight ? `OK - ${content.length}` : 'bad upload')
}

/** Without a right token the browser is led to the log-in. */
async function sendFile(request: IncomingMessage, response: ServerResponse, { context, id }: FileCall): Promise<void> {
  const { world } = context
  await context.downloads
  const content = world.files.get(id)?.content
  if (tokenProblem(request, 'bot', world) !== undefined || !world.scopes.has('files:read') || content === undefined)
    return void response.writeHead(302, { location: 'https://slack.com/signin' }).end()
  response.writeHead(200).end(content)
}
