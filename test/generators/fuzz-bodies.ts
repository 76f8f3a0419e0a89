/**
 * Bodies for fuzzing: values that fit the schemas of the API document, so that they pass the first check, then broken in
 * one place or in their bytes, so that they reach the next one.
 */
import fc from 'fast-check'

export type Schema = Readonly<Record<string, unknown>>
type Definitions = Readonly<Record<string, Schema>>

/** Names that the parsers of parts, messages and options look for, and names that are special in JavaScript. */
const WORDS = [
  ...['text', 'raw', 'url', 'data', 'kind', 'file', 'type', 'uri', 'bytes', 'mime_type', 'mediaType', 'filename'],
  ...['metadata', 'message', 'parts', 'messageId', 'taskId', 'contextId', 'role', 'user', 'ROLE_USER', 'exec', 'mock'],
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'length', '', ' ', '/', '../..', '\u0000', '\ud800'],
]

const word = fc.constantFrom(...WORDS)
const text = fc.oneof(
  word,
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constant('x'.repeat(3000)),
  fc.constant('0'.repeat(300)),
)
const scalar = fc.oneof(text, fc.double(), fc.integer(), fc.boolean(), fc.constant(null))
const anything = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    scalar,
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.oneof(word, text), tie('value'), { maxKeys: 3 }),
  ),
})).value

export interface SchemaContext {
  readonly definitions: Definitions
  /** Values by property name that pass checks beyond the schema: an existing id, a known runtime. */
  readonly hints: Readonly<Record<string, fc.Arbitrary<unknown>>>
}

/** Values that mostly fit the schema, which is JSON Schema as zod writes it. */
export function fromSchema(schema: Schema, schemaContext: SchemaContext, depth = 0): fc.Arbitrary<unknown> {
  const { definitions, hints } = schemaContext
  if (depth > 8) return anything
  const inner = (one: unknown, name = '') => {
    const made = fromSchema(one as Schema, schemaContext, depth + 1)
    const hint = hints[name]
    return hint === undefined ? made : fc.oneof({ weight: 9, arbitrary: hint }, { weight: 1, arbitrary: made })
  }
  if (typeof schema['$ref'] === 'string') {
    return inner(definitions[schema['$ref'].replace('#/components/schemas/', '')] ?? {})
  }
  if (schema['const'] !== undefined) return fc.constant(schema['const'])
  if (Array.isArray(schema['enum'])) return fc.constantFrom(...schema['enum'])
  const choices = schema['anyOf'] ?? schema['oneOf']
  if (Array.isArray(choices)) return fc.oneof(...choices.map((one) => inner(one)))
  switch (schema['type']) {
    case 'string':
      return fc.oneof(
        { weight: 4, arbitrary: fc.string({ minLength: 1, maxLength: 20 }) },
        { weight: 1, arbitrary: text },
      )
    case 'integer':
      return fc.oneof(
        { weight: 6, arbitrary: fc.integer({ min: 1, max: 100 }) },
        { weight: 1, arbitrary: fc.integer({ min: -1, max: 1001 }) },
        { weight: 1, arbitrary: fc.maxSafeInteger() },
      )
    case 'number':
      return fc.double()
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array':
      return fc.array(inner(schema['items'] ?? {}), { minLength: Number(schema['minItems'] ?? 0), maxLength: 4 })
    case 'object':
      return fromObject(schema, inner)
    default:
      return anything
  }
}

function fromObject(
  schema: Schema,
  inner: (one: unknown, name: string) => fc.Arbitrary<unknown>,
): fc.Arbitrary<unknown> {
  const properties = Object.entries((schema['properties'] ?? {}) as Record<string, unknown>)
  const model = Object.fromEntries(properties.map(([name, one]) => [name, inner(one, name)]))
  const requiredKeys = (schema['required'] ?? []) as string[]
  const known = fc.record(model, { requiredKeys })
  if (schema['additionalProperties'] === false) return known
  return fc
    .tuple(known, fc.dictionary(word, anything, { maxKeys: 3 }))
    .map(([value, more]) => ({ ...more, ...(value as object) }))
}

/** The bytes of a body: valid, with one broken value, or no JSON at all. */
export function brokenBodies(value: fc.Arbitrary<unknown>): fc.Arbitrary<Buffer> {
  const whole = value.map((one) => Buffer.from(JSON.stringify(one) ?? ''))
  const broken = fc.tuple(value, fc.nat(), fc.oneof(anything, deep)).map(([one, at, other]) => {
    return Buffer.from(JSON.stringify(replaceNode(one, at, other)) ?? '')
  })
  const cut = fc.tuple(whole, fc.nat()).map(([bytes, at]) => bytes.subarray(0, at % (bytes.length + 1)))
  const garbled = fc.tuple(whole, fc.nat(), fc.integer({ min: 0x80, max: 0xff })).map(([bytes, at, byte]) => {
    const copy = Buffer.from(bytes)
    if (copy.length > 0) copy[at % copy.length] = byte
    return copy
  })
  const noise = fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes))
  const large = fc.constant(Buffer.from(JSON.stringify({ name: 'y'.repeat(1_100_000) })))
  return fc.oneof(
    { weight: 40, arbitrary: whole },
    { weight: 40, arbitrary: broken },
    { weight: 8, arbitrary: cut },
    { weight: 8, arbitrary: garbled },
    { weight: 8, arbitrary: noise },
    { weight: 1, arbitrary: large },
  )
}

const deep = fc.integer({ min: 10, max: 3000 }).map((levels) => {
  let value: unknown = 'deep'
  for (let level = 0; level < levels; level++) value = level % 2 === 0 ? [value] : { a: value }
  return value
})

/** The value with one of its nodes replaced. `at` counts the nodes from the root. */
function replaceNode(value: unknown, at: number, other: unknown): unknown {
  let left = at % Math.max(1, countNodes(value))
  const walk = (node: unknown): unknown => {
    if (left-- === 0) return other
    if (Array.isArray(node)) return node.map(walk)
    if (typeof node !== 'object' || node === null) return node
    return Object.fromEntries(Object.entries(node).map(([key, member]) => [key, walk(member)]))
  }
  return walk(value)
}

function countNodes(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce((total: number, member) => total + countNodes(member), 1)
}
