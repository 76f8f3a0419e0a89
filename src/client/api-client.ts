/**
 * Calls the endpoints of the HTTP API by their names: `call('GET /workspaces/{id}/rules', { id })`. Parameters, body and
 * answer have the types of the contract (`src/api`), of which only the types are imported: the page loads no schema.
 */
import type { ApiAnswer, ApiBody, ApiName, ApiParams, RawApiName } from '../api/api.ts'
import { MoleculeError } from '../errors.ts'
import { trimEndOf } from '../trim-end.ts'
import { failureFromAnswer, platformUnreachable } from './platform-failure.ts'

/** Parameters of the path and after the `?`, and `body`. */
export type ApiInput<Name extends ApiName> = ApiParams<Name> &
  (ApiBody<Name> extends undefined ? unknown : { readonly body?: ApiBody<Name> })

/** An endpoint without a parameter and without a body needs no input. */
type CallArguments<Name extends ApiName> =
  object extends ApiInput<Name>
    ? [input?: ApiInput<Name>, options?: CallOptions]
    : [input: ApiInput<Name>, options?: CallOptions]

export interface CallOptions {
  readonly signal?: AbortSignal | undefined
  /** For example the trace that the call continues, or `If-Match`. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** The lists in the pages of an answer. */
type ListsOf<Name extends ApiName> = {
  [Key in keyof ApiAnswer<Name>]: ApiAnswer<Name>[Key] extends readonly unknown[] ? Key : never
}[keyof ApiAnswer<Name>]

export interface ApiClient {
  /** Throws a `MoleculeError` with the platform's code and sentence where it refuses or cannot be reached. */
  call<Name extends ApiName>(name: Name, ...rest: CallArguments<Name>): Promise<ApiAnswer<Name>>
  /** The same, with the headers of the answer. */
  exchange<Name extends ApiName>(name: Name, ...rest: CallArguments<Name>): Promise<Exchanged<ApiAnswer<Name>>>
  /** A list of an answer, read page by page to its end. */
  all<Name extends ApiName, List extends ListsOf<Name>>(
    name: Name,
    list: List,
    ...input: object extends ApiInput<Name> ? [input?: ApiInput<Name>] : [input: ApiInput<Name>]
  ): Promise<ApiAnswer<Name>[List]>
  /** The pages of an answer, the first one first. */
  pages<Name extends ApiName>(name: Name, ...rest: CallArguments<Name>): Promise<readonly ApiAnswer<Name>[]>
  /** A path that the platform gave, such as that of a need's action. */
  follow(request: { readonly method: string; readonly path: string; readonly body?: unknown }): Promise<unknown>
}

export interface Exchanged<Answer> {
  readonly answer: Answer
  readonly headers: Headers
}

export interface ApiClientOptions {
  readonly url: string
  /** A function is called before each call that needs a token; it may refuse by throwing. */
  readonly token: string | undefined | (() => Promise<string | undefined> | string | undefined)
  /** For one call. It must be longer than the platform's limit for a blocking send. */
  readonly timeoutMs?: number
  readonly fetch?: typeof fetch
}

/** Above the platform's default blocking time (120 s), so that the platform answers first. */
const CALL_TIMEOUT_MS = 150_000
/** More pages than any list has; a platform that never ends a list is left here. */
const PAGES_MAX = 1000
/** These need no token, so none is asked for: the program may have none yet. */
const OPEN: ReadonlySet<string> = new Set(['GET /ready', 'GET /health'])
/** Their answers are no JSON; one that is missing here does not compile. The page of a proxy in place of JSON is no answer. */
const RAW = {
  'GET /': true,
  'GET /assets/{file}': true,
  'GET /icon.svg': true,
  'GET /metrics': true,
  'GET /tasks/{id}/artifacts/{artifact}': true,
  'GET /workspaces/{id}/events': true,
  'GET /workspaces/{id}/files/{+path}': true,
  'POST /channels/{channel}/webhook': true,
  'POST /workspaces/{id}/mcp': true,
} satisfies Record<RawApiName, true>

type Input = Readonly<Record<string, unknown>>

export function createApiClient(options: ApiClientOptions): ApiClient {
  const exchange = async (name: string, input: Input = {}, { signal, headers }: CallOptions = {}) => {
    const { method, path, body } = requestOf(name, input)
    return await sendCall(options, { method, path, body, headers, isOpen: OPEN.has(name), isText: name in RAW }, signal)
  }
  const pages = async (name: string, input: Input = {}, more?: CallOptions) => {
    const read = async (after: string | undefined) =>
      (await exchange(name, after === undefined ? input : { ...input, after }, more)).answer as { next?: string }
    const all = [await read(undefined)]
    for (let next = all[0]?.next; next !== undefined && all.length < PAGES_MAX; next = all.at(-1)?.next) {
      all.push(await read(next))
    }
    return all
  }
  const client = {
    exchange,
    call: async (name: string, input?: Input, more?: CallOptions) => (await exchange(name, input, more)).answer,
    pages,
    all: async (name: string, list: string, input?: Input) =>
      (await pages(name, input)).flatMap((page) => (page as Record<string, unknown[]>)[list] ?? []),
    follow: async ({ method, path, body }: Parameters<ApiClient['follow']>[0]) =>
      (await sendCall(options, { method, path, body: body === undefined ? undefined : JSON.stringify(body) })).answer,
  }
  return client as unknown as ApiClient
}

/** Parameters that the path does not name go after the `?`. */
function requestOf(name: string, { body, ...params }: Input): { method: string; path: string; body?: string } {
  const [method = '', template = ''] = name.split(' ')
  const path = template.replaceAll(/\{(\+?)(\w+)\}/g, (_all, deep: string, parameter: string) => {
    const value = String(params[parameter])
    if (deep !== '') return value.split('/').map(encodeURIComponent).join('/')
    requireName(value, parameter)
    return encodeURIComponent(value)
  })
  const inPath = new Set([...template.matchAll(/\{\+?(\w+)\}/g)].map(([, parameter]) => parameter))
  const others = Object.entries(params).filter(([key, value]) => !inPath.has(key) && value !== undefined)
  const query = new URLSearchParams(others.map(([key, value]): [string, string] => [key, String(value)])).toString()
  const target = query === '' ? path : `${path}?${query}`
  if (body === undefined) return { method, path: target }
  return { method, path: target, body: typeof body === 'string' ? body : JSON.stringify(body) }
}

/**
 * Prevents that an empty name, or one that a URL takes for a folder, calls another endpoint: "GET /workspaces/" is the list
 * of all, and "DELETE /tokens/.." is "DELETE /".
 */
function requireName(value: string, parameter: string): void {
  if (value === '') throw new MoleculeError('invalid_request', `"${parameter}" must not be empty`)
  if (value === '.' || value === '..') throw new MoleculeError('not_found', `there is nothing called "${value}"`)
}

const PLAIN_HEADERS = { 'Content-Type': 'application/json', 'A2A-Version': '1.0' }

export async function headersWithToken({ token: given }: ApiClientOptions): Promise<Record<string, string>> {
  const token = typeof given === 'function' ? await given() : given
  return token === undefined ? PLAIN_HEADERS : { ...PLAIN_HEADERS, Authorization: `Bearer ${token}` }
}

interface SentCall {
  readonly method: string
  readonly path: string
  readonly body?: string | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  readonly isOpen?: boolean
  /** The answer is a text, not JSON. */
  readonly isText?: boolean
}

export async function sendCall(
  options: ApiClientOptions,
  { method, path, body, headers: more, isOpen = false, isText = false }: SentCall,
  signal?: AbortSignal,
): Promise<Exchanged<unknown>> {
  const { url, timeoutMs = CALL_TIMEOUT_MS, fetch: request = fetch } = options
  const base = trimEndOf(url, '/')
  const headers = { ...(isOpen ? PLAIN_HEADERS : await headersWithToken(options)), ...more }
  const limit = AbortSignal.timeout(timeoutMs)
  const ends = signal === undefined ? limit : AbortSignal.any([limit, signal])
  try {
    // Prevents a redirect from sending the token to another host.
    const init = { method, headers, signal: ends, redirect: 'error' as const, body }
    const answer = await request(base + path, init)
    const text = await answer.text()
    if (!answer.ok) throw failureFromAnswer(answer, text)
    return { answer: isText ? text : parseJson(text), headers: answer.headers }
  } catch (thrown) {
    if (thrown instanceof MoleculeError) throw thrown
    throw platformUnreachable(base, thrown, limit.aborted)
  }
}

/** Undefined where the answer has no body. */
const parseJson = (text: string): unknown => (text === '' ? undefined : JSON.parse(text))
