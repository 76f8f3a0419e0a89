/**
 * Which tests run which part of the source, measured by running each test file alone with V8's coverage. A mutant that no
 * test runs survives without a run, and another one meets only the tests that run it, the quickest first.
 *
 * The measurements of a test file are kept in `node_modules/.cache` until that file, or a file that it ran, changes.
 */
import { createHash } from 'node:crypto'
import { existsSync, globSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

/** A part of a file: the offset of its first character and the offset behind its last. */
type Span = readonly [start: number, end: number]

/** What one test file ran. */
export interface TestCoverage {
  readonly test: string
  /** How long the test file took on the unchanged source. */
  readonly ms: number
  /** By path; the hash is that of the file's content. */
  readonly files: Readonly<Record<string, { readonly hash: string; readonly spans: readonly Span[] }>>
}

/** A function of V8's report: the first range is the whole function, later ones are blocks inside of it. */
interface CoveredFunction {
  readonly ranges: readonly { readonly startOffset: number; readonly endOffset: number; readonly count: number }[]
}

/** They need PostgreSQL, install packages, kill what they start, or run this runner: slow, and no more coverage. */
const NOT_MEASURED = [
  'test/agents/**',
  'test/clients/**',
  'test/runner/**',
  'test/crash/**',
  'test/contracts/*postgres*',
  'test/e2e/fuzz*',
]

/** The test files that are measured: unit tests first. */
export function testFiles(root: string): string[] {
  const units = globSync('src/**/*.test.ts', { cwd: root }).sort()
  return [...units, ...globSync('test/*/**/*.test.ts', { cwd: root, exclude: NOT_MEASURED }).sort()]
}

/**
 * The tests that run the character at this offset. Those that run much of the file in a short time come first: every test
 * that imports the file runs its constants, and only few use them.
 */
export function testsOf(all: readonly TestCoverage[], file: string, offset: number): TestCoverage[] {
  const spansOf = ({ files }: TestCoverage) => files[file]?.spans ?? []
  const isRun = (each: TestCoverage) => spansOf(each).some(([start, end]) => start <= offset && offset < end)
  const price = (each: TestCoverage) => each.ms / spansOf(each).reduce((sum, [start, end]) => sum + end - start, 1)
  return all.filter(isRun).sort((a, b) => price(a) - price(b))
}

/** Runs a test file of this folder through `run`, which gets the environment that asks for coverage. */
export async function measureCoverage(
  root: string,
  test: string,
  run: (env: Readonly<Record<string, string>>) => Promise<{ readonly ms: number }>,
): Promise<TestCoverage> {
  const folder = mkdtempSync(join(tmpdir(), 'molecule-coverage-'))
  try {
    const { ms } = await run({ NODE_V8_COVERAGE: folder })
    const spans: Record<string, Span[]> = {}
    for (const name of readdirSync(folder)) {
      const { result } = JSON.parse(readFileSync(join(folder, name), 'utf8')) as {
        result: { url: string; functions: CoveredFunction[] }[]
      }
      for (const { url, functions } of result) {
        const file = pathInside(root, url)
        if (file !== undefined) spans[file] = [...(spans[file] ?? []), ...coveredSpans(functions)]
      }
    }
    const entries = Object.entries(spans).map(([file, parts]) => [
      file,
      { hash: hashOf(root, file), spans: mergeSpans(parts) },
    ])
    return { test, ms, files: Object.fromEntries(entries) }
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

/** The parts that ran: those whose innermost range was counted at least once. */
function coveredSpans(functions: readonly CoveredFunction[]): Span[] {
  const ranges = functions.flatMap((each) => each.ranges)
  const spans: Span[] = []
  const open: (typeof ranges)[number][] = []
  let offset = 0
  const moveTo = (end: number) => {
    if ((open.at(-1)?.count ?? 0) > 0 && end > offset) spans.push([offset, end])
    offset = end
  }
  for (const range of ranges.sort((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset)) {
    for (let last = open.at(-1); last !== undefined && last.endOffset <= range.startOffset; last = open.at(-1)) {
      moveTo(last.endOffset)
      open.pop()
    }
    moveTo(range.startOffset)
    open.push(range)
  }
  for (let last = open.at(-1); last !== undefined; last = open.at(-1)) {
    moveTo(last.endOffset)
    open.pop()
  }
  return spans
}

/** The same parts, sorted and without overlap. */
function mergeSpans(spans: readonly Span[]): Span[] {
  const merged: Span[] = []
  for (const [start, end] of [...spans].sort((a, b) => a[0] - b[0])) {
    const last = merged.at(-1)
    if (last !== undefined && start <= last[1]) merged[merged.length - 1] = [last[0], Math.max(last[1], end)]
    else merged.push([start, end])
  }
  return merged
}

/** The path of a module inside of the folder; undefined for Node's own, for packages and for `node -e`. */
function pathInside(root: string, url: string): string | undefined {
  if (!url.startsWith('file://')) return undefined
  const path = relative(root, fileURLToPath(url))
  if (path.startsWith('..') || path.startsWith('node_modules') || !existsSync(join(root, path))) return undefined
  return path
}

function hashOf(root: string, file: string): string {
  return createHash('sha256')
    .update(readFileSync(join(root, file)))
    .digest('base64')
}

/** One file for each test, so that a run that is stopped keeps what it has measured. */
const cacheFile = (root: string, test: string) =>
  join(root, 'node_modules', '.cache', 'molecule', 'test-coverage', `${test.replaceAll('/', '_')}.json`)

/** The earlier measurement, if neither the test nor a file that it ran has changed. */
export function readCoverage(root: string, test: string): TestCoverage | undefined {
  if (!existsSync(cacheFile(root, test))) return undefined
  const kept = JSON.parse(readFileSync(cacheFile(root, test), 'utf8')) as TestCoverage
  const isSame = ([file, { hash }]: [string, { hash: string }]) =>
    existsSync(join(root, file)) && hashOf(root, file) === hash
  return kept.files[test] !== undefined && Object.entries(kept.files).every(isSame) ? kept : undefined
}

export function writeCoverage(root: string, coverage: TestCoverage): void {
  mkdirSync(dirname(cacheFile(root, coverage.test)), { recursive: true })
  writeFileSync(cacheFile(root, coverage.test), JSON.stringify(coverage))
}
