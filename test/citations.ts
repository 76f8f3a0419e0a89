/**
 * Finds the requirement ids that tests cite. A citation is an id in the title of a `test`, `it`, `describe` or `suite`,
 * or in a string passed to a contract suite (a function named `...Contract`), which adds it to its own titles. Parses
 * the source instead of searching it: an id in a comment, in sample data or in a skipped test proves nothing.
 */
import { parseSync, Visitor } from 'oxc-parser'
import type { Requirement } from './requirements.ts'

export interface Citation {
  readonly id: string
  readonly file: string
}

type CallExpression = Parameters<NonNullable<ConstructorParameters<typeof Visitor>[0]['CallExpression']>>[0]
type Argument = CallExpression['arguments'][number]
type Callee = CallExpression['callee']

const TITLED_CALLS = new Set(['test', 'it', 'describe', 'suite'])
const SKIP_OPTIONS = new Set(['skip', 'todo'])
const ID = /\b[A-Z]{2}-\d+\b/g

/** One sentence for each mismatch between the requirements and the citations. */
export function checkCitations(requirements: readonly Requirement[], citations: readonly Citation[]): string[] {
  const known = new Map(requirements.map((requirement) => [requirement.id, requirement]))
  const cited = new Set(citations.map((citation) => citation.id))
  const problems: string[] = []
  for (const { id, built } of requirements) {
    if (built && !cited.has(id)) problems.push(`${id} is marked built, but no test cites it.`)
  }
  for (const { id, file } of citations) {
    const requirement = known.get(id)
    if (!requirement) problems.push(`${file} cites ${id}, which does not exist.`)
    if (requirement?.built === false) problems.push(`${file} cites ${id}, which is pending: move it to built.`)
  }
  return problems
}

/** The ids that a file cites, each once. */
export function readCitations(file: string, source: string): Citation[] {
  const { program, errors } = parseSync(file, source)
  const error = errors[0]
  if (error) throw new SyntaxError(`${file} does not parse: ${error.message}`)

  const calls: CallExpression[] = []
  new Visitor({ CallExpression: (node) => calls.push(node) }).visit(program)
  const skipped = calls.filter(isSkipped)
  const isInSkipped = (call: CallExpression) =>
    skipped.some((outer) => outer.start <= call.start && call.end <= outer.end)

  const ids = new Set<string>()
  for (const call of calls) {
    if (isInSkipped(call)) continue
    for (const text of titlesOf(call)) for (const [id] of text.matchAll(ID)) ids.add(id)
  }
  return [...ids].map((id) => ({ id, file }))
}

/** The first argument of a test; every string among the arguments of a contract suite, one level deep. */
function titlesOf({ callee, arguments: args }: CallExpression): string[] {
  const name = nameOf(callee)
  if (TITLED_CALLS.has(name)) return args.slice(0, 1).flatMap(textsOf)
  if (!name.endsWith('Contract')) return []
  return args.flatMap((argument) => {
    if (argument.type !== 'ObjectExpression') return textsOf(argument)
    return argument.properties.flatMap((property) => (property.type === 'Property' ? textsOf(property.value) : []))
  })
}

/** `test.skip(...)`, `test.todo(...)`, or `{ skip: true }` and `{ todo: 'later' }`; not an option that is computed. */
function isSkipped({ callee, arguments: args }: CallExpression): boolean {
  if (!TITLED_CALLS.has(nameOf(callee))) return false
  if (callee.type === 'MemberExpression' && SKIP_OPTIONS.has(memberOf(callee))) return true
  const properties = args.flatMap((argument) => (argument.type === 'ObjectExpression' ? argument.properties : []))
  return properties.some((property) => {
    if (property.type !== 'Property' || property.key.type !== 'Identifier') return false
    return SKIP_OPTIONS.has(property.key.name) && property.value.type === 'Literal' && Boolean(property.value.value)
  })
}

/** The called function: `test` for `test(...)`, `test.only(...)` and `t.test(...)`. */
function nameOf(callee: Callee): string {
  if (callee.type === 'Identifier') return callee.name
  if (callee.type !== 'MemberExpression') return ''
  const member = memberOf(callee)
  return TITLED_CALLS.has(member) ? member : nameOf(callee.object)
}

function memberOf(callee: Extract<Callee, { type: 'MemberExpression' }>): string {
  return callee.property.type === 'Identifier' ? callee.property.name : ''
}

/** The constant text of a string, a template or a concatenation. */
function textsOf(node: Argument): string[] {
  if (node.type === 'Literal') return typeof node.value === 'string' ? [node.value] : []
  if (node.type === 'TemplateLiteral') return node.quasis.map((quasi) => quasi.value.cooked ?? '')
  if (node.type !== 'BinaryExpression' || node.left.type === 'PrivateIdentifier') return []
  return [...textsOf(node.left), ...textsOf(node.right)]
}
