/** The parts of Markdown that need no page: which links are safe, and how a text that still grows is closed. */
import { fenceOf } from '../../../../src/markdown.ts'

const SAFE = ['http:', 'https:', 'mailto:']

/** The address of a link that may be opened; undefined for `javascript:`, for paths, and for text that is no address. */
export function safeLink(href: string): string | undefined {
  if (!URL.canParse(href)) return undefined
  const url = new URL(href)
  return SAFE.includes(url.protocol) ? url.href : undefined
}

/**
 * The text of an answer that still grows, so that what is shown does not jump when the next piece comes. A mark at the
 * end that may mean something else with the next character is held back (`-` under a line would make it a heading). A
 * code fence, inline code and bold text that are open are closed.
 */
export function settleStreaming(text: string): string {
  const closed = closeOpenFence(text)
  if (closed !== text) return closed
  const start = text.lastIndexOf('\n') + 1
  const line = text.slice(start)
  if (/^\s*([-+*=_#>|~`]{1,3}|\d{1,9}[.)]?)\s*$/.test(line)) return text.slice(0, start)
  return text.slice(0, start) + closeInline(line)
}

/** Closes code and bold text, and holds back a link whose address is not complete. */
function closeInline(line: string): string {
  const ticks = line.match(/`+/g) ?? []
  if (ticks.length % 2 === 1) return `${line}${ticks.at(-1)}`
  const withoutLink = withoutOpenLink(line)
  const words = withoutLink.replace(/(\s)\*{1,2}$/, '$1')
  const bold = words.replaceAll(/`[^`]*`/g, '').split('**').length - 1
  return bold % 2 === 1 ? `${words.replace(/\*$/, '')}**` : words
}

/** The line without the marks of a link that it ends in: `see [the do`, `see [the docs](htt`. The words stay. */
function withoutOpenLink(line: string): string {
  const lastParenthesis = line.lastIndexOf(')')
  let start = line.indexOf('[')
  while (start !== -1) {
    const close = line.indexOf(']', start)
    const hasOpenAddress = line[close + 1] === '(' && lastParenthesis < close
    if (close === -1 || close === line.length - 1 || hasOpenAddress) {
      const before = line.slice(0, line[start - 1] === '!' ? start - 1 : start)
      return before + line.slice(start + 1, close === -1 ? line.length : close)
    }
    start = line.indexOf('[', close)
  }
  return line
}

/** Closes a code fence that is still open, so that the text after it is not shown as plain text until it ends. */
export function closeOpenFence(text: string): string {
  let open: string | undefined
  for (const line of text.split('\n')) {
    const fence = fenceOf(line)
    if (fence === undefined) continue
    if (open === undefined) open = fence
    else if (fence.startsWith(open) && line.trim() === fence) open = undefined
  }
  return open === undefined ? text : `${text}\n${open}`
}

/** The beginning of a text, cut between words. A mark of a list that would stand alone at the end is left out. */
export function beginningOf(text: string, charactersMax: number): string {
  const start = text.slice(0, charactersMax)
  const lastWord = start.search(/\s\S*$/)
  const words = (lastWord > 0 ? start.slice(0, lastWord) : start).trimEnd()
  return `${words.replace(/\n *([-+*]|\d{1,9}[.)])$/, '').trimEnd()}…`
}
