/**
 * A real HTTP door on a loopback socket, in front of a fake platform in memory, and ways to send requests to it. The
 * door is closed when the test ends.
 */
import { type IncomingHttpHeaders, request } from 'node:http'
import type { TestContext } from 'node:test'
import { createParser } from 'eventsource-parser'
import { systemClock } from '../../src/clock.ts'
import { createHttpDoor, type HttpDoor, type HttpDoorOptions } from '../../src/doors/http/http.ts'
import {
  createFakePlatform,
  createFakePushContext,
  type FakePlatform,
  secretOf,
  WORKSPACE_ID,
} from '../fakes/platform/fake-platform.ts'
import { readJson } from './platform.ts'

export interface OpenDoor {
  readonly door: HttpDoor
  readonly fakePlatform: FakePlatform
  readonly url: string
  /** Sends any request with Node's own client, which leaves every header to the test. */
  sendRequest(path: string, options?: DoorRequest): Promise<DoorResponse>
  /** A JSON-RPC call to the workspace `WORKSPACE_ID`, by an admin. */
  rpc(method: string, params: unknown, options?: DoorRequest): Promise<DoorResponse>
  /** The same for a method that answers with a stream. */
  stream(method: string, params: unknown, options?: DoorRequest): Promise<OpenStream>
}

export interface DoorRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer | undefined
  /** The bearer token; `undefined` = none. */
  readonly token?: string | undefined
}

export interface DoorResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers of every shape
  readonly json: any
}

export async function openDoor(t: TestContext, options: Partial<HttpDoorOptions> = {}): Promise<OpenDoor> {
  const fakePlatform = createFakePlatform()
  const door = createHttpDoor({
    ...fakePlatform,
    clock: systemClock,
    host: '127.0.0.1',
    port: 0,
    version: '1.2.3',
    maxBlockMs: 60_000,
    push: createFakePushContext(),
    unready: async () => undefined,
    ...options,
  })
  await door.start()
  t.after(() => door.close())
  const { url } = door
  const sendRequest = (path: string, requestOptions: DoorRequest = {}) => sendTo(url + path, requestOptions)
  const a2aPath = `/workspaces/${WORKSPACE_ID}/a2a`
  const call = (method: string, params: unknown, requestOptions: DoorRequest = {}): DoorRequest => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method, params })
    return { method: 'POST', token: secretOf('admin'), body, ...requestOptions }
  }
  return {
    door,
    fakePlatform,
    url,
    sendRequest,
    rpc: (method, params, requestOptions) => sendRequest(a2aPath, call(method, params, requestOptions)),
    stream: (method, params, requestOptions) => openStream(url + a2aPath, call(method, params, requestOptions)),
  }
}

/** Sends any request to any URL. */
export function sendTo(url: string, { method = 'GET', headers = {}, body, token }: DoorRequest): Promise<DoorResponse> {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method, headers: { ...authorization, ...headers }, agent: false }, (incoming) => {
      const chunks: Buffer[] = []
      const finish = () => {
        const text = Buffer.concat(chunks).toString()
        const json = readJson(incoming.headers['content-type'], text)
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, text, json })
      }
      incoming.on('data', (chunk: Buffer) => {
        chunks.push(chunk)
        // A stream may stay open for long: its first event is read, then the client disconnects.
        if (!incoming.headers['content-type']?.startsWith('text/event-stream') || !chunk.includes('\n\n')) return
        finish()
        outgoing.destroy()
      })
      incoming.on('error', reject)
      incoming.on('end', finish)
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

export interface OpenStream {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** The events so far. */
  readonly events: readonly StreamEvent[]
  /** The number of comments so far; they are keep-alives. */
  comments(): number
  /** Resolves when the server has ended the stream, or broken the connection. */
  readonly ended: Promise<'ended' | 'cut'>
  /** Disconnects. */
  leave(): void
  /** Stops reading. */
  pause(): void
}

export interface StreamEvent {
  readonly id: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read events of every shape
  readonly data: any
}

/** A request whose answer is a stream of events. */
export function openStream(
  url: string,
  { method = 'POST', headers = {}, body, token }: DoorRequest,
): Promise<OpenStream> {
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` }
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { method, headers: { ...authorization, ...headers }, agent: false }, (incoming) => {
      const events: StreamEvent[] = []
      let comments = 0
      const parser = createParser({
        onEvent: ({ id = '', data }) => events.push({ id, data: JSON.parse(data) }),
        onComment: () => comments++,
      })
      incoming.setEncoding('utf8').on('data', (text: string) => parser.feed(text))
      const ended = new Promise<'ended' | 'cut'>((end) => {
        incoming.on('end', () => end('ended')).on('error', () => end('cut'))
      })
      const leave = () => outgoing.destroy()
      const status = incoming.statusCode ?? 0
      resolve({
        status,
        headers: incoming.headers,
        events,
        comments: () => comments,
        ended,
        leave,
        pause: () => incoming.pause(),
      })
    })
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

/** Params of a send in the 1.0 format. */
export function sendParams(
  text: string,
  more: { message?: object; configuration?: object; metadata?: object } = {},
): object {
  const { message, ...rest } = more
  return { message: { messageId: `m-${text}`, role: 'ROLE_USER', parts: [{ text }], ...message }, ...rest }
}

/** Params of a send in the 0.3 format. */
export function sendParamsV03(text: string, configuration?: object): object {
  const message = { kind: 'message', messageId: `m-${text}`, role: 'user', parts: [{ kind: 'text', text }] }
  return { message, ...(configuration ? { configuration } : {}) }
}
