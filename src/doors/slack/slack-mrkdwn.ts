/**
 * Markdown as Slack shows it: mrkdwn, which has one star for bold, links as `<address|name>`, no headings and no tables. Every
 * `&`, `<` and `>` of the text is escaped, so that no answer can ping a person or a channel (`<!channel>`, `<@U1>`).
 */
import { parseInline, type Token, type Tokens } from '../../markdown.ts'
import { type MarkdownBlock, readBlocks, withoutIndent } from '../chat/markdown/markdown-blocks.ts'
import { splitMarkdown } from '../chat/markdown/markdown-split.ts'
import { BACKTICK_LOOKALIKE, tablesAsCode, withoutFenceMarks } from '../chat/markdown/markdown-tables.ts'

/** The service recommends at most so many; it counts escaped characters. */
export const SLACK_TEXT_CHARS_MAX = 4000
/** Of Markdown: even if each character is escaped, its text fits into one message. */
const SURE_CHARACTERS = 700

/** The messages of a Markdown text, each valid alone. */
export function renderSlack(markdown: string): string[] {
  const normal = tablesAsCode(markdown.replaceAll(/\r\n?/g, '\n').toWellFormed())
  return renderWithin(normal, SLACK_TEXT_CHARS_MAX).filter((text) => /[\p{L}\p{N}\p{P}\p{S}]/u.test(text))
}

/** Escapes make a text longer: a part that would no longer fit is split once more, before it is read. */
function renderWithin(markdown: string, charactersMax: number): string[] {
  return splitMarkdown(markdown, charactersMax).flatMap((part) => {
    const isSure = charactersMax === SURE_CHARACTERS
    if (!isSure && escapeMrkdwn(part).length > SLACK_TEXT_CHARS_MAX) return renderWithin(part, SURE_CHARACTERS)
    const text = toMrkdwn(part)
    return isSure || text.length <= SLACK_TEXT_CHARS_MAX ? [text] : renderWithin(part, SURE_CHARACTERS)
  })
}

export function toMrkdwn(markdown: string): string {
  return readBlocks(markdown)
    .map((block) => (block.type === 'fence' ? fenceText(block) : paragraph(block.lines)))
    .join('')
    .trimEnd()
}

const escapeMrkdwn = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

function fenceText({ fence, opener, body }: MarkdownBlock & { readonly type: 'fence' }): string {
  const isQuote = fence.prefix.includes('>')
  const marker = opener
    .slice(0, fence.prefix.length)
    .replaceAll(/[>\s]+/g, ' ')
    .trim()
  const lines = body.map((line) => (isQuote ? line.replace(/^[ \t>]*/, '') : withoutIndent(line, fence.prefix.length)))
  const code = escapeMrkdwn(withoutFenceMarks(lines.join('').replace(/\n$/, '')))
  const item = marker === '' ? '' : `${escapeMrkdwn(marker)}\n`
  return code.trim() === '' ? item : `${item}\`\`\`\n${code}\n\`\`\`\n`
}

/** A heading is a line of its own; the other lines are read together. */
function paragraph(lines: readonly string[]): string {
  let text = ''
  let plain: string[] = []
  const flush = () => {
    text += inlineText(plain.map(plainLine).join(''))
    plain = []
  }
  for (const line of lines) {
    const title = headingOf(line)
    if (title === undefined) plain.push(line)
    else {
      flush()
      text += `*${inlineText(title)}*${line.endsWith('\n') ? '\n' : ''}`
    }
  }
  flush()
  return text
}

function headingOf(line: string): string | undefined {
  const start = /^ {0,3}#{1,6}[ \t]+(?=\S)/.exec(line)?.[0]
  if (start === undefined) return undefined
  const title = line
    .slice(start.length)
    .replaceAll(/\*\*|__/g, '')
    .trim()
  return title === '' ? undefined : title
}

/** Bullets, check boxes and rules as characters that no mark uses; a quote begins with one sign. */
function plainLine(line: string): string {
  if (/^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}\n?$/.test(line)) return line.endsWith('\n') ? '———\n' : '———'
  return withoutFenceMarks(line)
    .replace(/^ {0,3}>[ \t>]*/, QUOTE)
    .replace(/^([ \t]*)[-*+][ \t]+\[ \][ \t]+/, '$1☐ ')
    .replace(/^([ \t]*)[-*+][ \t]+\[[xX]\][ \t]+/, '$1☑ ')
    .replace(/^([ \t]*)[-*+][ \t]+/, '$1• ')
}

/** Stands for the sign of a quote until the text is escaped; no text has this character of the private area. */
const QUOTE = '\uE000'

/** A paragraph with very many marks is read line by line. */
function inlineText(text: string): string {
  const tokens = parseInline(text)
  const read =
    tokens === undefined
      ? text
          .split('\n')
          .map((line) => tokensText(parseInline(line) ?? [{ type: 'text', raw: line }]))
          .join('\n')
      : tokensText(tokens)
  return read.replaceAll(QUOTE, '> ')
}

const tokensText = (tokens: readonly Token[] = []): string => tokens.map(tokenText).join('')

const MARKS: Readonly<Record<string, string>> = { strong: '*', em: '_', del: '~' }

function tokenText(token: Token): string {
  switch (token.type) {
    case 'strong':
    case 'em':
    case 'del':
      return `${MARKS[token.type]}${tokensText(token['tokens'])}${MARKS[token.type]}`
    case 'codespan':
      return codeSpan(String(token['text']))
    case 'escape':
      // The service has no escape, so a backtick that is meant as one would begin code, and three of them a block.
      return token['text'] === '`' ? BACKTICK_LOOKALIKE : escapeMrkdwn(token['text'])
    case 'br':
      return '\n'
    case 'link':
    case 'image':
      return linkText(token as Tokens.Link | Tokens.Image)
    default:
      return escapeMrkdwn(token.raw)
  }
}

/** A span of the service ends at the first backtick, so code with backticks has three around it. */
function codeSpan(code: string): string {
  if (!code.includes('`')) return `\`${escapeMrkdwn(code)}\``
  return `\`\`\`${escapeMrkdwn(withoutFenceMarks(code))}${code.endsWith('`') ? ' ' : ''}\`\`\``
}

/** The service makes links of bare addresses itself. An address that it would not open is shown as text. */
function linkText({ raw, href, text }: Tokens.Link | Tokens.Image): string {
  const isWeb = /^https?:\/\/[^\s|<>]+$/i.test(href)
  if (href === '' || raw === text || (raw.startsWith('<') && !isWeb)) return escapeMrkdwn(raw)
  const label = escapeMrkdwn(text.replaceAll(/[\n|]/g, ' ').trim())
  const address = escapeMrkdwn(href)
  if (!isWeb) return label === '' ? address : `${label} (${address})`
  return label === '' || label === address ? `<${address}>` : `<${address}|${label}>`
}
