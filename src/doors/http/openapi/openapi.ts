/**
 * The API document (OpenAPI 3.1), derived from the list of routes and from the schemas that check their bodies, so it
 * cannot differ from what is served. `x-roles` lists the roles that may call a route; A2A lists them per method.
 */
import { z } from 'zod'
import { isRaw } from '../../../api/endpoint.ts'
import { type Action, rolesOf } from '../../../api/who-may.ts'
import { safeParse } from '../../../protocol/schemas.ts'
import { A2A_ACTIONS } from '../a2a/methods.ts'
import type { KnownNames, Route } from '../routes/route.ts'
import {
  A2A_ERROR_RESPONSES,
  A2A_ERROR_SCHEMAS,
  A2A_PARAMS,
  a2aContent,
  bodyContent,
  errorResponseName,
} from './a2a-document.ts'

export interface OpenApiDocument {
  readonly openapi: string
  readonly info: { readonly title: string; readonly version: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, ApiOperation>>>>
  readonly components: { readonly schemas: Record<string, object>; readonly [key: string]: unknown }
}

export interface ApiOperation {
  readonly summary: string
  readonly 'x-action': string
  /** Empty when the route needs no token. */
  readonly 'x-roles': readonly string[]
  readonly 'x-a2a-methods'?: Readonly<Record<string, { readonly action: string; readonly roles: readonly string[] }>>
  /** The A2A method that a route of the REST binding calls. */
  readonly 'x-a2a-method'?: string
  readonly requestBody?: { readonly required: boolean; readonly content: Readonly<Record<string, unknown>> }
  readonly [key: string]: unknown
}

export function describeApi(
  routes: readonly Route[],
  version: string,
  names: Partial<KnownNames> = {},
): OpenApiDocument {
  const schemas: Record<string, object> = { Error: ERROR_SCHEMA, ...A2A_ERROR_SCHEMAS }
  const paths: Record<string, Record<string, ApiOperation>> = {}
  for (const route of routes) {
    const path = documentPath(route.path)
    paths[path] = { ...paths[path], [route.method]: describeRoute(route, schemas) }
  }
  for (const [name, schema] of Object.entries(A2A_PARAMS)) addSchema(schemas, { name, schema, io: 'input' })
  listNames(schemas, names)
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
        ...A2A_ERROR_RESPONSES,
      },
    },
  }
}

/** From the router's syntax to the document's: `/workspaces/:id` is `/workspaces/{id}`. */
export const documentPath = (path: string): string => path.replaceAll(/\/:(\w+)(?:\{[^}]*\})?/g, '/{$1}')

const ERROR_SCHEMA = {
  type: 'object',
  properties: {
    error: {
      type: 'object',
      properties: {
        code: { type: 'string' },
        message: { type: 'string' },
        hint: { type: 'string' },
        problems: {
          type: 'array',
          description: 'Of a file that was sent: what is wrong, and where.',
          items: {
            type: 'object',
            properties: { line: { type: 'integer' }, column: { type: 'integer' }, message: { type: 'string' } },
            required: ['line', 'column', 'message'],
          },
        },
        id: { type: 'string' },
      },
      required: ['code', 'message', 'id'],
    },
  },
  required: ['error'],
}

const operationName = ({ method, path }: Route): string => `${method}${path.replaceAll(/[^a-z0-9]+/gi, '_')}`

function describeRoute(route: Route, schemas: Record<string, object>): ApiOperation {
  const { path, summary, access, success } = route
  const parameters = [
    ...[...path.matchAll(/\/:(\w+)/g)].map(([, name]) => ({
      name,
      in: 'path',
      required: true,
      schema: { type: 'string' },
    })),
    ...queryParameters(route),
  ]
  const [status, description] = success
  return {
    summary,
    operationId: operationName(route),
    'x-action': access,
    'x-roles': access === 'open' || access === 'a2a' ? [] : rolesOf(access),
    ...(access === 'a2a' && { 'x-a2a-methods': a2aRules() }),
    ...('a2aMethod' in route && { 'x-a2a-method': route.a2aMethod }),
    security: access === 'open' ? [] : [{ bearer: [] }, { session: [] }],
    ...(parameters.length > 0 && { parameters }),
    ...requestBody(route, schemas),
    responses: {
      [status]: { description, ...answerContent(route, schemas) },
      default: { $ref: `#/components/responses/${errorResponseName(route)}` },
    },
  }
}

function queryParameters(route: Route): object[] {
  const query = 'query' in route ? route.query : undefined
  return Object.entries(query?.shape ?? {}).map(([name, field]) => {
    const { $schema: _dialect, ...schema } = z.toJSONSchema(field as z.ZodType, { io: 'input', unrepresentable: 'any' })
    return { name, in: 'query', required: !safeParse(field as z.ZodType, undefined).success, schema }
  })
}

function answerContent(route: Route, schemas: Record<string, object>): object {
  const content = a2aContent(route)
  if (content !== undefined) return { content }
  const { answer } = route
  if (answer === undefined) return {}
  if (isRaw(answer)) return answer.content === undefined ? {} : { content: { [answer.content]: { schema: RAW } } }
  const name = `${operationName(route)}_answer`
  return { content: json(addSchema(schemas, { name, schema: answer, io: 'output' })) }
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
  const schema = addSchema(schemas, { name: operationName(route), schema: route.body.schema, io: 'input' })
  return { requestBody: { required: route.body.optional !== true, content: bodyContent(route, schema) } }
}

/**
 * Adds the schema to those of the document; a reference to it. A part that refers to itself (any JSON value) becomes a
 * schema without a condition: no type that a generator makes of it compiles.
 */
function addSchema(
  schemas: Record<string, object>,
  { name, schema, io }: { name: string; schema: z.ZodType; io: 'input' | 'output' },
): { $ref: string } {
  const converted = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  const text = JSON.stringify(converted).replaceAll(/\{"\$ref":"#\/\$defs\/[^"]*"\}/g, '{}')
  const { $schema: _dialect, $defs: _recursive, ...rest } = JSON.parse(text) as Record<string, unknown>
  schemas[name] = rest
  return { $ref: `#/components/schemas/${name}` }
}

/** Replaces `names` in every schema by the enum of these names. */
function listNames(node: unknown, known: Partial<KnownNames>): void {
  if (typeof node !== 'object' || node === null) return
  const schema = node as Record<string, unknown>
  const { names } = schema
  if (typeof names === 'string') {
    delete schema['names']
    const values = known[names as keyof KnownNames]
    if (values !== undefined) schema['enum'] = values
  }
  for (const inner of Object.values(schema)) listNames(inner, known)
}

/** A file, a text or a stream. */
const RAW = { type: 'string' }

const json = (schema: object) => ({ 'application/json': { schema } })
