/**
 * Finds the mutants of a source file: small changes that a test should notice. `mutate.ts` runs the tests on them.
 *
 * A mutant negates a condition, drops a statement, changes a constant, or swaps an operator, in TypeScript or in SQL text.
 * Types, imports, log calls and sentences for people are never mutated: a string with a space that is not SQL is a sentence.
 */
import { parseSync } from 'oxc-parser'

export interface Mutant {
  readonly file: string
  readonly line: number
  readonly start: number
  readonly end: number
  readonly replacement: string
  /** The lines with the mutation, before and after it. With `file` they are the mutant's identity, without a line number. */
  readonly source: string
  readonly change: string
  /** The lines with the mutation marked as `«old → new»`; the rules of `test/accepted-mutants.ts` match it. */
  readonly edit: string
}

/** A node of the syntax tree, read without its exact type. */
interface SyntaxNode {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [field: string]: unknown
}

interface Edit {
  readonly start: number
  readonly end: number
  readonly replacement: string
}

const TEXT_MAX = 240
const SWAPS: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '&&': '||',
  '||': '&&',
  '??': '&&',
}
const SQL_SWAPS: Readonly<Record<string, string>> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '=': '<>',
  '<>': '=',
  and: 'or',
  or: 'and',
  'is null': 'is not null',
  'is not null': 'is null',
  'not exists': 'exists',
  desc: 'asc',
  'min(': 'max(',
}
const SQL_TOKEN = /(?<=\s)(?:<=|>=|<>|=|<|>|and|or|is null|is not null|not exists|desc)(?=[\s),`']|$)|\bmin\(/g
const SQL =
  /^\s*(?:select|insert into|update \w+ set|delete from|with)\s|\s(?:from|where|order by|join)\s.*(?:=|<|>|\(|\$\d)/is
/** Their conditions are worth a mutant; a loop that never ends would only cost the timeout. */
const CONDITIONALS = ['IfStatement', 'ConditionalExpression']
const DROPPED = ['ExpressionStatement', 'ThrowStatement', 'ContinueStatement']
/** Their type is in a field of `TYPE_FIELDS`; their expression exists at run time. */
const TYPED_EXPRESSIONS = ['TSAsExpression', 'TSNonNullExpression', 'TSSatisfiesExpression']
const TYPE_FIELDS = ['typeAnnotation', 'typeParameters', 'typeArguments', 'returnType', 'superTypeArguments']
const LOG_CALL = /(?:^|\.)log\??\.(?:debug|info|warn|error)$/

/** The mutants of one file in order of appearance. Throws a SyntaxError for a file that does not parse. */
export function findMutants(file: string, source: string): Mutant[] {
  const { program, errors } = parseSync(file, source)
  if (errors[0]) throw new SyntaxError(`${file}: ${errors[0].message}`)
  const edits: Edit[] = []
  visit(program as unknown as SyntaxNode, source, edits)
  return edits.sort((a, b) => a.start - b.start || a.end - b.end).map((edit) => describeEdit(file, source, edit))
}

/** The text of the file with the mutation. */
export function applyMutant(source: string, { start, end, replacement }: Edit): string {
  return source.slice(0, start) + replacement + source.slice(end)
}

function describeEdit(file: string, source: string, edit: Edit): Mutant {
  const lineStart = source.lastIndexOf('\n', edit.start - 1) + 1
  const newline = source.indexOf('\n', edit.end)
  const lineEnd = newline === -1 ? source.length : newline
  const shorten = (text: string) => text.replace(/\s+/g, ' ').trim().slice(0, TEXT_MAX)
  const [before, after] = [source.slice(lineStart, edit.start), source.slice(edit.end, lineEnd)]
  const replaced = `«${source.slice(edit.start, edit.end)} → ${edit.replacement}»`
  return {
    file,
    line: source.slice(0, edit.start).split('\n').length,
    ...edit,
    source: shorten(source.slice(lineStart, lineEnd)),
    change: shorten(before + edit.replacement + after),
    edit: (before + replaced + after).replace(/\s+/g, ' ').trim(),
  }
}

function visit(node: SyntaxNode, source: string, edits: Edit[]): void {
  const text = ({ start, end }: SyntaxNode) => source.slice(start, end)
  if (isNeverMutated(node, text)) return
  edits.push(...editsOf(node, text))
  for (const [field, value] of Object.entries(node)) {
    if (TYPE_FIELDS.includes(field) || isName(node, field)) continue
    for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child, source, edits)
  }
}

function isNode(value: unknown): value is SyntaxNode {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}

/** The name of a property, and the module of an `export ... from`. */
function isName(node: SyntaxNode, field: string): boolean {
  if (node.type.startsWith('Export')) return field === 'source'
  return (field === 'key' || field === 'property') && node['computed'] !== true
}

function isNeverMutated(node: SyntaxNode, text: (node: SyntaxNode) => string): boolean {
  if (node.type.startsWith('TS')) return !TYPED_EXPRESSIONS.includes(node.type)
  if (node.type === 'ImportDeclaration' || node.type === 'ImportExpression') return true
  if (node.type === 'CallExpression') return LOG_CALL.test(text(node['callee'] as SyntaxNode))
  return node.type === 'TemplateLiteral' && !SQL.test(text(node).slice(1, -1)) && /\s/.test(quasiText(node))
}

function quasiText(template: SyntaxNode): string {
  return (template['quasis'] as { value: { raw: string } }[]).map((quasi) => quasi.value.raw).join('')
}

function editsOf(node: SyntaxNode, text: (node: SyntaxNode) => string): Edit[] {
  const { type, start, end } = node
  const edits: Edit[] = []
  if (CONDITIONALS.includes(type)) {
    const test = node['test'] as SyntaxNode
    // The swapped operator of the test is the same mutant.
    const isSwapped = ['===', '!=='].includes(String(test['operator']))
    if (!isSwapped) edits.push({ start: test.start, end: test.end, replacement: `!(${text(test)})` })
  }
  if (isDropped(node, text)) edits.push({ start, end, replacement: ';' })
  if (type === 'BinaryExpression' || type === 'LogicalExpression') {
    const swapped = SWAPS[String(node['operator'])]
    const [left, right] = [text(node['left'] as SyntaxNode), text(node['right'] as SyntaxNode)]
    if (swapped !== undefined) edits.push({ start, end, replacement: `((${left}) ${swapped} (${right}))` })
  }
  if (type === 'Literal') edits.push(...constantEdits(node, text(node)))
  if (type === 'TemplateLiteral') edits.push(...sqlEdits(start, text(node)))
  return edits
}

function isDropped(node: SyntaxNode, text: (node: SyntaxNode) => string): boolean {
  if (node.type === 'ReturnStatement') return node['argument'] === null
  if (!DROPPED.includes(node.type) || typeof node['directive'] === 'string') return false
  const expression = node['expression']
  if (!isNode(expression)) return true
  // `log?.warn()` is a call inside of a chain.
  const call = expression.type === 'ChainExpression' ? (expression['expression'] as SyntaxNode) : expression
  return !isNeverMutated(call, text)
}

/** A number becomes a tenth of it, a small one another small one; a text gets one more character. */
function constantEdits({ start, end, value }: SyntaxNode, raw: string): Edit[] {
  if (typeof value === 'boolean') return [{ start, end, replacement: String(!value) }]
  if (typeof value === 'number') {
    const small = value === 1 ? 0 : value + 1
    return [{ start, end, replacement: String(value >= 10 ? Math.floor(value / 10) : small) }]
  }
  if (typeof value !== 'string') return []
  if (SQL.test(value)) return sqlEdits(start, raw)
  return /\s/.test(value) ? [] : [{ start: end - 1, end: end - 1, replacement: '~' }]
}

/** Swapped operators of a SQL text that begins at this offset; nothing for another text. */
function sqlEdits(offset: number, raw: string): Edit[] {
  if (!SQL.test(raw.slice(1, -1))) return []
  const edits: Edit[] = []
  for (const { 0: token, index } of raw.matchAll(SQL_TOKEN)) {
    const clauses = raw.slice(0, index).match(/\b(?:set|where|on|when|and|or|then|else|end|select|values)\b/g)
    // An assignment, and the end of `between`, have no other operator: the database would refuse the text.
    const assigns = token === '=' && ['set', 'end', 'else', 'then', undefined].includes(clauses?.at(-1))
    const between = token === 'and' && /between\s+\S+\s+$/.test(raw.slice(0, index))
    const replacement = SQL_SWAPS[token]
    if (assigns || between || replacement === undefined || insideExpression(raw, index)) continue
    edits.push({ start: offset + index, end: offset + index + token.length, replacement })
  }
  return edits
}

/** Whether this place of a template is code, which is visited on its own. */
function insideExpression(raw: string, index: number): boolean {
  const before = raw.slice(0, index)
  return before.lastIndexOf('${') > before.lastIndexOf('}')
}
