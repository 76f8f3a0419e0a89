/**
 * Markdown as Discord shows it. Discord knows one kind of fence, and it opens a code block at every ``` even inside a line;
 * it shows no tables, no images and no headings below the third level.
 */
import { type MarkdownBlock, readBlocks, withoutIndent } from '../chat/markdown/markdown-blocks.ts'
import { splitMarkdown } from '../chat/markdown/markdown-split.ts'
import { tablesAsCode, withoutFenceMarks } from '../chat/markdown/markdown-tables.ts'

export const DISCORD_TEXT_CHARS_MAX = 2000

/** The messages of a Markdown text. */
export function renderDiscord(markdown: string): string[] {
  const normal = markdown.replaceAll(/\r\n?/g, '\n').toWellFormed()
  const text = readBlocks(tablesAsCode(normal))
    .map((block) => (block.type === 'fence' ? fenceText(block) : block.lines.map(lineText).join('')))
    .join('')
  return splitMarkdown(text, DISCORD_TEXT_CHARS_MAX)
}

function fenceText({ fence, opener, body }: MarkdownBlock & { readonly type: 'fence' }): string {
  const isQuote = fence.prefix.includes('>')
  const prefix = isQuote ? fence.prefix : ''
  // Discord shows an empty code block as six backticks.
  if (body.every((line) => line.replace(/^[ \t>]*/, '').trim() === '')) return ''
  const language = /^[\w+#.-]+/.exec(fence.info.trim())?.[0] ?? ''
  const marker = opener.slice(0, fence.prefix.length).trimEnd()
  const item = !isQuote && marker !== '' ? `${marker}\n` : ''
  const code = body.map((line) => withoutFenceMarks(isQuote ? line : withoutIndent(line, fence.prefix.length))).join('')
  return `${item}${prefix}\`\`\`${language}\n${code}${code.endsWith('\n') ? '' : '\n'}${prefix}\`\`\`\n`
}

function lineText(line: string): string {
  const text = imagesAsLinks(withoutFenceMarks(line))
  const [, heading] = /^ {0,3}#{4,6}[ \t]+(.+)$/m.exec(text) ?? []
  return heading === undefined ? text : `**${heading.replaceAll('**', '').trim()}**\n`
}

/** `![name](address)` without its `!`. Counts: each search goes on where the last one ended. */
function imagesAsLinks(line: string): string {
  let out = ''
  let from = 0
  let start = line.indexOf('![')
  while (start !== -1) {
    const close = line.indexOf(']', start)
    if (close === -1) break
    const isLink = line[close + 1] === '('
    const end = isLink ? line.indexOf(')', close) : close
    if (end === -1) break
    if (end > close + 2) {
      out += line.slice(from, start)
      from = start + 1
    }
    start = line.indexOf('![', end)
  }
  return out + line.slice(from)
}
