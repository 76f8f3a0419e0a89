/**
 * Parses Markdown within limits, for the page and for chat services. The parser recurses with each quote and list and is
 * quadratic in some marks, so a text of an agent could hold the event loop or end the page. A long text is parsed in parts,
 * and a part beyond a limit is plain text.
 */
import { getDefaults, Lexer, type Token, Tokenizer, type Tokens } from 'marked'

export type { Token, Tokens }

/** A longer text is shown as plain text. */
const TEXT_CHARACTERS_MAX = 200_000
/** A longer text is parsed in parts of about `PART_CHARACTERS`: references between parts are not found. */
const UNDIVIDED_CHARACTERS_MAX = 20_000
const PART_CHARACTERS = 4000
/** Quotes, lists and emphasis inside each other. A deeper part is shown as plain text. */
const DEPTH_MAX = 24
/** In one paragraph. A part with more marks is plain text: the parser takes 3 s for a run of 20,000 stars. */
const MARKS_MAX = 2000
/** In one paragraph of a chat message, `*`, `_` and `~` alone: 4 KB of `_*a` take 110 ms, and 400 of these marks 3 ms. */
const EMPHASIS_MARKS_MAX = 400
const MARKS: ReadonlySet<string> = new Set('*_!`~[<\\')

export interface MarkdownPart {
  readonly text: string
  /** Too long to be parsed. */
  readonly isPlain: boolean
}

/** The parts of a text, in their order. A part ends at an empty line outside of code, so no block is divided. */
export function divideMarkdown(text: string): readonly MarkdownPart[] {
  if (text.length > TEXT_CHARACTERS_MAX) return [{ text, isPlain: true }]
  if (text.length <= UNDIVIDED_CHARACTERS_MAX) return [{ text, isPlain: false }]
  const parts: MarkdownPart[] = []
  let start = 0
  let codeCharacters = 0
  let openFence: string | undefined
  let wasEmpty = false
  const endPart = (end: number) => {
    const isPlain = end - start - codeCharacters > UNDIVIDED_CHARACTERS_MAX
    if (end > start) parts.push({ text: text.slice(start, end), isPlain })
    start = end
    codeCharacters = 0
  }
  for (let at = 0; at < text.length; ) {
    const newline = text.indexOf('\n', at)
    const next = newline < 0 ? text.length : newline + 1
    const line = text.slice(at, next)
    // A line that is indented may belong to the list item before the empty line.
    const isOutside = openFence === undefined && wasEmpty && !/^\s/.test(line)
    if (isOutside && at - start >= PART_CHARACTERS) endPart(at)
    const fence = fenceOf(line)
    if (openFence !== undefined) codeCharacters += line.length
    if (openFence === undefined) openFence = fence
    else if (fence?.startsWith(openFence) && line.trim() === fence) openFence = undefined
    wasEmpty = line.trim() === ''
    at = next
  }
  endPart(text.length)
  return parts
}

/** The mark that opens or closes a block of code on this line. */
export const fenceOf = (line: string): string | undefined => /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1]

/** Full stops, colons, brackets and quotes of the scripts that are written without spaces. */
const WIDE_PUNCTUATION = '\\u3001-\\u303f\\uff01-\\uff0f\\uff1a-\\uff20\\uff3b-\\uff40\\uff5b-\\uff65\\u2018-\\u201d'

/**
 * The pattern with wide punctuation read as letters. A mark between punctuation and a letter neither opens nor closes, and
 * these scripts have no space there: `**标题：**内容` would show its stars.
 */
const withWideLetters = ({ source, flags }: RegExp): RegExp =>
  new RegExp(
    source.replaceAll(/\[(\^?)((?:\\s)?\\p\{P\}\\p\{S\})\]/g, `[$1[$2]--[${WIDE_PUNCTUATION}]]`),
    flags.replace('u', 'v'),
  )

const { emStrongLDelim, emStrongRDelimAst, ...otherRules } = Lexer.rules.inline.gfm
const RULES = {
  block: Lexer.rules.block.gfm,
  inline: {
    ...otherRules,
    emStrongLDelim: withWideLetters(emStrongLDelim),
    emStrongRDelimAst: withWideLetters(emStrongRDelimAst),
  },
}

function newLexer(): Lexer {
  const tokenizer = new Tokenizer()
  const lexer = new Lexer({ ...getDefaults(), tokenizer })
  tokenizer.rules = { ...tokenizer.rules, ...RULES }
  return lexer
}

/** The tokens of a part; undefined where it has too many marks, or is nested too deep, to be shown as Markdown. */
export function parseMarkdown(text: string): readonly Token[] | undefined {
  if (isTooCostly(text)) return undefined
  try {
    // Without its option `breaks`, which is quadratic in a run of spaces: the page makes the breaks of the lines.
    const tokens = newLexer().lex(text)
    return isTooDeep(tokens) ? undefined : tokens
  } catch {
    // The parser ran out of stack: 3,000 quote marks are 3,000 calls inside each other.
    return undefined
  }
}

/** The tokens of one paragraph without its blocks; undefined where it has too many marks. At most some KB of text. */
export function parseInline(text: string): readonly Token[] | undefined {
  if ((text.match(/[*_~]/g)?.length ?? 0) > EMPHASIS_MARKS_MAX) return undefined
  const tokens = newLexer().inlineTokens(text)
  return isTooDeep(tokens) ? undefined : tokens
}

/** Code is not counted: its marks cost nothing. */
function isTooCostly(text: string): boolean {
  let marks = 0
  let openFence: string | undefined
  for (const line of text.split('\n')) {
    const fence = fenceOf(line)
    if (openFence !== undefined) {
      if (fence?.startsWith(openFence) && line.trim() === fence) openFence = undefined
      continue
    }
    openFence = fence
    if (line.trim() === '') marks = 0
    for (const character of line) if (MARKS.has(character)) marks++
    if (marks > MARKS_MAX || containersOf(line) > DEPTH_MAX) return true
  }
  return false
}

/** How many quotes and lists the line begins. The parser calls itself for each: 8,000 quote marks take 360 ms. */
function containersOf(line: string): number {
  let count = 0
  // Not global: each search begins at its own place, and a marker is short.
  const marker = /[ \t]{0,3}(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t]))/y
  while (count <= DEPTH_MAX && marker.test(line)) count++
  return count
}

/** Walks the tokens without recursion: the depth is what it measures. */
function isTooDeep(tokens: readonly Token[]): boolean {
  const open: { readonly token: Token; readonly depth: number }[] = tokens.map((token) => ({ token, depth: 1 }))
  for (let each = open.pop(); each !== undefined; each = open.pop()) {
    const { token, depth } = each
    if (depth > DEPTH_MAX) return true
    for (const child of childrenOf(token)) open.push({ token: child, depth: depth + 1 })
  }
  return false
}

function childrenOf(token: Token): readonly Token[] {
  if (token.type === 'list') return (token as Tokens.List).items.flatMap(({ tokens }) => tokens)
  if (token.type === 'table') {
    const { header, rows } = token as Tokens.Table
    return [header, ...rows].flatMap((row) => row.flatMap(({ tokens }) => tokens))
  }
  return 'tokens' in token ? (token.tokens ?? []) : []
}
