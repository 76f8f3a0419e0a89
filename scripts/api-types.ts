/**
 * Writes the types of the client from the API document: one member of `ApiAnswers` for each route that describes its
 * answer. `src/doors/http/routes/openapi.test.ts` fails when `src/client/api-types.ts` differs, and writes it.
 */

interface Schema {
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema | boolean
  readonly items?: Schema
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly description?: string
}

interface Operation {
  readonly summary: string
  readonly responses?: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { schema: { $ref: string } }>> }>
  >
}

export interface TypedDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, object>>>>
  readonly components: { readonly schemas: Readonly<Record<string, object>> }
}

const HEAD = `/**
 * The answers of the platform by route, made from the API document.
 * \`UPDATE_DOCS=1 npm test -- src/doors/http/routes/openapi.test.ts\` writes this file.
 */
`

export function renderApiTypes({ paths, components }: TypedDocument): string {
  const known = new Map<string, string>()
  const members = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, operation]) => {
      const schema = answerOf(operation as Operation, components.schemas)
      if (schema === undefined) return []
      const { summary } = operation as Operation
      const [route, type] = [`${method.toUpperCase()} ${path}`, typeOf(schema, '  ')]
      // Routes with the same answer refer to the first of them.
      const same = known.get(type)
      if (same === undefined) known.set(type, route)
      return [`  /** ${summary}. */\n  readonly '${route}': ${same === undefined ? type : `ApiAnswers['${same}']`}\n`]
    }),
  )
  return `${HEAD}export interface ApiAnswers {\n${members.join('')}}\n`
}

function answerOf({ responses = {} }: Operation, schemas: Readonly<Record<string, object>>): Schema | undefined {
  const [success] = Object.values(responses)
  const reference = success?.content?.['application/json']?.schema.$ref
  return reference === undefined ? undefined : (schemas[reference.split('/').at(-1) ?? ''] as Schema)
}

function typeOf(schema: Schema, indent: string): string {
  if (schema.const !== undefined) return literal(schema.const)
  if (schema.enum !== undefined) return schema.enum.map(literal).join(' | ')
  if (schema.anyOf !== undefined) return [...new Set(schema.anyOf.map((each) => typeOf(each, indent)))].join(' | ')
  const { type } = schema
  if (Array.isArray(type)) return type.map((each) => typeOf({ ...schema, type: each }, indent)).join(' | ')
  switch (type) {
    case 'object':
      return objectType(schema, indent)
    case 'array':
      return `readonly ${inList(typeOf(schema.items ?? {}, indent))}[]`
    case 'integer':
    case 'number':
      return 'number'
    case 'string':
    case 'boolean':
    case 'null':
      return type
    default:
      return 'unknown'
  }
}

const inList = (type: string): string => (/^[^{]* \| |^readonly /.test(type) ? `(${type})` : type)
const literal = (value: unknown): string => (typeof value === 'string' ? `'${value}'` : JSON.stringify(value))

function objectType({ properties, required = [], additionalProperties }: Schema, indent: string): string {
  if (properties === undefined) {
    const values = typeof additionalProperties === 'object' ? typeOf(additionalProperties, indent) : 'unknown'
    return `Readonly<Record<string, ${values}>>`
  }
  const inner = `${indent}  `
  const members = Object.entries(properties).map(([name, schema]) => {
    const about = schema.description === undefined ? '' : `${inner}/** ${schema.description} */\n`
    return `${about}${inner}readonly ${name}${required.includes(name) ? '' : '?'}: ${typeOf(schema, inner)}\n`
  })
  return `{\n${members.join('')}${indent}}`
}
