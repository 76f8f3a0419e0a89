/**
 * Writes a JSON answer directly to Node's response: every A2A answer, and every refusal, because a refusal may come
 * while the client is still sending. To close then would reset the connection and lose the answer. So the answer is
 * sent whole, and the rest of the body is read and discarded for a while before the end.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { INBOX_BODY_BYTES_MAX } from '../../../api/bridges.ts'
import { A2A_BODY_BYTES_MAX } from '../../../protocol/schemas.ts'
import { FILE_BYTES_MAX } from '../../../workspaces/workspace-files.ts'

/** One request with its response. */
export interface HttpExchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly requestId: string
}

export interface HttpAnswer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: unknown
}

export const REQUEST_ID_HEADER = 'X-Request-Id'
/** A request id is this prefix and a ULID. */
export const REQUEST_ID_PREFIX = 'req_'

export function writeAnswer(
  { request, response, requestId }: HttpExchange,
  { status, headers, body }: HttpAnswer,
): void {
  if (response.destroyed) return
  // As a string, so that Node sends it in one write with the headers.
  const text = JSON.stringify(body)
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(text),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    [REQUEST_ID_HEADER]: requestId,
    ...(isRefusedBeforeBody(request) ? { Connection: 'close' } : {}),
    ...headers,
  })
  if (request.complete || isRefusedBeforeBody(request)) {
    response.end(text)
    return
  }
  response.write(text)
  endAfterBody(request, response)
}

/** The client asks (`Expect`) before it sends a body that is too large: it gets no `100 Continue` and sends nothing. */
export function isRefusedBeforeBody({ method, url, headers }: Pick<IncomingMessage, 'method' | 'url' | 'headers'>) {
  return headers.expect !== undefined && Number(headers['content-length']) > largestBodyBytes(method, url)
}

/** No route of this method and path accepts more; each route still checks its own limit. */
function largestBodyBytes(method: string | undefined, url = ''): number {
  if (method === 'PUT') return FILE_BYTES_MAX
  return /^\/workspaces\/[^/?]+\/inbox\//.test(url) ? INBOX_BODY_BYTES_MAX : A2A_BODY_BYTES_MAX
}

/** How long the rest of a refused body is read. Then the connection is closed. */
const DISCARD_MS_MAX = 5000

function endAfterBody(request: IncomingMessage, response: ServerResponse): void {
  const timer = setTimeout(() => request.destroy(), DISCARD_MS_MAX)
  timer.unref()
  const end = () => {
    clearTimeout(timer)
    response.end()
  }
  request.once('end', end).once('close', end).resume()
}
