/**
 * Markdown as Telegram HTML. The tags come from a tree of blocks and a stack of open marks, so that they are always closed
 * in their order, and every other character is escaped: the service refuses a message with one wrong tag.
 *
 * Invariant: the visible text is not longer than the Markdown.
 */
import { type MarkdownBlock, readBlocks, withoutIndent } from '../chat/markdown-blocks.ts'
import { splitMarkdown } from '../chat/markdown-split.ts'
import { tablesAsCode } from '../chat/markdown-tables.ts'

/** The service counts the visible text. */
export const TELEGRAM_TEXT_CHARS_MAX = 4096
const LABEL_DEPTH_MAX = 2
const LINK =
  /^!?\[([^[\]\n]{0,500})\]\(\s{0,3}<?([^\s()<>]{1,2000}(?:\([^\s()<>]{0,200}\)[^\s()<>]{0,200})?)>?(?:\s{1,3}"[^"\n]{0,200}")?\s{0,3}\)/
const AUTOLINK = /^<(https?:\/\/[^\s<>]{1,2000})>/
const TAGS: Readonly<Record<string, string>> = { '**': 'b', __: 'b', '*': 'i', _: 'i', '~~': 's' }

/** The messages of a Markdown text, each valid alone. */
export function renderTelegram(markdown: string): string[] {
  const normal = markdown.replaceAll(/\r\n?/g, '\n').toWellFormed()
  return splitMarkdown(tablesAsCode(normal), TELEGRAM_TEXT_CHARS_MAX).map(toTelegramHtml).filter(isVisible)
}

export function toTelegramHtml(markdown: string): string {
  return readBlocks(markdown)
    .map((block) => (block.type === 'fence' ? fenceHtml(block) : textHtml(block.lines)))
    .join('')
    .trimEnd()
}

/** The service refuses a message that shows nothing. */
function isVisible(html: string): boolean {
  const isText = (piece: string) => /[\p{L}\p{N}\p{P}\p{S}]/u.test(piece.slice(piece.indexOf('>') + 1))
  return html.split('<').some(isText)
}

function fenceHtml({ fence, opener, body }: MarkdownBlock & { readonly type: 'fence' }): string {
  const isQuote = fence.prefix.includes('>')
  const marker = opener
    .slice(0, fence.prefix.length)
    .replaceAll(/[>\s]+/g, ' ')
    .trim()
  const lines = body.map((line) => (isQuote ? line.replace(/^[ \t>]*/, '') : withoutIndent(line, fence.prefix.length)))
  const code = escapeHtml(lines.join('').replace(/\n$/, ''))
  const language = /^[\w+#.-]+/.exec(fence.info.trim())?.[0]
  const item = marker === '' ? '' : `${escapeHtml(marker)}\n`
  if (code.trim() === '') return item
  return `${item}<pre>${language === undefined ? code : `<code class="language-${language}">${code}</code>`}</pre>\n`
}

/** Lines of one paragraph: quotes become one quote, headings bold, and the rest is read together. */
function textHtml(lines: readonly string[]): string {
  let html = ''
  for (let index = 0; index < lines.length; ) {
    const kind = lineKind(lines[index] ?? '')
    let end = index + 1
    while (kind !== 'heading' && end < lines.length && lineKind(lines[end] ?? '') === kind) end++
    html += groupHtml(kind, lines.slice(index, end))
    index = end
  }
  return html
}

function lineKind(line: string): 'quote' | 'heading' | 'plain' {
  if (/^ {0,3}>/.test(line)) return 'quote'
  return /^ {0,3}#{1,6}[ \t]+\S/.test(line) ? 'heading' : 'plain'
}

function groupHtml(kind: 'quote' | 'heading' | 'plain', lines: readonly string[]): string {
  const text = lines.join('')
  const content = text.trimEnd()
  const gap = text.slice(content.length)
  if (kind === 'heading') {
    const title = content.replace(/^ {0,3}#{1,6}[ \t]+/, '').replaceAll(/\*\*|__/g, '')
    return `<b>${inlineHtml(title, 0)}</b>${gap}`
  }
  if (content.trim() === '') return gap
  if (kind === 'plain') return `${inlineHtml(content.split('\n').map(plainLine).join('\n'), 0)}${gap}`
  const quoted = content.replaceAll(/^[ \t>]+/gm, '').trim()
  return quoted === '' ? gap : `<blockquote>${inlineHtml(quoted, 0)}</blockquote>${gap}`
}

/** Bullets, check boxes and rules as characters that no mark of Markdown uses. */
function plainLine(line: string): string {
  if (/^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/.test(line)) return '———'
  return line
    .replace(/^([ \t]*)[-*+][ \t]+\[ \][ \t]+/, '$1☐ ')
    .replace(/^([ \t]*)[-*+][ \t]+\[[xX]\][ \t]+/, '$1☑ ')
    .replace(/^([ \t]*)[-*+][ \t]+/, '$1• ')
}

interface OpenMark {
  readonly mark: string
  readonly index: number
}

/** Marks, code spans and links of a paragraph. A mark without its partner stays as text. */
function inlineHtml(text: string, depth: number): string {
  const out: string[] = []
  const open: OpenMark[] = []
  const unclosed = new Set<number>()
  for (let index = 0; index < text.length; ) {
    const rest = text.slice(index)
    const span = readSpan(rest, { depth, unclosed })
    if (span) {
      out.push(span.html)
      index += span.length
      continue
    }
    const [run] = /^(?:\*+|_+|~+)/.exec(rest) ?? []
    if (run === undefined) {
      const character = String.fromCodePoint(rest.codePointAt(0) ?? 0)
      out.push(escapeHtml(character))
      index += character.length
    } else {
      addMarks(run, { before: text.charAt(index - 1), after: text.charAt(index + run.length), out, open })
      index += run.length
    }
  }
  return out.join('')
}

/** An escaped character, a code span, or a link at the beginning of the text. */
function readSpan(
  rest: string,
  { depth, unclosed }: { readonly depth: number; readonly unclosed: Set<number> },
): { readonly html: string; readonly length: number } | undefined {
  const [escaped, character] = /^\\([!-/:-@[-`{-~])/.exec(rest) ?? []
  if (escaped !== undefined) return { html: escapeHtml(character ?? ''), length: 2 }
  const [ticks] = /^`+/.exec(rest) ?? []
  if (ticks !== undefined) return codeSpan(rest, ticks, unclosed)
  const [auto, address] = AUTOLINK.exec(rest) ?? []
  if (auto !== undefined) return { html: linkHtml(escapeHtml(address ?? ''), address ?? ''), length: auto.length }
  const [link, label = '', url = ''] = depth < LABEL_DEPTH_MAX ? (LINK.exec(rest) ?? []) : []
  if (link === undefined) return undefined
  const shown = label.trim() === '' ? escapeHtml(url) : inlineHtml(label, LABEL_DEPTH_MAX)
  const isWeb = /^https?:\/\/[^\s]+$/i.test(url)
  return { html: isWeb ? linkHtml(shown, url) : withUrl(shown, label, url), length: link.length }
}

function withUrl(shown: string, label: string, url: string): string {
  return label.trim() === '' ? shown : `${shown} (${escapeHtml(url)})`
}

function linkHtml(shown: string, url: string): string {
  return `<a href="${escapeHtml(url)}">${shown}</a>`
}

/** `unclosed`: lengths of runs that have no partner in the rest of the text, so that it is searched once for each. */
function codeSpan(
  rest: string,
  ticks: string,
  unclosed: Set<number>,
): { readonly html: string; readonly length: number } {
  const plain = { html: ticks, length: ticks.length }
  if (unclosed.has(ticks.length)) return plain
  for (const { 0: run, index } of rest.matchAll(/`+/g)) {
    if (index === 0 || run.length !== ticks.length) continue
    const content = rest.slice(ticks.length, index)
    const isPadded = content.startsWith(' ') && content.endsWith(' ') && content.trim() !== ''
    const code = isPadded ? content.slice(1, -1) : content
    return { html: `<code>${escapeHtml(code)}</code>`, length: index + run.length }
  }
  unclosed.add(ticks.length)
  return plain
}

/** Closes open marks with the run first, from the innermost on, then opens new ones with the rest of it. */
function addMarks(
  run: string,
  { before, after, out, open }: { before: string; after: string; out: string[]; open: OpenMark[] },
): void {
  const isWord = (character: string) => /[\p{L}\p{N}]/u.test(character)
  const isUnderscore = run.startsWith('_')
  let left = run
  while (left !== '' && /\S/.test(before) && !(isUnderscore && isWord(after))) {
    const closable = open.filter(({ index }) => index < out.length - 1)
    const partner =
      closable.findLast(({ mark }) => mark === left) ?? closable.findLast(({ mark }) => left.startsWith(mark))
    if (partner === undefined) break
    out[partner.index] = `<${TAGS[partner.mark]}>`
    out.push(`</${TAGS[partner.mark]}>`)
    open.splice(open.indexOf(partner))
    left = left.slice(partner.mark.length)
  }
  const canOpen = /\S/.test(after) && !(isUnderscore && isWord(before))
  while (left !== '') {
    const mark = canOpen ? [left.slice(0, 2), left.slice(0, 1)].find((part) => TAGS[part] !== undefined) : undefined
    if (mark !== undefined) open.push({ mark, index: out.length })
    out.push(mark ?? left)
    left = mark === undefined ? '' : left.slice(mark.length)
  }
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
