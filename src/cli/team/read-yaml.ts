/**
 * Reads the YAML of a team file with the line of every key. Every problem names the file and the line, and all problems of
 * a file are reported at once. Pure: no file access.
 */
import {
  type Document,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  visit,
} from 'yaml'
import { MoleculeError } from '../../errors.ts'

/** A longer file is refused: it is read whole. */
export const TEAM_FILE_BYTES_MAX = 4 * 1024 * 1024
/** Problems in one message; the rest is counted. */
const PROBLEMS_SHOWN_MAX = 20

const NAMED_TWICE = 'this name stands here twice'

export type YamlPath = readonly (string | number)[]

/** The text of a team file, parsed, and the problems found in it so far. */
export interface YamlSource {
  readonly document: Document
  /** `team.yaml:12`: where the key stands, or its nearest parent in the file. */
  at(path: YamlPath): string
  report(path: YamlPath, problem: string): void
  /** Throws when problems were reported. */
  requireNoProblems(): void
}

export function readYaml(text: string, file: string): YamlSource {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, merge: true, uniqueKeys: false })
  const problems = document.errors.map(({ code, message, linePos }) => {
    const problem = message.split(' at line ')[0] ?? code
    return { line: linePos?.[0].line ?? 1, problem }
  })
  const lineOf = (path: YamlPath) => lines.linePos(offsetOf(document, path)).line || 1
  const source: YamlSource = {
    document,
    at: (path) => `${file}:${lineOf(path)}`,
    report: (path, problem) => void problems.push({ line: lineOf(path), problem }),
    requireNoProblems() {
      if (problems.length === 0) return
      const sorted = problems.sort((a, b) => a.line - b.line)
      const shown = sorted.slice(0, PROBLEMS_SHOWN_MAX).map(({ line, problem }) => `${file}:${line}: ${problem}`)
      const more = problems.length - shown.length
      if (more > 0) shown.push(`and ${more} more problems`)
      throw new MoleculeError('bad_config', shown.join('\n'), { details: { source: `${file}:${sorted[0]?.line}` } })
    },
  }
  visit(document, {
    Map(_key, { items }) {
      const seen = new Set<string>()
      for (const { key } of items) {
        if (!isScalar(key)) continue
        const name = String(key.value)
        // Prevents that one of `1:` and `"1":` is dropped: the parser takes them for two keys.
        if (seen.has(name)) problems.push({ line: lines.linePos(key.range?.[0] ?? 0).line, problem: NAMED_TWICE })
        seen.add(name)
      }
    },
  })
  // A file with a syntax error has no reliable keys, so nothing else is checked.
  source.requireNoProblems()
  return source
}

/** Where the last key of the path that exists begins. */
function offsetOf(document: Document, path: YamlPath): number {
  let node: Node | null = document.contents
  let offset = 0
  for (const step of path) {
    if (isAlias(node)) node = node.resolve(document) ?? null
    const next = isMap(node) ? pairOf(node.items, step) : undefined
    const item = isSeq(node) ? node.items[Number(step)] : undefined
    if (next === undefined && item === undefined) break
    const begins = next === undefined ? item : next.key
    if (isNode(begins) && begins.range) offset = begins.range[0]
    const value = next === undefined ? item : next.value
    node = isNode(value) ? value : null
  }
  return offset
}

const pairOf = (items: readonly Pair[], key: string | number): Pair | undefined =>
  items.find((pair) => isScalar(pair.key) && String(pair.key.value) === String(key))

/** The values of the whole document. */
export function valuesOf(source: YamlSource): unknown {
  try {
    return source.document.toJS()
  } catch (thrown) {
    // A few lines of nested aliases can expand to gigabytes; the parser refuses them.
    source.report([], (thrown as Error).message)
    source.requireNoProblems()
    return undefined
  }
}

type Variable = string | number | boolean

const REFERENCE = /^(\$+)\{([A-Za-z_][\w-]*)\}$/

/**
 * Puts the variables into the document. Only a value that is nothing but `${name}` is one, so that a prompt may contain
 * `${HOME}`; `$${name}` is the text `${name}`. `given` comes from `--set`.
 */
export function replaceVariables(source: YamlSource, given: ReadonlyMap<string, string>): void {
  const declared = declaredVariables(source)
  const values = new Map<string, Variable | null>(declared)
  for (const [name, text] of given) {
    if (!declared.has(name)) {
      const known = [...declared.keys()]
      const message = `--set ${name}: the file declares ${known.length === 0 ? 'no variables' : known.join(', ')}`
      throw new MoleculeError('invalid_request', message)
    }
    values.set(name, typedLike(declared.get(name) ?? null, text, name))
  }
  visit(source.document, {
    Scalar(key, node, above) {
      const match = key === 'key' || typeof node.value !== 'string' ? null : REFERENCE.exec(node.value)
      if (match === null) return
      const [whole, dollars = '', name = ''] = match
      if (dollars.length > 1) node.value = whole.slice(1)
      else node.value = values.get(name) ?? reportMissing(source, name, [...above, node])
    },
  })
}

function reportMissing(source: YamlSource, name: string, nodes: readonly unknown[]): string {
  const path = nodes.flatMap((node) => keyOf(node))
  source.report(
    path,
    `the variable ${name} has no value; declare it under "variables", or give it with --set ${name}=...`,
  )
  return ''
}

/** Of the pairs above a node; a list is left out, so that the line is that of its key. */
const keyOf = (node: unknown): string[] => {
  const { key } = node as Partial<Pair>
  return isScalar(key) ? [String(key.value)] : []
}

/** The variables and their defaults; null where `--set` must give a value. */
function declaredVariables(source: YamlSource): Map<string, Variable | null> {
  const declared = new Map<string, Variable | null>()
  const section = source.document.get('variables')
  if (section === undefined || section === null) return declared
  if (!isMap(section)) {
    source.report(['variables'], 'variables: must be a map of names and defaults')
    return declared
  }
  for (const { key, value } of section.items) {
    const name = String(isScalar(key) ? key.value : key)
    const fallback = isScalar(value) ? value.value : value
    if (!REFERENCE.test(`\${${name}}`)) source.report(['variables', name], `variables.${name}: is not a name`)
    else if (fallback === null || ['string', 'number', 'boolean'].includes(typeof fallback))
      declared.set(name, fallback as Variable | null)
    else source.report(['variables', name], `variables.${name}: must be a text, a number, true or false`)
  }
  return declared
}

/** A value of `--set` has the type of the default in the file. */
function typedLike(fallback: Variable | null, text: string, name: string): Variable {
  if (typeof fallback === 'number' && text.trim() !== '' && Number.isFinite(Number(text))) return Number(text)
  if (typeof fallback === 'boolean' && (text === 'true' || text === 'false')) return text === 'true'
  if (fallback === null || typeof fallback === 'string') return text
  const type = typeof fallback === 'number' ? 'a number' : 'true or false'
  throw new MoleculeError('invalid_request', `--set ${name} takes ${type}, not ${JSON.stringify(text)}`)
}

/** For a text that is written to a team file: what looks like a variable is escaped. */
export const escapeVariable = (text: string): string => (REFERENCE.test(text) ? `$${text}` : text)
