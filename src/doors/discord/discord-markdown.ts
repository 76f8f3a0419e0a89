/**
 * Markdown as Discord shows it. Discord knows one kind of fence, and it opens a code block at every ``` even inside a line;
 * it shows no tables, no images and no headings below the third level.
 */
import { type MarkdownBlock, readBlocks, withoutIndent } from '../chat/markdown-blocks.ts'
import { splitMarkdown } from '../chat/markdown-split.ts'
import { tablesAsCode, withoutFenceMarks } from '../chat/markdown-tables.ts'

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
  const text = withoutFenceMarks(line).replaceAll(/!(\[[^\]\n]*\]\([^)\n]+\))/g, '$1')
  const [, heading] = /^ {0,3}#{4,6}[ \t]+(.+)$/m.exec(text) ?? []
  return heading === undefined ? text : `**${heading.replaceAll('**', '').trim()}**\n`
}
