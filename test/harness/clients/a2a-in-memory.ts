/** The A2A part of the HTTP door in front of a fake platform, without a socket. The test writes and reads by itself. */
import { once } from 'node:events'
import type { IncomingHttpHeaders } from 'node:http'
import type { PassThrough } from 'node:stream'
import { systemClock } from '../../../src/clock.ts'
import { a2aAddress, createA2a } from '../../../src/doors/http/a2a/a2a.ts'
import type { A2aOptions } from '../../../src/doors/http/a2a/call.ts'
import { createAddresses } from '../../../src/doors/http/server/addresses.ts'
import { createHttpAuth } from '../../../src/doors/http/server/auth.ts'
import { createRateLimit } from '../../../src/doors/http/server/rate-limit.ts'
import { createReach } from '../../../src/doors/http/server/reach.ts'
import { SSE_LIMITS } from '../../../src/doors/http/server/sse.ts'
import { createWaitingCalls } from '../../../src/doors/http/server/waiting-calls.ts'
import { createWrongTokenLimit } from '../../../src/doors/http/server/wrong-token-limit.ts'
import { FakeResponse, fakeRequest } from '../../fakes/http-exchange.ts'
import {
  createFakePlatform,
  createFakePushContext,
  secretOf,
  WORKSPACE_ID,
} from '../../fakes/platform/fake-platform.ts'
import { waitUntil, within } from '../wait.ts'

/** Everything here happens at once; an answer that takes longer never comes. */
const WAIT_MS = 10_000

export interface MemoryRequest {
  readonly method?: string
  /** Below the A2A URL of the workspace `WORKSPACE_ID`. */
  readonly path?: string
  readonly headers?: IncomingHttpHeaders
  readonly body?: unknown
  /** The bearer token; an admin's by default. */
  readonly token?: string
  /** The workspace in the URL. */
  readonly workspace?: string
}

export interface MemoryAnswer {
  readonly status: number | undefined
  readonly headers: Readonly<Record<string, unknown>>
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests read answers of every shape
  readonly json: any
}

export function openA2a(change: (options: A2aOptions) => Partial<A2aOptions> = () => ({})) {
  const fakePlatform = createFakePlatform()
  const { tokens, workspaces, reception, log } = fakePlatform
  const countedBytes: [tokenId: string, bytes: number][] = []
  const addresses = createAddresses({ host: '127.0.0.1' })
  const auth = createHttpAuth({
    addresses,
    tokens,
    port: 1,
    rateLimit: createRateLimit(systemClock),
    byteLimit: { count: (tokenId, bytes = 0) => void countedBytes.push([tokenId, bytes]) },
    wrongTokenLimit: createWrongTokenLimit(systemClock),
  })
  const basic: A2aOptions = {
    reception,
    workspaces,
    log,
    auth,
    addresses,
    clock: systemClock,
    limits: SSE_LIMITS,
    push: createFakePushContext(),
    waitingCalls: createWaitingCalls(tokens),
    reach: createReach(workspaces),
    maxBlockMs: 60_000,
    version: '1.2.3',
  }
  const options: A2aOptions = { ...basic, ...change(basic) }
  const serve = createA2a(options)
  /** Begins a request; its `answered` resolves when the door has handled it. */
  const begin = (given: MemoryRequest = {}) => {
    const { method = 'POST', path = '', headers = {}, token = secretOf('admin'), workspace = WORKSPACE_ID } = given
    const request = fakeRequest({
      method,
      headers: { host: 'localhost:1', ...(token === '' ? {} : { authorization: `Bearer ${token}` }), ...headers },
    })
    const client = new FakeResponse()
    const address = a2aAddress(method, `/workspaces/${workspace}/a2a${path}`)
    if (address === undefined) throw new Error(`no A2A address: ${method} ${path}`)
    const served = serve({ request, response: client.response, requestId: 'req_01' }, address)
    const answered = within(served, 'the answer', WAIT_MS)
    return { request: request as PassThrough, client, answered }
  }
  const send = async (given: MemoryRequest = {}): Promise<MemoryAnswer> => {
    const { request, client, answered } = begin(given)
    const { body } = given
    if (body === undefined) request.end()
    else request.end(typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body))
    const finished = once(client, 'finish')
    await within(Promise.all([answered, finished]), 'the answer', WAIT_MS)
    return answerOf(client)
  }
  const rpc = (method: string, params: unknown, given: MemoryRequest = {}) =>
    send({ body: { jsonrpc: '2.0', id: 7, method, params }, ...given })
  return { fakePlatform, options, begin, send, rpc, countedBytes }
}

/** Waits for a condition that must hold at once. */
export const soon = (condition: () => boolean): Promise<void> => waitUntil(condition, String(condition), WAIT_MS)

function answerOf({ status, headers, text }: FakeResponse): MemoryAnswer {
  const json = String(headers['Content-Type']).includes('json') && text !== '' ? JSON.parse(text) : undefined
  return { status, headers, text, json }
}
