/**
 * The API in the words of OpenAPI 3.1, made from the route table and from the schemas that the routes themselves check
 * with, so that it cannot say anything else than what is served. Who may is in `x-roles`, for A2A per method.
 */
import { z } from 'zod'
import {
  jsonRpcRequestSchema,
  listTasksParamsSchema,
  messageSendParamsSchema,
  sendMessageParamsSchema,
  taskIdParamsSchema,
} from '../../../protocol/schemas.ts'
import { A2A_ACTIONS } from '../a2a/methods.ts'
import { type Action, rolesOf } from '../server/auth.ts'
import type { A2aRoute, Route } from './route.ts'

export interface OpenApiDocument {
  readonly openapi: string
  readonly info: { readonly title: string; readonly version: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, ApiOperation>>>>
  readonly components: { readonly schemas: Record<string, object>; readonly [key: string]: unknown }
}

export interface ApiOperation {
  readonly summary: string
  readonly 'x-action': string
  /** Empty where no token is needed. */
  readonly 'x-roles': readonly string[]
  readonly 'x-a2a-methods'?: Readonly<Record<string, { readonly action: string; readonly roles: readonly string[] }>>
  /** The method that a route of the REST binding is. */
  readonly 'x-a2a-method'?: string
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, unknown>> }
  readonly [key: string]: unknown
}

export function describeApi(routes: readonly Route[], version: string): OpenApiDocument {
  const schemas: Record<string, object> = { Error: ERROR_SCHEMA }
  const paths: Record<string, Record<string, ApiOperation>> = {}
  for (const route of routes) {
    const path = documentPath(route.path)
    paths[path] = { ...paths[path], [route.method]: describeRoute(route, schemas) }
  }
  for (const [name, schema] of Object.entries(A2A_SCHEMAS)) addSchema(schemas, name, schema)
  return {
    openapi: '3.1.0',
    info: { title: 'Molecule', version },
    paths,
    components: {
      schemas,
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        session: { type: 'apiKey', in: 'cookie', name: 'molecule_session' },
      },
      responses: {
        Error: { description: 'Refused, with the reason', content: json({ $ref: '#/components/schemas/Error' }) },
      },
    },
  }
}

/** `/workspaces/:id` is `/workspaces/{id}` in the document. */
export const documentPath = (path: string): string => path.replaceAll(/\/:(\w+)(?:\{[^}]*\})?/g, '/{$1}')

/** The params of A2A methods; which one a call has is said by its method. */
const A2A_SCHEMAS = {
  JsonRpcRequest: jsonRpcRequestSchema,
  SendMessage: sendMessageParamsSchema,
  MessageSend: messageSendParamsSchema,
  TaskId: taskIdParamsSchema,
  ListTasks: listTasksParamsSchema,
} as const

const ERROR_SCHEMA = {
  type: 'object',
  properties: {
    error: {
      type: 'object',
      properties: {
        code: { type: 'string' },
        message: { type: 'string' },
        hint: { type: 'string' },
        id: { type: 'string' },
      },
      required: ['code', 'message', 'id'],
    },
  },
  required: ['error'],
}

function describeRoute(route: Route, schemas: Record<string, object>): ApiOperation {
  const { method, path, summary, access, success } = route
  const parameters = [...path.matchAll(/\/:(\w+)/g)].map(([, name]) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }))
  const [status, description] = success
  return {
    summary,
    operationId: `${method}${path.replaceAll(/[^a-z0-9]+/gi, '_')}`,
    'x-action': access,
    'x-roles': access === 'open' || access === 'a2a' ? [] : rolesOf(access),
    ...(access === 'a2a' && { 'x-a2a-methods': a2aRules() }),
    ...((route as A2aRoute).a2aMethod !== undefined && { 'x-a2a-method': (route as A2aRoute).a2aMethod }),
    security: access === 'open' ? [] : [{ bearer: [] }, { session: [] }],
    ...(parameters.length > 0 && { parameters }),
    ...requestBody(route, schemas),
    responses: { [status]: { description }, default: { $ref: '#/components/responses/Error' } },
  }
}

function a2aRules() {
  const rule = (action: Action) => ({ action, roles: rolesOf(action) })
  return Object.fromEntries([...A2A_ACTIONS].map(([name, action]) => [name, rule(action)]))
}

function requestBody(route: Route, schemas: Record<string, object>): Pick<ApiOperation, 'requestBody'> {
  if (route.access === 'a2a') {
    return { requestBody: { required: true, content: json({ $ref: '#/components/schemas/JsonRpcRequest' }) } }
  }
  if (route.body === undefined) return {}
  const name = `${route.method}${route.path.replaceAll(/[^a-z0-9]+/gi, '_')}`
  const schema = addSchema(schemas, name, route.body.schema)
  return { requestBody: { required: route.body.optional !== true, content: json(schema) } }
}

/** Definitions inside a schema are found from the document's root: they become schemas of the document. */
function addSchema(schemas: Record<string, object>, name: string, schema: z.ZodType): { $ref: string } {
  const made = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  const text = JSON.stringify(made).replaceAll('"#/$defs/', `"#/components/schemas/${name}.`)
  const { $schema: _dialect, $defs = {}, ...rest } = JSON.parse(text) as Record<string, unknown> & { $defs?: object }
  schemas[name] = rest
  for (const [inner, definition] of Object.entries($defs)) schemas[`${name}.${inner}`] = definition as object
  return { $ref: `#/components/schemas/${name}` }
}

const json = (schema: object) => ({ 'application/json': { schema } })
