/**
 * Reads Markdown as blocks: fenced code, and text between it. The splitter and the converters of all channels use it, so
 * that they agree on what a fence is. It is more tolerant than CommonMark, because agents write fences inside lists and
 * quotes with any indentation. A line with an extreme indentation, marker or info string is no fence.
 */

/** A quote and list prefix of at most 40 characters, 3 to 20 marker characters, an info string of at most 100. */
const OPENER =
  /^(?=.{0,60}[`~]{3})([ \t>]{0,40}(?:(?:[-*+]|\d{1,9}[.)])[ \t]{1,8}){0,3})(`{3,20}|~{3,20})([^`~\n]{0,100})$/
/** No longer line can be a fence. */
const OPENER_CHARS_MAX = 300
const PREFIX_CHARS_MAX = 40
const HEADING = /^ {0,3}#{1,6}[ \t]/

export interface Fence {
  /** What stands before the marker in a continuation line: quote marks and spaces. */
  readonly prefix: string
  readonly marker: string
  readonly info: string
}

export type MarkdownBlock =
  | {
      readonly type: 'fence'
      readonly fence: Fence
      readonly opener: string
      readonly body: readonly string[]
      /** The closing line as written; an unclosed fence has none. */
      readonly closer: string
      readonly isClosed: boolean
    }
  | { readonly type: 'text'; readonly lines: readonly string[]; readonly isHeading: boolean }

/** Every line keeps its line break. A text block is a paragraph, a list or a table, with the blank lines after it. */
export function readBlocks(markdown: string): MarkdownBlock[] {
  const lines = markdown.match(/[^\n]*\n|[^\n]+$/g) ?? []
  const blocks: MarkdownBlock[] = []
  let index = 0
  while (index < lines.length) {
    const start = index
    const fence = openedFence(lines[index] ?? '')
    index = fence ? fenceEnd(lines, index + 1, fence) : textEnd(lines, index)
    const taken = lines.slice(start, index)
    if (fence) blocks.push(fenceBlock(taken, fence))
    else blocks.push({ type: 'text', lines: taken, isHeading: HEADING.test(taken[0] ?? '') })
  }
  return blocks
}

export function isFenceOpener(line: string): boolean {
  return openedFence(line) !== undefined
}

/** True for the line that closes the fence. */
export function isFenceEnd(line: string, { prefix, marker }: Fence): boolean {
  const content = prefix.includes('>') ? line.replace(/^[ \t>]*/, '') : line.trimStart()
  if (line.length - content.length > PREFIX_CHARS_MAX) return false
  const run = content.trimEnd()
  return run.length >= marker.length && run.length <= 20 && run === marker.charAt(0).repeat(run.length)
}

/** A line of code without the indentation of its fence. */
export function withoutIndent(line: string, characters: number): string {
  const indent = /^[ \t]*/.exec(line)?.[0].length ?? 0
  return line.slice(Math.min(indent, characters))
}

function openedFence(line: string): Fence | undefined {
  const text = line.trimEnd()
  const [, prefix = '', marker, info = ''] = text.length > OPENER_CHARS_MAX ? [] : (OPENER.exec(text) ?? [])
  return marker === undefined ? undefined : { prefix: prefix.replaceAll(/[^ \t>]/g, ' '), marker, info }
}

/** The index after the fence: after its closing line, at the end of the quote that it is in, or at the end of the text. */
function fenceEnd(lines: readonly string[], from: number, fence: Fence): number {
  const depth = quoteDepth(fence.prefix)
  for (let index = from; index < lines.length; index++) {
    const line = lines[index] ?? ''
    if (depth > 0 && quoteDepth(line) < depth) return index
    if (isFenceEnd(line, fence)) return index + 1
  }
  return lines.length
}

/** The index after the blank lines that end the text, or of the next heading or fence. */
function textEnd(lines: readonly string[], start: number): number {
  const isHeading = HEADING.test(lines[start] ?? '')
  let isBlank = isHeading || lines[start]?.trim() === ''
  for (let index = start + 1; index < lines.length; index++) {
    const line = lines[index] ?? ''
    if (isFenceOpener(line) || HEADING.test(line)) return index
    if (line.trim() === '') isBlank = true
    else if (isBlank) return index
  }
  return lines.length
}

function fenceBlock(lines: readonly string[], fence: Fence): MarkdownBlock {
  const [first = '', ...body] = lines
  const opener = `${first.trimEnd()}\n`
  const isClosed = body.length > 0 && isFenceEnd(body.at(-1) ?? '', fence)
  return {
    type: 'fence',
    fence,
    opener,
    body: isClosed ? body.slice(0, -1) : body,
    closer: isClosed ? (body.at(-1) ?? '') : '',
    isClosed,
  }
}

function quoteDepth(text: string): number {
  return (/^[ \t>]*/.exec(text)?.[0] ?? '').split('>').length - 1
}
