/**
 * The REST binding of A2A 1.0, below a workspace's A2A URL: each route is a method of JSON-RPC with its params in path,
 * query or body, and runs as that method. Answers are bare results, errors a `google.rpc.Status`. Every route also
 * stands under a tenant, which here is a name without meaning: the workspace is in the URL already.
 */
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import { isJsonObject, type JsonObject } from '../../protocol/json.ts'
import { type JsonRpcError, type Method, methodOf } from '../../protocol/json-rpc.ts'
import { restError } from '../../protocol/rest.ts'
import { type A2aAddress, type A2aOptions, explain, isKnownVersion, refusal, wireFailure } from './a2a-binding.ts'
import { callMethod } from './a2a-methods.ts'
import { writeStream } from './a2a-streams.ts'
import { type Answer, type Exchange, writeAnswer } from './answer.ts'
import { A2A_BODY_BYTES_MAX, parseJson, readBody } from './body.ts'
import { logFailure } from './errors.ts'

export async function writeRest(exchange: Exchange, address: A2aAddress, options: A2aOptions): Promise<void> {
  const { request, response, requestId } = exchange
  const { workspaceId } = address
  const write = (answer: Answer) =>
    writeAnswer(exchange, { ...answer, headers: { ...contentType(exchange), ...answer.headers } })
  try {
    const identity = await options.auth.identify(request)
    if (!isOurVersion(request.headers['a2a-version'])) return write(refused(400, refusal('versionNotSupported')))
    const found = findRoute(request.method, address.path)
    if (found === undefined) {
      return write(refused(404, refusal('methodNotFound', `A2A has no ${request.method} ${address.path}`)))
    }
    const { name, ids } = found
    const params = { ...(await readParams(exchange, address.query)), ...ids }
    const rpc = { jsonrpc: '2.0', id: requestId, method: name, params } as const
    const method = methodOf(name) as Method
    const result = await callMethod({ rpc, method, workspaceId, identity, exchange }, options)
    if ('value' in result) return write({ status: 200, body: result.value ?? {} })
    await writeStream(exchange, result.stream, { ...options, identity, form: (event) => event })
  } catch (thrown) {
    const error = toMoleculeError(thrown)
    logFailure(options.log, error, exchange)
    if (response.headersSent) return
    const failed = wireFailure(await explain(options.workspaces, workspaceId, error), requestId)
    write({ ...refused(failed.status, failed.error), headers: failed.headers })
  }
}

interface Route {
  readonly http: string
  readonly path: RegExp
  /** The method's name in 1.0. */
  readonly name: string
}

const TASK = '/tasks/(?<id>[^/:]+)'
const CONFIGS = '/tasks/(?<taskId>[^/:]+)/pushNotificationConfigs'

const ROUTES: readonly Route[] = [
  route('POST', '/message:send', 'SendMessage'),
  route('POST', '/message:stream', 'SendStreamingMessage'),
  route('GET', '/tasks', 'ListTasks'),
  route('GET', TASK, 'GetTask'),
  route('POST', `${TASK}:cancel`, 'CancelTask'),
  route('GET', `${TASK}:subscribe`, 'SubscribeToTask'),
  route('POST', `${TASK}:subscribe`, 'SubscribeToTask'),
  route('POST', CONFIGS, 'CreateTaskPushNotificationConfig'),
  route('GET', CONFIGS, 'ListTaskPushNotificationConfigs'),
  route('GET', `${CONFIGS}/(?<id>[^/]+)`, 'GetTaskPushNotificationConfig'),
  route('DELETE', `${CONFIGS}/(?<id>[^/]+)`, 'DeleteTaskPushNotificationConfig'),
  route('GET', '/extendedAgentCard', 'GetExtendedAgentCard'),
]

function route(http: string, path: string, name: string): Route {
  return { http, path: new RegExp(`^${path}$`), name }
}

/** Each route of this binding for the API document: the HTTP method, the path below the workspace, the A2A method. */
export function restRoutes(): readonly (readonly [http: string, path: string, name: string])[] {
  return ROUTES.map(({ http, path, name }) => [http, documented(path), name] as const)
}

/** `^/tasks/(?<id>[^/:]+)$` is `/tasks/{task}`; what stands below a task's configurations is one of those. */
function documented(path: RegExp): string {
  const bare = path.source.replaceAll('\\/', '/').slice(1, -1)
  return bare
    .replace(/pushNotificationConfigs\/\(\?<id>\[[^\]]*\]\+\)/, 'pushNotificationConfigs/{config}')
    .replace(/\(\?<(?:id|taskId)>\[[^\]]*\]\+\)/, '{task}')
}

interface Found {
  readonly name: string
  readonly ids: Readonly<Record<string, string>>
}

/** Without a tenant first: a tenant may be called as it likes. */
function findRoute(http: string | undefined, path: string): Found | undefined {
  return match(http, path) ?? match(http, path.replace(/^\/[^/]+/, ''))
}

function match(http: string | undefined, path: string): Found | undefined {
  for (const candidate of ROUTES) {
    const found = candidate.http === http ? candidate.path.exec(path) : null
    if (found) return { name: candidate.name, ids: decoded(found.groups ?? {}) }
  }
  return undefined
}

function decoded(ids: Readonly<Record<string, string>>): Record<string, string> {
  try {
    return Object.fromEntries(Object.entries(ids).map(([key, id]) => [key, decodeURIComponent(id)]))
  } catch (cause) {
    throw new MoleculeError('invalid_request', 'the path is not properly encoded', { cause })
  }
}

/** A body where one may come, and whatever the query says. */
async function readParams({ request }: Exchange, query: string): Promise<JsonObject> {
  const asked = readQuery(query)
  if (request.method !== 'POST') return asked
  const bytes = await readBody(request, A2A_BODY_BYTES_MAX)
  if (bytes.length === 0) return asked
  const body = parseJson(bytes)
  if (!isJsonObject(body)) throw new MoleculeError('invalid_request', 'the body must be a JSON object')
  return { ...asked, ...body }
}

const NUMBERS: ReadonlySet<string> = new Set(['historyLength', 'pageSize'])

/** Words of a query become what the same field is in JSON; one that cannot is left for the schema to refuse. */
function readQuery(query: string): JsonObject {
  const entries = [...new URLSearchParams(query)].map(([key, word]): [string, unknown] => {
    if (NUMBERS.has(key) && /^-?\d{1,15}$/.test(word)) return [key, Number(word)]
    if (key === 'includeArtifacts' && /^(?:true|false)$/.test(word)) return [key, word === 'true']
    return [key, word]
  })
  return Object.fromEntries(entries) as JsonObject
}

/** 0.3 has a REST binding of its own, which is not served; a caller that names no version is taken at its URL. */
function isOurVersion(header: string | string[] | undefined): boolean {
  return isKnownVersion(header) && !String(header ?? '').startsWith('0')
}

function refused(status: number, error: JsonRpcError): Answer {
  return { status, body: restError(status, error) }
}

/** A2A's own type, unless the caller asks for JSON and knows nothing of it. */
function contentType({ request }: Exchange): Record<string, string> {
  const { accept = '' } = request.headers
  const plain = accept.includes('application/json') && !accept.includes('application/a2a+json')
  return { 'Content-Type': plain ? 'application/json' : 'application/a2a+json' }
}
