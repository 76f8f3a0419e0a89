/**
 * A change of a file as a tool of an agent reports it: unified text, so that it reads without the file. Bounded, because a
 * diff may be a whole file and is stored with the log. Lines are left out whole, never cut: a part of a token is not
 * recognised as a token, and would not be masked.
 */
export interface FileDiff {
  readonly path: string
  /** With the lines `---` and `+++`. The numbers of a hunk are left out where the agent does not report them. */
  readonly diff: string
}

/** Of one tool use. The rest is counted in a last line. */
export const DIFF_BYTES_MAX = 8 * 1024
/** Of one tool use. Further files are left out. */
export const DIFF_FILES_MAX = 20
/** A longer path is left out with its diff. */
export const DIFF_PATH_CHARACTERS_MAX = 1024
/** Larger changes are shown as all old lines removed and all new ones added: the comparison would hold the event loop. */
const COMPARED_CELLS_MAX = 250_000
const CONTEXT_LINES = 3
const NO_FILE = '/dev/null'

/** The diff of a whole file that was created or deleted. */
export const diffOfFile = (path: string, kind: 'created' | 'deleted', text: string): FileDiff =>
  kind === 'created'
    ? diffOfHunks({ path, before: NO_FILE }, ['@@ @@', ...linesOf(text).map((line) => `+${line}`)])
    : diffOfHunks({ path, after: NO_FILE }, ['@@ @@', ...linesOf(text).map((line) => `-${line}`)])

/** The diff of two texts, which may be parts of the file: so the hunks have no numbers. */
export const diffOfTexts = (path: string, oldText: string, newText: string): FileDiff =>
  diffOfHunks({ path }, hunksOf(compare(linesOf(oldText), linesOf(newText))))

/** From the lines of hunks, each with its `@@` line before it. A moved file had another path before. */
export function diffOfHunks(
  { path, before = path, after = path }: { readonly path: string; readonly before?: string; readonly after?: string },
  hunks: readonly string[],
): FileDiff {
  const names = [`--- ${before}`, `+++ ${after}`]
  const kept: string[] = []
  let bytes = 0
  for (const line of [...names, ...hunks]) {
    bytes += Buffer.byteLength(line) + 1
    if (bytes > DIFF_BYTES_MAX) break
    kept.push(line)
  }
  const left = names.length + hunks.length - kept.length
  return { path, diff: [...kept, ...(left > 0 ? [`... ${left} more lines`] : [])].join('\n') }
}

/** The diffs of one tool use, within its limits. */
export function boundDiffs(diffs: readonly FileDiff[]): readonly FileDiff[] {
  const kept: FileDiff[] = []
  let bytes = 0
  for (const one of diffs) {
    bytes += Buffer.byteLength(one.diff)
    if (kept.length >= DIFF_FILES_MAX || (kept.length > 0 && bytes > DIFF_BYTES_MAX)) break
    if (one.path.length <= DIFF_PATH_CHARACTERS_MAX) kept.push(one)
  }
  return kept
}

/** A newline at the end of a text begins no further line. */
const linesOf = (text: string): string[] => (text === '' ? [] : text.replace(/\n$/, '').split('\n'))

/** Every line with ` `, `-` or `+` before it, by the longest common sequence of lines. */
function compare(before: readonly string[], after: readonly string[]): string[] {
  let start = 0
  while (start < before.length && start < after.length && before[start] === after[start]) start++
  let end = 0
  const shorter = Math.min(before.length, after.length) - start
  while (end < shorter && before[before.length - 1 - end] === after[after.length - 1 - end]) end++
  const middle = compareMiddle(before.slice(start, before.length - end), after.slice(start, after.length - end))
  const same = (lines: readonly string[]) => lines.map((line) => ` ${line}`)
  return [...same(before.slice(0, start)), ...middle, ...same(before.slice(before.length - end))]
}

function compareMiddle(before: readonly string[], after: readonly string[]): string[] {
  const removed = (from: number) => before.slice(from).map((line) => `-${line}`)
  const added = (from: number) => after.slice(from).map((line) => `+${line}`)
  if ((before.length + 1) * (after.length + 1) > COMPARED_CELLS_MAX) return [...removed(0), ...added(0)]
  const common = commonLengths(before, after)
  const changed: string[] = []
  let [row, column] = [0, 0]
  while (row < before.length && column < after.length) {
    if (before[row] === after[column]) {
      changed.push(` ${before[row++]}`)
      column++
    } else if (common(row + 1, column) >= common(row, column + 1)) changed.push(`-${before[row++]}`)
    else changed.push(`+${after[column++]}`)
  }
  return [...changed, ...removed(row), ...added(column)]
}

/** The length of the longest common sequence of the lines from each pair on. */
function commonLengths(before: readonly string[], after: readonly string[]): (row: number, column: number) => number {
  const columns = after.length + 1
  const lengths = new Uint32Array((before.length + 1) * columns)
  const common = (row: number, column: number) => lengths[row * columns + column] ?? 0
  for (let row = before.length - 1; row >= 0; row--) {
    for (let column = after.length - 1; column >= 0; column--) {
      lengths[row * columns + column] =
        before[row] === after[column]
          ? common(row + 1, column + 1) + 1
          : Math.max(common(row + 1, column), common(row, column + 1))
    }
  }
  return common
}

/** The changed lines with some lines around them; a hunk for each place. */
function hunksOf(lines: readonly string[]): string[] {
  const near = new Set<number>()
  for (const [index, line] of lines.entries()) {
    if (line.startsWith(' ')) continue
    for (let each = index - CONTEXT_LINES; each <= index + CONTEXT_LINES; each++) near.add(each)
  }
  const shown: string[] = []
  for (const [index, line] of lines.entries()) {
    if (!near.has(index)) continue
    if (!near.has(index - 1) || index === 0) shown.push('@@ @@')
    shown.push(line)
  }
  return shown
}
