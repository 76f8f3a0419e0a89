/**
 * What the API document says of A2A: the params of its methods, and for each binding the media types and the form of an
 * error. A2A errors are not `{error: {code: "not_found", ...}}` like those of the other routes (`server/errors.ts`).
 */
import { z } from 'zod'
import { METHOD_NAMES, methodOf } from '../../../protocol/json-rpc.ts'
import {
  jsonRpcRequestSchema,
  listTasksParamsSchema,
  messageSendParamsSchema,
  sendMessageParamsSchema,
  taskIdParamsSchema,
} from '../../../protocol/schemas.ts'
import { A2A_ACTIONS, isStreaming } from '../a2a/methods.ts'
import type { Route } from '../routes/route.ts'

/** The params of A2A methods; the method of a call says which one applies. */
export const A2A_PARAMS = {
  JsonRpcRequest: jsonRpcRequestSchema.extend({ method: z.enum(rpcMethodNames()) }),
  SendMessage: sendMessageParamsSchema,
  MessageSend: messageSendParamsSchema,
  TaskId: taskIdParamsSchema,
  ListTasks: listTasksParamsSchema,
} as const

const text = { type: 'string' }
const integer = { type: 'integer' }

const ERROR_INFO = {
  type: 'object',
  description: 'A google.rpc.ErrorInfo.',
  properties: {
    '@type': { const: 'type.googleapis.com/google.rpc.ErrorInfo' },
    reason: text,
    domain: text,
    metadata: { type: 'object', additionalProperties: text },
  },
  required: ['@type', 'reason', 'domain'],
}
const INFOS = { type: 'array', items: { $ref: '#/components/schemas/A2aErrorInfo' } }

export const A2A_ERROR_SCHEMAS = {
  A2aErrorInfo: ERROR_INFO,
  JsonRpcError: {
    type: 'object',
    properties: {
      jsonrpc: { const: '2.0' },
      id: { anyOf: [text, { type: 'number' }, { type: 'null' }] },
      error: {
        type: 'object',
        properties: { code: integer, message: text, data: INFOS },
        required: ['code', 'message'],
      },
    },
    required: ['jsonrpc', 'id', 'error'],
  },
  A2aRestError: {
    type: 'object',
    description: 'A google.rpc.Status.',
    properties: {
      error: {
        type: 'object',
        properties: {
          code: { ...integer, description: 'The HTTP status.' },
          status: { ...text, description: 'The name of the gRPC code.' },
          message: text,
          details: INFOS,
        },
        required: ['code', 'status', 'message', 'details'],
      },
    },
    required: ['error'],
  },
}

export const A2A_ERROR_RESPONSES = {
  JsonRpcError: {
    description: 'Refused, with the reason. Most errors have the status 200.',
    content: { 'application/json': { schema: { $ref: '#/components/schemas/JsonRpcError' } } },
  },
  A2aRestError: {
    description: 'Refused, with the reason',
    content: restContent({ $ref: '#/components/schemas/A2aRestError' }),
  },
}

/** The name of the response of an error; each binding of A2A has its own. */
export function errorResponseName(route: Route): 'Error' | keyof typeof A2A_ERROR_RESPONSES {
  if (route.access === 'a2a') return 'JsonRpcError'
  return restMethod(route) === undefined ? 'Error' : 'A2aRestError'
}

/** The content of a successful answer, for the routes of the two bindings and the card. */
export function a2aContent(route: Route): object | undefined {
  const events = { 'text/event-stream': { schema: text } }
  if (route.access === 'a2a') return { 'application/json': { schema: { type: 'object' } }, ...events }
  if (route.path.includes('/.well-known/')) return { 'application/json': { schema: { type: 'object' } } }
  const name = restMethod(route)
  const method = name === undefined ? undefined : methodOf(name)
  if (method === undefined) return undefined
  return isStreaming(method) ? events : restContent({ type: 'object' })
}

/** The content of a request. */
export const bodyContent = (route: Route, schema: object): Record<string, object> =>
  restMethod(route) === undefined ? { 'application/json': { schema } } : restContent(schema)

/** The media types of the REST binding: that of A2A, and plain JSON for a caller that accepts only that. */
function restContent(schema: object): Record<string, object> {
  return { 'application/a2a+json': { schema }, 'application/json': { schema } }
}

const restMethod = (route: Route): string | undefined => ('a2aMethod' in route ? route.a2aMethod : undefined)

/** The names of the served methods in both versions. */
function rpcMethodNames(): string[] {
  return METHOD_NAMES.filter((name) => A2A_ACTIONS.has(methodOf(name)?.name1_0 ?? ''))
}
