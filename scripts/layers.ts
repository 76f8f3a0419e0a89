/**
 * Enforces the import table of `layers.mjs` on every source file; a part of `npm run check`. A type import counts like
 * any other: it depends on the other layer too.
 *
 * Invariant: `checkLayers` is pure. It assigns files to layers by path, and imports by the path that they resolve to.
 */
import { globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { layerTable } from '../layers.mjs'
import { findCircles, findFolderCircles } from './folder-circles.ts'
import { readImports } from './read-imports.ts'

export interface Layer {
  /** Other layers, or single files of them. */
  readonly mayImport: 'everything' | readonly string[]
  /** Files of which it may import the types, and nothing that exists at run time. */
  readonly mayImportTypes?: readonly string[]
  /** When set, the layer's folders may not import each other, except these folders. */
  readonly engines?: readonly string[]
}

export interface LayerTable {
  readonly leaves: readonly string[]
  readonly layers: Readonly<Record<string, Layer>>
  readonly outside: readonly string[]
  /** Files that load code by a name known only at run time. */
  readonly loaders?: readonly string[]
}

export interface Violation {
  readonly file: string
  readonly line: number
  readonly rule: LayerRule
  /** One sentence: the problem and, where it is not obvious, what to do instead. */
  readonly message: string
}

type LayerRule =
  | 'unknown-layer'
  | 'forbidden-layer'
  | 'sibling'
  | 'leaf'
  | 'cycle'
  | 'folder-circle'
  | 'computed-import'
  | 'outside-repo'
  | 'extension'
  | 'alias'
  | 'syntax'

type Place =
  | { readonly kind: 'layer'; readonly name: string; readonly layer: Layer }
  | { readonly kind: 'leaf' | 'outside' | 'unknown' }

/** An import of one file of the repository by another. */
interface Edge {
  readonly from: string
  readonly to: string
  readonly line: number
  readonly isType: boolean
}

type Finding = Pick<Violation, 'rule' | 'message'>

const SOURCE_FILES = ['layers.mjs', '{src,web,test,bench,scripts}/**/*.{ts,tsx,mjs}']
const EXTENSIONS = ['.ts', '.tsx', '.mjs', '.json', '.css']
const OWN_PACKAGE = 'molecule'

/** All violations, sorted by file and line. `files` maps paths from the root, with slashes, to their text. */
export function checkLayers(files: ReadonlyMap<string, string>, table: LayerTable): Violation[] {
  const violations: Violation[] = []
  const edges: Edge[] = []
  for (const [file, source] of files) {
    const report = (line: number, finding: Finding | undefined) =>
      finding && violations.push({ file, line, ...finding })
    report(1, checkFile(file, table))
    try {
      for (const { specifier, line, isType } of readImports(file, source)) {
        const finding = checkSpecifier(file, specifier, table)
        report(line, finding)
        if (!finding && specifier?.startsWith('.'))
          edges.push({ from: file, to: resolve(file, specifier), line, isType })
      }
    } catch (error) {
      report(1, { rule: 'syntax', message: `the file does not parse, so its imports cannot be checked: ${error}` })
    }
  }
  for (const edge of edges) {
    const finding = checkEdge(edge, table)
    if (finding) violations.push({ file: edge.from, line: edge.line, ...finding })
  }
  violations.push(...findCircles(edges).map(describeCycle))
  const inRooms = edges.filter((edge) => isInOneRoom(edge, table))
  for (const circle of findFolderCircles(inRooms)) violations.push({ rule: 'folder-circle', ...circle })
  return violations.sort((a, b) => a.file.localeCompare(b.file) || a.line - b.line)
}

/** The source files under a root folder, for `checkLayers`. */
export function readSources(root: string): Map<string, string> {
  const isBuilt = (name: string) => name === 'node_modules' || name === 'dist'
  const paths = globSync(SOURCE_FILES, { cwd: root, exclude: (path) => isBuilt(posix.basename(path)) })
  return new Map(paths.map((path) => [path.replaceAll('\\', '/'), readFileSync(`${root}/${path}`, 'utf8')]))
}

function checkFile(file: string, table: LayerTable): Finding | undefined {
  if (placeOf(file, table).kind !== 'unknown') return
  return { rule: 'unknown-layer', message: 'the file is in no layer and is no leaf: move it, or list it in layers.mjs' }
}

/** Checks the specifier alone: can the table be applied to this import? */
function checkSpecifier(file: string, specifier: string | undefined, table: LayerTable): Finding | undefined {
  if (specifier === undefined) {
    // Files outside the layers may import anything.
    if (placeOf(file, table).kind === 'outside' || table.loaders?.includes(file)) return
    return { rule: 'computed-import', message: 'import() of a computed name cannot be checked: write the name out' }
  }
  if (specifier.startsWith('#') || specifier === OWN_PACKAGE || specifier.startsWith(`${OWN_PACKAGE}/`)) {
    return { rule: 'alias', message: `"${specifier}" is an alias of a file in this repository: import it by its path` }
  }
  const isPath = specifier.startsWith('.')
  const isOutside = isPath ? resolve(file, specifier).startsWith('..') : /^(?:\/|file:)/.test(specifier)
  if (isOutside)
    return {
      rule: 'outside-repo',
      message: `"${specifier}" is outside the repository: import only files that every clone has`,
    }
  if (!isPath || EXTENSIONS.includes(posix.extname(specifier))) return
  return { rule: 'extension', message: `"${specifier}" has no extension: Node runs the sources directly, so write .ts` }
}

function checkEdge({ from, to, isType }: Edge, table: LayerTable): Finding | undefined {
  const source = placeOf(from, table)
  const target = placeOf(to, table)
  if (source.kind === 'leaf')
    return { rule: 'leaf', message: `a leaf may import no file of the repository, but this one imports ${to}` }
  // Files outside the layers may import anything; `checkFile` has reported a file without a place.
  if (source.kind !== 'layer') return
  if (target.kind === 'leaf') return
  if (target.kind === 'outside') {
    return { rule: 'forbidden-layer', message: `${to} is a test or a tool, which no layer may import` }
  }
  if (target.kind === 'layer' && target.name === source.name) return checkSibling({ from, to }, source)
  const { mayImport, mayImportTypes = [] } = source.layer
  if (mayImport === 'everything' || mayImport.includes(to)) return
  if (mayImportTypes.includes(to)) {
    if (isType) return
    return { rule: 'forbidden-layer', message: `${source.name} may import only types of ${to}: write "import type"` }
  }
  if (target.kind === 'layer' && mayImport.includes(target.name)) return
  const allowed = mayImport.length === 0 ? 'only leaf files' : `only leaf files and ${mayImport.join(', ')}`
  return { rule: 'forbidden-layer', message: `${source.name} may not import ${to}: it may import ${allowed}` }
}

function checkSibling(
  { from, to }: Pick<Edge, 'from' | 'to'>,
  { name, layer }: { name: string; layer: Layer },
): Finding | undefined {
  const own = folderIn(name, from)
  const other = folderIn(name, to)
  if (!layer.engines || !own || !other || own === other || layer.engines.includes(other)) return
  const shared = layer.engines.join(', ')
  return { rule: 'sibling', message: `${own} may not import its sibling ${other}: shared code belongs in ${shared}` }
}

/** The folder directly inside a layer that holds the file, or undefined for a file of the layer itself. */
function folderIn(layer: string, file: string): string | undefined {
  const [folder, ...rest] = file.slice(layer.length + 1).split('/')
  return rest.length > 0 ? `${layer}/${folder}` : undefined
}

function placeOf(file: string, table: LayerTable): Place {
  const isUnder = (path: string) => file === path || file.startsWith(`${path}/`)
  if (/\.test\.tsx?$/.test(file) || table.outside.some(isUnder)) return { kind: 'outside' }
  if (table.leaves.includes(file)) return { kind: 'leaf' }
  for (const [name, layer] of Object.entries(table.layers)) if (isUnder(name)) return { kind: 'layer', name, layer }
  return { kind: 'unknown' }
}

/** The import that closes the cycle, with the whole chain. */
function describeCycle(chain: readonly Edge[]): Violation {
  const last = chain.at(-1) as Edge
  const files = [...chain.map((edge) => edge.from), last.to]
  return { file: last.from, line: last.line, rule: 'cycle', message: `imports form a cycle: ${files.join(' -> ')}` }
}

function isInOneRoom({ from, to }: Edge, table: LayerTable): boolean {
  const [source, target] = [placeOf(from, table), placeOf(to, table)]
  return source.kind === 'layer' && target.kind === 'layer' && source.name === target.name
}

function resolve(file: string, specifier: string): string {
  return posix.join(posix.dirname(file), specifier)
}

if (import.meta.main) {
  const files = readSources(posix.join(import.meta.dirname, '..'))
  const violations = checkLayers(files, layerTable)
  for (const { file, line, rule, message } of violations) console.error(`${file}:${line} ${rule}: ${message}`)
  if (violations.length > 0) process.exitCode = 1
}
