/**
 * Markdown as Telegram HTML. The tags come from a tree of tokens, so that they are always closed in their order, and every
 * other character is escaped: the service refuses a message with one wrong tag.
 *
 * Invariant: the visible text is not longer than the Markdown.
 */
import { parseInline, type Token, type Tokens } from '../../markdown.ts'
import { type MarkdownBlock, readBlocks, withoutIndent } from '../chat/markdown/markdown-blocks.ts'
import { splitMarkdown } from '../chat/markdown/markdown-split.ts'
import { tablesAsCode } from '../chat/markdown/markdown-tables.ts'

/** The service counts the visible text. */
export const TELEGRAM_TEXT_CHARS_MAX = 4096

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
    return `<b>${inlineHtml(title)}</b>${gap}`
  }
  if (content.trim() === '') return gap
  if (kind === 'plain') return `${inlineHtml(content.split('\n').map(plainLine).join('\n'))}${gap}`
  const quoted = content.replaceAll(/^[ \t>]+/gm, '').trim()
  return quoted === '' ? gap : `<blockquote>${inlineHtml(quoted)}</blockquote>${gap}`
}

/** Bullets, check boxes and rules as characters that no mark of Markdown uses. */
function plainLine(line: string): string {
  if (/^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/.test(line)) return '———'
  return line
    .replace(/^([ \t]*)[-*+][ \t]+\[ \][ \t]+/, '$1☐ ')
    .replace(/^([ \t]*)[-*+][ \t]+\[[xX]\][ \t]+/, '$1☑ ')
    .replace(/^([ \t]*)[-*+][ \t]+/, '$1• ')
}

/** A paragraph with very many marks is read line by line. */
function inlineHtml(text: string): string {
  const tokens = parseInline(text)
  if (tokens !== undefined) return tokensHtml(tokens)
  return text
    .split('\n')
    .map((line) => tokensHtml(parseInline(line) ?? [{ type: 'text', raw: line }]))
    .join('\n')
}

const tokensHtml = (tokens: readonly Token[] = []): string => tokens.map(tokenHtml).join('')

const TAGS: Readonly<Record<string, string>> = { strong: 'b', em: 'i', del: 's' }

function tokenHtml(token: Token): string {
  switch (token.type) {
    case 'strong':
    case 'em':
    case 'del':
      return `<${TAGS[token.type]}>${tokensHtml(token['tokens'])}</${TAGS[token.type]}>`
    case 'codespan':
      return `<code>${escapeHtml(token['text'])}</code>`
    case 'escape':
      return escapeHtml(token['text'])
    case 'br':
      return '\n'
    case 'link':
    case 'image':
      return linkHtml(token as Tokens.Link | Tokens.Image)
    default:
      return escapeHtml(token.raw)
  }
}

/** The service makes links of bare addresses itself. An address that it would not open is shown as text. */
function linkHtml({ raw, href, text, tokens }: Tokens.Link | Tokens.Image): string {
  const isWeb = /^https?:\/\/\S+$/i.test(href)
  if (href === '' || raw === text || (raw.startsWith('<') && !isWeb)) return escapeHtml(raw)
  // A link cannot be in a link: of an image in a link only the name is shown.
  const label = tokens?.map((token) => (token.type === 'image' ? escapeHtml(token['text']) : tokenHtml(token))).join('')
  const shown = label ?? escapeHtml(text)
  if (text.trim() === '') return isWeb ? `<a href="${escapeHtml(href)}">${escapeHtml(href)}</a>` : escapeHtml(href)
  return isWeb ? `<a href="${escapeHtml(href)}">${shown}</a>` : `${shown} (${escapeHtml(href)})`
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
