/**
 * Markdown as Matrix shows it: the Markdown itself for clients that show plain text, and HTML made from a tree of tokens, so
 * that tags are closed in their order and every other character is escaped. Only tags of the specification are used.
 *
 * Invariant: an event with a rendered text, or with an edit to it, is smaller than the event limit of the service.
 */
import { parseMarkdown, type Token, type Tokens } from '../../markdown.ts'
import { readBlocks, withoutIndent } from '../chat/markdown/markdown-blocks.ts'
import { splitMarkdown } from '../chat/markdown/markdown-split.ts'

/** An event has at most 65,536 bytes with all that the homeservers add; a text of this length fits in every script. */
export const MATRIX_TEXT_CHARS_MAX = 6000
/** Of the text and its HTML as JSON. The rest is for relations, buttons, and what the servers add. */
const CONTENT_BYTES_MAX = 48 * 1024
/** A text of this length always fits. */
const SPLIT_CHARS_MIN = 500
/** In one paragraph: the parser is quadratic in these marks. A paragraph with more of them is shown as written. */
const EMPHASIS_MARKS_MAX = 400

/** The texts of a Markdown answer. */
export function renderMatrix(markdown: string): string[] {
  return splitToFit(markdown.replaceAll(/\r\n?/g, '\n').toWellFormed(), MATRIX_TEXT_CHARS_MAX)
}

/** Characters of other scripts and quotes take several bytes, so the bytes decide. */
function splitToFit(markdown: string, charactersMax: number): string[] {
  return splitMarkdown(markdown, charactersMax).flatMap((text) => {
    if (charactersMax <= SPLIT_CHARS_MIN || contentBytes(matrixText(text)) <= CONTENT_BYTES_MAX) return [text]
    return splitToFit(text, Math.max(SPLIT_CHARS_MIN, Math.floor(charactersMax / 2)))
  })
}

export interface MatrixText {
  readonly body: string
  readonly format?: 'org.matrix.custom.html'
  readonly formatted_body?: string
}

export const contentBytes = (content: object): number => Buffer.byteLength(JSON.stringify(content))

/** The fields of a message that show the Markdown. Without HTML where that would not fit, or would show nothing more. */
export function matrixText(markdown: string): MatrixText {
  const body = markdown.toWellFormed()
  const html = toMatrixHtml(body)
  const text = { body, format: 'org.matrix.custom.html', formatted_body: html } as const
  return html === escapeHtml(body) || contentBytes(text) > CONTENT_BYTES_MAX ? { body } : text
}

export function toMatrixHtml(markdown: string): string {
  const html = hasDenseMarks(markdown) ? blocksHtml(markdown) : parsedHtml(markdown)
  // A single paragraph needs no tag of its own.
  const only = html.startsWith('<p>') && html.endsWith('</p>') && html.indexOf('<p>', 1) === -1
  return only ? html.slice(3, -4) : html
}

function parsedHtml(markdown: string): string {
  const tokens = parseMarkdown(markdown)
  return tokens === undefined ? plainHtml(markdown) : tokens.map(blockHtml).join('')
}

const plainHtml = (text: string): string => {
  const shown = text.trim()
  return shown === '' ? '' : `<p>${linesHtml(shown)}</p>`
}

const linesHtml = (text: string): string => escapeHtml(text).replaceAll('\n', '<br>')

function hasDenseMarks(markdown: string): boolean {
  let marks = 0
  for (const line of markdown.split('\n')) {
    if (line.trim() === '') marks = 0
    for (const character of line) if (character === '*' || character === '_' || character === '~') marks++
    if (marks > EMPHASIS_MARKS_MAX) return true
  }
  return false
}

/** Block by block: only the paragraphs with too many marks are shown as written. */
function blocksHtml(markdown: string): string {
  return readBlocks(markdown)
    .map((block) => {
      if (block.type === 'text') {
        const text = block.lines.join('')
        return hasDenseMarks(text) ? plainHtml(text) : parsedHtml(text)
      }
      const { fence, body } = block
      const isQuote = fence.prefix.includes('>')
      const lines = body.map((line) =>
        isQuote ? line.replace(/^[ \t>]*/, '') : withoutIndent(line, fence.prefix.length),
      )
      return codeHtml(lines.join('').replace(/\n$/, ''), fence.info)
    })
    .join('')
}

function codeHtml(code: string, info = ''): string {
  const language = /^[\w+#.-]{1,40}/.exec(info.trim())?.[0]
  const open = language === undefined ? '<code>' : `<code class="language-${escapeHtml(language)}">`
  return `<pre>${open}${escapeHtml(code)}</code></pre>`
}

function blockHtml(token: Token): string {
  switch (token.type) {
    case 'space':
    case 'def':
      return ''
    case 'heading':
      return `<h${token['depth']}>${inlineHtml(token['tokens'])}</h${token['depth']}>`
    case 'paragraph':
      return `<p>${inlineHtml(token['tokens'])}</p>`
    case 'blockquote':
      return `<blockquote>${blocksOf(token['tokens'])}</blockquote>`
    case 'list':
      return listHtml(token as Tokens.List)
    case 'table':
      return tableHtml(token as Tokens.Table)
    case 'code':
      return codeHtml(token['text'], token['lang'] ?? '')
    case 'hr':
      return '<hr>'
    case 'text':
      return token['tokens'] === undefined ? linesHtml(token['text'] ?? token.raw) : inlineHtml(token['tokens'])
    default:
      return plainHtml(token.raw)
  }
}

const blocksOf = (tokens: readonly Token[] = []): string => tokens.map(blockHtml).join('')

function listHtml({ ordered, start, items }: Tokens.List): string {
  const tag = ordered ? 'ol' : 'ul'
  const from = ordered && typeof start === 'number' && start !== 1 ? ` start="${start}"` : ''
  const shown = items.map(({ task, checked, tokens }) => {
    const box = checked ? '☑ ' : '☐ '
    return `<li>${task ? box : ''}${blocksOf(tokens.filter(({ type }) => type !== 'checkbox'))}</li>`
  })
  return `<${tag}${from}>${shown.join('')}</${tag}>`
}

function tableHtml({ header, rows }: Tokens.Table): string {
  const row = (cells: readonly Tokens.TableCell[], tag: 'td' | 'th') =>
    `<tr>${cells.map(({ tokens }) => `<${tag}>${inlineHtml(tokens)}</${tag}>`).join('')}</tr>`
  const body = rows.map((cells) => row(cells, 'td')).join('')
  return `<table><thead>${row(header, 'th')}</thead><tbody>${body}</tbody></table>`
}

const inlineHtml = (tokens: readonly Token[] = []): string => tokens.map(tokenHtml).join('')

const INLINE_TAGS: Readonly<Record<string, string>> = { strong: 'strong', em: 'em', del: 'del' }

function tokenHtml(token: Token): string {
  switch (token.type) {
    case 'strong':
    case 'em':
    case 'del':
      return `<${INLINE_TAGS[token.type]}>${inlineHtml(token['tokens'])}</${INLINE_TAGS[token.type]}>`
    case 'codespan':
      return `<code>${escapeHtml(token['text'])}</code>`
    case 'escape':
      return escapeHtml(token['text'])
    case 'br':
      return '<br>'
    case 'link':
    case 'image':
      return linkHtml(token as Tokens.Link | Tokens.Image)
    case 'text':
      return token['tokens'] === undefined ? linesHtml(token.raw) : inlineHtml(token['tokens'])
    default:
      return linesHtml(token.raw)
  }
}

/** An image is a link: clients show only images of a homeserver. An address that no client opens is shown as text. */
function linkHtml({ raw, type, href, text, tokens }: Tokens.Link | Tokens.Image): string {
  const isWeb = /^(?:https?|mailto):\S+$/i.test(href)
  if (!isWeb) return linesHtml(raw)
  // A link cannot be in a link: of an image in a link only the name is shown.
  const label = tokens?.map((token) => (token.type === 'image' ? escapeHtml(token['text']) : tokenHtml(token))).join('')
  const shown = type === 'image' || text.trim() === '' ? escapeHtml(text.trim() === '' ? href : text) : (label ?? '')
  return `<a href="${escapeHtml(href)}">${shown}</a>`
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}
