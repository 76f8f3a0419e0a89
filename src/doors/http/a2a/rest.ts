/**
 * The REST binding of A2A 1.0, below a workspace's A2A URL. Each route calls a JSON-RPC method, with its params in path,
 * query or body. Answers are bare results, errors a `google.rpc.Status`. Every route also exists below a tenant, whose
 * name is ignored because the URL already names the workspace. Of the REST binding of 0.3 only the card is here: clients
 * that speak JSON-RPC ask for it too.
 */
import { MoleculeError, toMoleculeError } from '../../../errors.ts'
import type { ProtocolVersion } from '../../../protocol/envelope.ts'
import { withCamelCase } from '../../../protocol/field-names.ts'
import { isJsonObject, type JsonObject } from '../../../protocol/json.ts'
import { type A2aMethod, type ErrorInfo, type JsonRpcError, methodOf } from '../../../protocol/json-rpc.ts'
import { A2A_BODY_BYTES_MAX } from '../../../protocol/schemas.ts'
import { type HttpAnswer, type HttpExchange, writeAnswer } from '../server/answer.ts'
import { A2A_JSON_VALUES_MAX, letOthersRun, parseJson, readBody, SMALL_BODY_BYTES_MAX } from '../server/body.ts'
import { logFailure } from '../server/errors.ts'
import { a2aFailure, findFailureCause, grpcStatusName, isKnownVersion, isVersion1, refusal } from './bindings.ts'
import type { A2aAddress, A2aOptions } from './call.ts'
import { callMethod } from './methods.ts'
import { writeStream } from './streams.ts'

export async function writeRest(exchange: HttpExchange, address: A2aAddress, options: A2aOptions): Promise<void> {
  const { request, response, requestId } = exchange
  const { workspaceId } = address
  const write = (answer: HttpAnswer) =>
    writeAnswer(exchange, { ...answer, headers: { ...contentType(exchange), ...answer.headers } })
  try {
    const identity = await options.auth.identify(request)
    const found = findRoute(request.method, address.path)
    const isServed = found?.version === '0.3' ? isKnownVersion : isVersion1
    if (!isServed(request.headers['a2a-version'])) return write(restRefusal(400, refusal('versionNotSupported')))
    if (found === undefined) {
      return write(restRefusal(404, refusal('methodNotFound', `A2A has no ${request.method} ${address.path}`)))
    }
    const { name, ids, version } = found
    const body =
      request.method === 'POST'
        ? await readBody(request, A2A_BODY_BYTES_MAX, options.auth.openBody(identity, request))
        : undefined
    const bytes = body?.length ?? 0
    const params = { ...readQuery(address.query), ...(await readParams(body)), ...ids }
    const rpc = { jsonrpc: '2.0', id: requestId, method: name, params } as const
    const method = { ...(methodOf(name) as A2aMethod), version }
    const result = await callMethod({ rpc, method, workspaceId, identity, exchange, bytes }, options)
    if ('value' in result) {
      const headers: Record<string, string> = version === '0.3' ? { 'Content-Type': 'application/json' } : {}
      return write({ status: 200, headers, body: result.value ?? {} })
    }
    await writeStream(exchange, result.stream, { ...options, identity, form: (event) => event })
  } catch (thrown) {
    const error = toMoleculeError(thrown)
    logFailure(options.log, error, exchange)
    if (response.headersSent) return
    const failed = a2aFailure(await findFailureCause(options.workspaces, workspaceId, error), requestId)
    write({ ...restRefusal(failed.status, failed.error), headers: failed.headers })
  }
}

interface RestRoute {
  readonly http: string
  /** The path below the workspace's A2A URL: `/tasks/{task}:cancel`. */
  readonly template: string
  readonly pattern: RegExp
  /** The method's name in 1.0. */
  readonly name: string
  /** Of the answer. */
  readonly version: ProtocolVersion
}

const TASK = '/tasks/{task}'
const CONFIGS = '/tasks/{task}/pushNotificationConfigs'

export const REST_ROUTES: readonly RestRoute[] = [
  restRoute('POST', '/message:send', 'SendMessage'),
  restRoute('POST', '/message:stream', 'SendStreamingMessage'),
  restRoute('GET', '/tasks', 'ListTasks'),
  restRoute('GET', TASK, 'GetTask'),
  restRoute('POST', `${TASK}:cancel`, 'CancelTask'),
  restRoute('GET', `${TASK}:subscribe`, 'SubscribeToTask'),
  restRoute('POST', `${TASK}:subscribe`, 'SubscribeToTask'),
  restRoute('POST', CONFIGS, 'CreateTaskPushNotificationConfig'),
  restRoute('GET', CONFIGS, 'ListTaskPushNotificationConfigs'),
  restRoute('GET', `${CONFIGS}/{config}`, 'GetTaskPushNotificationConfig'),
  restRoute('DELETE', `${CONFIGS}/{config}`, 'DeleteTaskPushNotificationConfig'),
  restRoute('GET', '/extendedAgentCard', 'GetExtendedAgentCard'),
  { ...restRoute('GET', '/v1/card', 'GetExtendedAgentCard'), version: '0.3' },
]

/** The groups of the pattern are named as the params of the method: a task is its `id`, or the `taskId` of a config. */
function restRoute(http: string, template: string, name: string): RestRoute {
  const taskParam = template.startsWith(CONFIGS) ? 'taskId' : 'id'
  const source = template.replace('{task}', `(?<${taskParam}>[^/:]+)`).replace('{config}', '(?<id>[^/]+)')
  return { http, template, pattern: new RegExp(`^${source}$`), name, version: '1.0' }
}

interface FoundRestRoute extends Pick<RestRoute, 'name' | 'version'> {
  readonly ids: Readonly<Record<string, string>>
}

/** Tries the path without a tenant first, because a tenant may have any name. */
function findRoute(http: string | undefined, path: string): FoundRestRoute | undefined {
  return match(http, path) ?? match(http, path.replace(/^\/[^/]+/, ''))
}

function match(http: string | undefined, path: string): FoundRestRoute | undefined {
  for (const candidate of REST_ROUTES) {
    const found = candidate.http === http ? candidate.pattern.exec(path) : null
    if (found) return { ...candidate, ids: decoded(found.groups ?? {}) }
  }
  return undefined
}

function decoded(ids: Readonly<Record<string, string>>): Record<string, string> {
  try {
    return Object.fromEntries(Object.entries(ids).map(([key, id]) => [key, decodeURIComponent(id)]))
  } catch (cause) {
    throw new MoleculeError('invalid_request', 'the path is not valid percent-encoded UTF-8', { cause })
  }
}

/** The params of the body. */
async function readParams(bytes: Buffer | undefined): Promise<JsonObject> {
  if (bytes === undefined || bytes.length === 0) return {}
  const body = await parseJson(bytes, A2A_JSON_VALUES_MAX)
  if (bytes.length > SMALL_BODY_BYTES_MAX) await letOthersRun()
  if (!isJsonObject(body)) throw new MoleculeError('invalid_request', 'the body must be a JSON object')
  return withCamelCase(body) as JsonObject
}

const NUMBERS: ReadonlySet<string> = new Set(['historyLength', 'pageSize'])

/** Converts values of the query to the JSON type of their field. The schema refuses a value that cannot be converted. */
function readQuery(query: string): JsonObject {
  const given = withCamelCase(Object.fromEntries(new URLSearchParams(query))) as Record<string, string>
  const entries = Object.entries(given).map(([key, value]): [string, unknown] => {
    if (NUMBERS.has(key) && /^-?\d{1,15}$/.test(value)) return [key, Number(value)]
    if (key === 'includeArtifacts' && /^(?:true|false)$/.test(value)) return [key, value === 'true']
    return [key, value]
  })
  return Object.fromEntries(entries) as JsonObject
}

function restRefusal(status: number, error: JsonRpcError): HttpAnswer {
  return { status, body: restError(status, error) }
}

/** The media type of A2A, unless the caller accepts only plain JSON. */
function contentType({ request }: HttpExchange): Record<string, string> {
  const { accept = '' } = request.headers
  const plain = accept.includes('application/json') && !accept.includes('application/a2a+json')
  return { 'Content-Type': plain ? 'application/json' : 'application/a2a+json' }
}

interface RestError {
  readonly error: {
    /** The HTTP status. */
    readonly code: number
    /** The name of the gRPC code. */
    readonly status: string
    readonly message: string
    readonly details: readonly ErrorInfo[]
  }
}

/** A `google.rpc.Status`, made from the error that JSON-RPC would send. */
function restError(httpStatus: number, { code, message, data = [] }: JsonRpcError): RestError {
  return { error: { code: httpStatus, status: grpcStatusName(httpStatus, code), message, details: data } }
}
