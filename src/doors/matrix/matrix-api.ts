/**
 * Calls of the Matrix client-server API by fetch. The access token goes in a header, so no address contains it, and a redirect
 * is an error, so it goes to no other server. Every answer has a size limit and every call a time limit.
 */
import { MoleculeError } from '../../errors.ts'
import { trimEndOf } from '../../trim-end.ts'
import type { ChannelOptions, ChatPostFile } from '../chat/channel.ts'
import { type MatrixJson, objectOf, textOf } from './matrix-json.ts'

const CALL_MS = 30_000
const UPLOAD_MS = 3 * 60_000
const ANSWER_BYTES_MAX = 8 * 1024 * 1024

/** The homeserver refused a call. The message has only its code and its status. */
export class MatrixRefusal extends Error {
  readonly status: number
  /** `M_FORBIDDEN`; absent: something before the homeserver answered. */
  readonly code: string | undefined
  readonly retryAfterMs: number | undefined

  constructor(status: number, code: string | undefined, retryAfterMs: number | undefined) {
    super(`the homeserver answers ${status}${code === undefined ? '' : ` ${code}`}`)
    this.status = status
    this.code = code
    this.retryAfterMs = retryAfterMs
  }
}

export interface MatrixCall {
  readonly method: 'GET' | 'POST' | 'PUT'
  /** Below `/_matrix`, made by `path`. */
  readonly path: string
  readonly query?: Readonly<Record<string, string>>
  readonly body?: object
  readonly timeoutMs?: number
  readonly bytesMax?: number
}

export interface MatrixApi {
  /** Throws `MatrixRefusal`, or the error of the connection. */
  call(call: MatrixCall, signal: AbortSignal): Promise<MatrixJson>
  /** The address of the file: `mxc://server/id`. */
  upload(file: ChatPostFile, signal: AbortSignal): Promise<string>
  /** For a download by the door. */
  readonly root: string
  readonly headers: Readonly<Record<string, string>>
}

/** An address whose parts are encoded: ids of rooms and events contain `!`, `#`, `/` and whatever their server likes. */
export const path = (strings: TemplateStringsArray, ...ids: readonly string[]): string =>
  strings.map((text, index) => text + encodeURIComponent((ids[index] ?? '').toWellFormed())).join('')

/** Without a token only for what needs none: the versions and the log-in. */
export function createMatrixApi({ apiUrl, token }: { readonly apiUrl: string; readonly token?: string }): MatrixApi {
  const root = `${trimEndOf(apiUrl, '/')}/_matrix`
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const request = async (url: string, init: RequestInit, { timeoutMs = CALL_MS, bytesMax = ANSWER_BYTES_MAX }) => {
    const { signal } = init
    const late = AbortSignal.timeout(timeoutMs)
    const either = signal ? AbortSignal.any([signal, late]) : late
    const response = await fetch(url, { ...init, redirect: 'error', signal: either })
    const answer = objectOf(parseJson(await readBody(response, bytesMax)))
    if (!response.ok) throw refusalOf(response, answer)
    return answer
  }
  return {
    root,
    headers,
    async call({ method, path: route, query, body, ...limits }, signal) {
      const search = query === undefined ? '' : `?${new URLSearchParams(query)}`
      const sent = body === undefined ? {} : { body: JSON.stringify(body) }
      const type = body === undefined ? {} : { 'content-type': 'application/json' }
      return await request(
        `${root}${route}${search}`,
        { method, headers: { ...headers, ...type }, ...sent, signal },
        limits,
      )
    },
    async upload({ name, mediaType = 'application/octet-stream', content }, signal) {
      const url = `${root}/media/v3/upload?${new URLSearchParams({ filename: name })}`
      const type = { 'content-type': mediaType }
      const body = new Uint8Array(content)
      const init = { method: 'POST', headers: { ...headers, ...type }, body, signal }
      const answer = await request(url, init, { timeoutMs: UPLOAD_MS })
      const address = textOf(answer['content_uri'])
      if (address === undefined) throw new MatrixRefusal(502, undefined, undefined)
      return address
    },
  }
}

/** The address of the homeserver of a channel. */
export function requireApiUrl({ apiUrl }: Pick<ChannelOptions, 'apiUrl'>): string {
  if (apiUrl !== undefined) return apiUrl
  throw new MoleculeError(
    'bad_config',
    'Matrix needs the address of the homeserver: give it with --service-url https://matrix.example.org, or in MATRIX_API_URL.',
  )
}

async function readBody(response: Response, bytesMax: number): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > bytesMax) throw new MatrixRefusal(502, 'an answer that is too long', undefined)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString()
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function refusalOf({ status, headers }: Response, answer: MatrixJson): MatrixRefusal {
  const code = textOf(answer['errcode'])
  const inBody = answer['retry_after_ms']
  const inHeader = Number(headers.get('retry-after') ?? Number.NaN) * 1000
  const retryAfterMs = typeof inBody === 'number' ? inBody : inHeader
  return new MatrixRefusal(status, code, Number.isFinite(retryAfterMs) && retryAfterMs >= 0 ? retryAfterMs : undefined)
}
