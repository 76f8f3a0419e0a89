/**
 * What a rule covers. Pure. A rule is made from one ask, and a person has seen its pattern. Its scope is one of:
 * - exact: the same subject, character for character.
 * - prefix, for a shell: `npm test *` covers the command `npm test` and further plain words.
 * - folder, for a tool that reads or writes files: `/shop/migrations/` covers files below that folder.
 * Invariant: a rule covers no more than its sentence says. What cannot be understood is not covered, so it is asked.
 */
import { isJsonObject } from '../../protocol/json.ts'
import type { RuleChoice, RulePattern } from '../owners.ts'
import { mayRunFurtherWords } from './launchers.ts'

export interface AskedUse {
  readonly tool: string
  readonly subject: string
}

/** A longer pattern cannot be made a rule, because a person would not read it. */
const PATTERN_CHARACTERS_MAX = 4096

/** The tools whose subject is a command line, by the names that the agents give them. */
const SHELL_TOOLS: ReadonlySet<string> = new Set(['Bash', 'bash', 'shell', 'execute', 'run_shell_command', 'terminal'])

/** The tools that use one file, and the field of their input that has its path. */
const FILE_TOOLS: ReadonlyMap<string, string> = new Map([
  ...['Read', 'Edit', 'MultiEdit', 'Write', 'write_file', 'replace'].map((tool) => [tool, 'file_path'] as const),
  ['NotebookEdit', 'notebook_path'],
  ...['read', 'edit', 'write'].map((tool) => [tool, 'filePath'] as const),
])

export function coversUse(rule: RulePattern, { tool, subject }: AskedUse): boolean {
  if (rule.tool !== tool) return false
  if (rule.scope === 'exact') return rule.pattern === subject
  if (rule.scope === 'folder') return isBelowFolder(rule.pattern, filesOf({ tool, subject }))
  const fixed = fixedWordsOf(rule.pattern)
  const words = plainWordsOf({ tool, subject })
  if (fixed === undefined || words === undefined || words.length < fixed.length) return false
  return words.every((word, index) => (index < fixed.length ? word === fixed[index] : isPlainArgument(word)))
}

/** The rules that a person may make of this ask: the exact one, and one that covers more, where there is one. */
export function ruleChoices(use: AskedUse): { readonly exact?: RuleChoice; readonly wider?: RuleChoice } {
  if (!isDescribed(use)) return {}
  const exact = choiceOf(use, use.subject)
  const suggested = suggestedPattern(use)
  const wider = suggested === undefined ? undefined : choiceOf(use, suggested)
  return { exact, wider }
}

/** The rule with this pattern, if it can be made of this ask: it covers the ask and is well formed. */
export function choiceOf(use: AskedUse, pattern: string): RuleChoice | undefined {
  if (!isDescribed(use) || pattern.length > PATTERN_CHARACTERS_MAX) return undefined
  const { tool, subject } = use
  const wider = isFolder(pattern) ? 'folder' : 'prefix'
  const rule = { tool, scope: pattern === subject ? 'exact' : wider, pattern } as const
  return coversUse(rule, use) ? { ...rule, sentence: sentenceOf(rule) } : undefined
}

/**
 * False for a text in parentheses: the agent does not say what exactly it would do, and a backend describes that so. A
 * rule for such a text would cover actions that no person has seen.
 */
const isDescribed = ({ subject }: AskedUse): boolean => subject !== '' && !/^\(.*\)$/s.test(subject)

function sentenceOf({ tool, scope, pattern }: RulePattern): string {
  if (scope === 'exact')
    return SHELL_TOOLS.has(tool)
      ? 'Covers exactly this command. Every other command is still asked, also this one with other arguments.'
      : `Covers exactly this use of ${tool}. Every other use is still asked.`
  if (scope === 'folder')
    return `Covers each use of ${tool} for files below ${pattern}. Still asked: files elsewhere, and hidden files and folders below it.`
  const command = pattern.slice(0, -WILDCARD.length)
  return `Covers "${command}", alone or followed by plain words. Still asked: further options, absolute paths and "..", quotes, variables, and commands joined by ;, &, |, < or >.`
}

// ---- commands

const WILDCARD = ' *'
/** Characters without a meaning to any shell. */
const PLAIN_WORD = /^[A-Za-z0-9_@+=:,./-]+$/
/** No option, no assignment (`CC=evil`), no URL and no remote path (`host:file`). */
const ARGUMENT = /^[A-Za-z0-9_.][A-Za-z0-9_.,/-]*$/

const isPlainArgument = (word: string): boolean => ARGUMENT.test(word) && !word.split('/').includes('..')

/** The words of a command without any shell syntax; undefined for every other subject. */
function plainWordsOf({ tool, subject }: AskedUse): readonly string[] | undefined {
  if (!SHELL_TOOLS.has(tool)) return undefined
  const words = subject.split(' ')
  const isPlain = words.every((word) => PLAIN_WORD.test(word)) && !words[0]?.includes('=')
  return isPlain ? words : undefined
}

/** The words of a prefix pattern before its wildcard; undefined where the pattern is not well formed. */
function fixedWordsOf(pattern: string): readonly string[] | undefined {
  if (!pattern.endsWith(WILDCARD)) return undefined
  const words = pattern.slice(0, -WILDCARD.length).split(' ')
  return mayRunFurtherWords(words) ? undefined : words
}

function suggestedPattern(use: AskedUse): string | undefined {
  const files = filesOf(use)
  if (files !== undefined) return commonFolder(files)
  const words = plainWordsOf(use)
  if (words === undefined) return undefined
  // `git add src/a.ts` suggests `git add *`. Other words stay: `npm run release` must not suggest `npm run *`.
  let kept = words.length
  while (kept > 2 && isPlainArgument(words[kept - 1] ?? '') && /[./]/.test(words[kept - 1] ?? '')) kept -= 1
  const pattern = `${words.slice(0, kept).join(' ')}${WILDCARD}`
  return fixedWordsOf(pattern) === undefined ? undefined : pattern
}

// ---- files

/** The paths that the tool uses; undefined where the subject does not say them in a known form. */
function filesOf({ tool, subject }: AskedUse): readonly string[] | undefined {
  const field = FILE_TOOLS.get(tool)
  if (field === undefined && tool !== 'apply_patch') return undefined
  const input = parseJson(subject)
  const files = field === undefined ? changedFiles(input) : [isJsonObject(input) ? input[field] : undefined]
  return files?.every((file) => typeof file === 'string' && isCleanPath(file)) ? (files as string[]) : undefined
}

/** The files of codex's `apply_patch`: a list of `{path, kind: {type, move_path}, diff}`. */
function changedFiles(input: unknown): unknown[] | undefined {
  if (!Array.isArray(input) || input.length === 0) return undefined
  return input.flatMap((change: unknown) => {
    if (!isJsonObject(change) || !isJsonObject(change['kind'])) return [undefined]
    const { move_path: moved, ...kind } = change['kind']
    const isKnown = hasOnly(change, ['path', 'kind', 'diff']) && hasOnly(kind, ['type'])
    if (!isKnown) return [undefined]
    return moved === undefined || moved === null ? [change['path']] : [change['path'], moved]
  })
}

/** Without `..`, `.` and empty segments, so that comparing texts compares folders. */
const isCleanPath = (path: string): boolean =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a path with a control character is not clean.
  !/[\u0000-\u001f\u007f\\]/.test(path) && segmentsOf(path).every((one) => one !== '' && one !== '.' && one !== '..')

const segmentsOf = (path: string): string[] => (path.startsWith('/') ? path.slice(1) : path).split('/')

/** A folder pattern has at least two names when it is absolute: `/home/` or `/etc/` alone is too much. */
function isFolder(pattern: string): boolean {
  if (!pattern.endsWith('/') || pattern === '/') return false
  const folder = pattern.slice(0, -1)
  return isCleanPath(folder) && (!folder.startsWith('/') || segmentsOf(folder).length >= 2)
}

function isBelowFolder(folder: string, files: readonly string[] | undefined): boolean {
  if (files === undefined || !isFolder(folder)) return false
  return files.every(
    (file) => file.startsWith(folder) && segmentsOf(file.slice(folder.length)).every((one) => !one.startsWith('.')),
  )
}

/** The folder that has all files; undefined where they have none in common that may be a pattern. */
function commonFolder(files: readonly string[]): string | undefined {
  const folders = files.map((file) => file.slice(0, file.lastIndexOf('/') + 1))
  const shortest = folders.reduce((one, other) => (other.length < one.length ? other : one))
  return isFolder(shortest) && isBelowFolder(shortest, files) ? shortest : undefined
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Not JSON: the tool describes its use in other words, and only an exact rule can cover it.
    return undefined
  }
}

const hasOnly = (value: object, keys: readonly string[]): boolean =>
  Object.keys(value).every((key) => keys.includes(key))
