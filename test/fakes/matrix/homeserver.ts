/**
 * The client-server API of the fake homeserver. A refusal has the code of a real one. Every event of the bot is judged
 * (`rules.ts`); a transaction that comes again gets the id of its first event.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { judgeEvent } from './rules.ts'
import { answerMessages, answerRelations, answerSync } from './sync.ts'
import { type Content, MatrixError, type MatrixWorld, SERVER } from './world.ts'

/**
 * `lost_answer`: the call succeeds, and the connection ends without an answer. `no_answer`: it succeeds, and the connection
 * stays open without one. `lost_request`: nothing happens.
 */
export type MatrixFault =
  | 'lost_answer'
  | 'no_answer'
  | 'lost_request'
  | 'html_502'
  | { readonly status: number; readonly code: string; readonly retryAfterMs?: number }

export interface MatrixCallSeen {
  readonly method: string
  /** Below `/_matrix`, decoded. */
  readonly path: string
  readonly body: Content
}

export interface HomeserverOptions {
  readonly world: MatrixWorld
  readonly calls: MatrixCallSeen[]
  /** The fault of this call, taken away. */
  readonly takeFault: (call: string) => MatrixFault | undefined
  /** How long the bot must wait before it may send an event. */
  readonly limitMs: () => number
  readonly downloads: () => Promise<void>
  readonly waitForChange: (timeoutMs: number, response: ServerResponse) => Promise<void>
}

interface Call {
  readonly parts: readonly string[]
  readonly query: URLSearchParams
  readonly body: Content
  readonly bytes: Buffer
}

type Answer = Content | Uint8Array

export function createHomeserver(options: HomeserverOptions) {
  const { world, calls, takeFault } = options
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const url = new URL(request.url ?? '/', 'http://fake')
    // Also for `/.well-known/matrix/client`: the address that a person types is the homeserver's own.
    if (!url.pathname.startsWith('/_matrix/')) return void response.writeHead(404).end('<html>Not Found</html>')
    const path = url.pathname.replace(/^\/_matrix/, '')
    const bytes = await buffer(request)
    const isUpload = path === '/media/v3/upload'
    const parts = path.slice(1).split('/').map(decodeURIComponent)
    const body = isUpload ? {} : readJson(bytes, request)
    const name = `${request.method} ${parts.join('/')}`
    calls.push({ method: request.method ?? '', path: `/${parts.join('/')}`, body })
    const fault = takeFault(name)
    if (fault === 'lost_request') return void request.socket.destroy()
    if (fault === 'html_502') return void response.writeHead(502).end('<html>502 Bad Gateway</html>')
    if (typeof fault === 'object') throw faultError(fault)
    authorize(request, url, world)
    const call = { parts, query: url.searchParams, body, bytes }
    const answer =
      name === 'GET client/v3/sync'
        ? await sync(call, response, options)
        : await run(request.method ?? '', call, options)
    if (fault === 'lost_answer') return void request.socket.destroy()
    if (fault === 'no_answer') return
    if (answer instanceof Uint8Array) response.end(answer)
    else send(response, 200, answer)
  }
  return (request: IncomingMessage, response: ServerResponse) => {
    handle(request, response).catch((error) => {
      if (!(error instanceof MatrixError)) return void response.destroy()
      send(response, error.status, { errcode: error.code, error: error.message, ...error.more })
    })
  }
}

const faultError = ({ status, code, retryAfterMs }: Exclude<MatrixFault, string>) =>
  Object.assign(new MatrixError(status, code, 'as the test wants'), {
    more: retryAfterMs === undefined ? {} : { retry_after_ms: retryAfterMs },
  })

function readJson(bytes: Buffer, { headers }: IncomingMessage): Content {
  if (bytes.length === 0) return {}
  try {
    const body = JSON.parse(String(bytes))
    if (headers['content-type'] === 'application/json' && typeof body === 'object' && !Array.isArray(body)) return body
  } catch {}
  throw new MatrixError(400, 'M_NOT_JSON', 'Content not JSON.')
}

function authorize({ headers }: IncomingMessage, { pathname, searchParams }: URL, { token }: MatrixWorld): void {
  if (pathname === '/_matrix/client/versions' || pathname === '/_matrix/client/v3/login') return
  if (searchParams.has('access_token')) throw new MatrixError(400, 'M_UNKNOWN', 'a token in an address is in every log')
  if (headers.authorization === undefined) throw new MatrixError(401, 'M_MISSING_TOKEN', 'Missing access token')
  if (headers.authorization !== `Bearer ${token}`)
    throw new MatrixError(401, 'M_UNKNOWN_TOKEN', 'Invalid access token passed.')
}

async function sync({ query }: Call, response: ServerResponse, { world, waitForChange }: HomeserverOptions) {
  const timeoutMs = Number(query.get('timeout') ?? 0)
  const answer = answerSync(query, world)
  if (answer !== undefined) return answer
  await waitForChange(timeoutMs, response)
  return answerSync(query, world) ?? { next_batch: query.get('since'), rooms: {} }
}

async function run(method: string, call: Call, options: HomeserverOptions): Promise<Answer> {
  const { parts, body } = call
  const { world } = options
  const name = `${method} ${parts.slice(1, 4).join('/')}`
  if (parts[2] === 'rooms') return await runInRoom(method, call, options)
  switch (`${method} ${parts.join('/')}`) {
    case 'GET client/versions':
      return { versions: ['v1.11', 'v1.12'] }
    case 'POST client/v3/login':
      return logIn(body, world)
    case 'GET client/v3/account/whoami':
      return { user_id: world.bot, device_id: 'FAKEDEVICE' }
    case `GET client/v3/profile/${world.bot}/displayname`:
      return { displayname: world.botName }
    case 'GET client/v1/media/config':
      return { 'm.upload.size': 50 * 1024 * 1024 }
    case 'POST media/v3/upload':
      return upload(call, world)
    default:
  }
  if (name === 'GET v1/media/download') return await download(call, options)
  if (name.startsWith('POST v3/join')) return join(parts[3] ?? '', world)
  throw new MatrixError(404, 'M_UNRECOGNIZED', `Unrecognized request ${name}`)
}

function logIn({ type, identifier, password }: Content, world: MatrixWorld): Content {
  if (type !== 'm.login.password' || identifier?.['type'] !== 'm.id.user')
    throw new MatrixError(400, 'M_UNKNOWN', 'Unknown login type')
  const isBot = identifier['user'] === world.bot || identifier['user'] === 'molecule'
  if (!isBot || password !== world.password) throw new MatrixError(403, 'M_FORBIDDEN', 'Invalid username or password')
  return { access_token: world.token, device_id: 'FAKEDEVICE', user_id: world.bot }
}

function upload({ query, bytes }: Call, world: MatrixWorld): Content {
  if (!world.mayUpload) throw new MatrixError(403, 'M_FORBIDDEN', 'You may not upload files')
  if (bytes.length === 0) throw new MatrixError(400, 'M_UNKNOWN', 'an empty file')
  const id = `media${world.files.size}`
  world.files.set(id, { name: query.get('filename') ?? '', content: bytes })
  return { content_uri: `mxc://${SERVER}/${id}` }
}

async function download({ parts }: Call, { world, downloads }: HomeserverOptions): Promise<Uint8Array> {
  await downloads()
  const file = world.files.get(parts[5] ?? '')
  if (parts[4] !== SERVER || file === undefined) throw new MatrixError(404, 'M_NOT_FOUND', 'Media not found')
  return file.content
}

function join(roomId: string, world: MatrixWorld): Content {
  if (!world.rooms.has(roomId)) throw new MatrixError(404, 'M_NOT_FOUND', 'No known servers')
  world.setMember(roomId, { user: world.bot, membership: 'join' })
  return { room_id: roomId }
}

async function runInRoom(method: string, call: Call, options: HomeserverOptions): Promise<Answer> {
  const { world } = options
  const { parts, query, body } = call
  const [, , , roomId = '', verb = '', first = '', second = ''] = parts
  if (method === 'POST' && verb === 'join') {
    if (world.membership(roomId) !== 'invite') throw new MatrixError(403, 'M_FORBIDDEN', 'You are not invited')
    return join(roomId, world)
  }
  if (method === 'POST' && verb === 'leave') {
    world.setMember(roomId, { user: world.bot, membership: 'leave' })
    return {}
  }
  world.requireRoom(roomId)
  switch (`${method} ${verb}`) {
    case 'PUT send':
    case 'PUT redact':
      return sendEvent(call, options)
    case 'PUT typing':
      if (typeof body['typing'] !== 'boolean' || first !== world.bot) throw new MatrixError(400, 'M_BAD_JSON', 'typing')
      world.typings.push(roomId)
      return {}
    case 'POST receipt':
      if (first !== 'm.read' || !world.find(roomId, second)) throw new MatrixError(400, 'M_INVALID_PARAM', 'receipt')
      world.receipts.push(second)
      return {}
    case 'GET event': {
      const event = world.find(roomId, first)
      if (event === undefined) throw new MatrixError(404, 'M_NOT_FOUND', 'Event not found.')
      return event
    }
    case 'GET state': {
      const event = world.rooms.get(roomId)?.state.get(`${first} ${second}`)
      if (event === undefined) throw new MatrixError(404, 'M_NOT_FOUND', 'Event not found.')
      return event.content
    }
    case 'GET messages':
      return answerMessages(roomId, query, world)
    case 'GET relations':
      return answerRelations(roomId, { eventId: first, type: second, query }, world)
    default:
      throw new MatrixError(404, 'M_UNRECOGNIZED', `Unrecognized request ${verb}`)
  }
}

/** A transaction that is known is answered before anything is judged or counted. */
function sendEvent({ parts, body }: Call, { world, limitMs }: HomeserverOptions): Content {
  const [, , , roomId = '', verb = '', second = '', transaction = ''] = parts
  const key = `${roomId} ${verb} ${transaction}`
  const known = world.transactions.get(key)
  if (known !== undefined) {
    if (known.body !== JSON.stringify(body)) world.misused.push(key)
    return { event_id: known.id }
  }
  const waitMs = limitMs()
  if (waitMs > 0) throw faultError({ status: 429, code: 'M_LIMIT_EXCEEDED', retryAfterMs: waitMs })
  if (verb === 'send') judgeEvent({ roomId, type: second, content: body }, world)
  const event =
    verb === 'send'
      ? world.add(roomId, { type: second, sender: world.bot, content: body })
      : world.redact(roomId, second, world.bot)
  world.transactions.set(key, { id: event.event_id, body: JSON.stringify(body) })
  return { event_id: event.event_id }
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}
