/** Markdown as agents write it, and worse: fences of all kinds, nested and unclosed, long lines, tables, surrogate pairs. */
import fc from 'fast-check'

const inline = fc.stringMatching(/^[a-zA-Z0-9 .,:;*_~`|<>&"'()[\]{}!#/\\@-]{0,60}$/)
const unicode = fc.string({ unit: 'grapheme', maxLength: 40 })
const word = fc.oneof(
  inline,
  unicode,
  fc.constantFrom(
    '**bold**',
    '_it_',
    '~~no~~',
    '||hidden||',
    '`code`',
    '[a](https://e.org/?a=1&b="2")',
    '<b>',
    '&amp;',
    '😀',
  ),
)
const sentence = fc.array(word, { minLength: 1, maxLength: 8 }).map((words) => words.join(' '))
const longLine = fc
  .tuple(
    fc.constantFrom('x', '😀', '`', '~', 'ab ', '>', '&', '<', '*', ' ', '```', 'a```b'),
    fc.integer({ min: 1, max: 3000 }),
  )
  .map(([unit, count]) => unit.repeat(count))
const line = fc.oneof({ weight: 6, arbitrary: sentence }, { weight: 1, arbitrary: longLine })

const marker = fc.constantFrom('```', '````', '~~~', '`````')
const fence = fc
  .record({
    marker,
    info: fc.constantFrom('', 'js', 'c++', 'python title="a b"', 'md'),
    prefix: fc.constantFrom('', '  ', '> ', '    ', '> > '),
    lines: fc.array(fc.oneof(line, fc.constantFrom('```', '```js', '~~~', '', '    ```', '> ```')), { maxLength: 60 }),
    isClosed: fc.boolean(),
  })
  .map(({ marker: mark, info, prefix, lines, isClosed }) =>
    [`${mark}${info}`, ...lines, ...(isClosed ? [mark] : [])].map((text) => prefix + text).join('\n'),
  )
const table = fc
  .array(fc.array(inline, { minLength: 2, maxLength: 3 }), { minLength: 1, maxLength: 30 })
  .map((rows) => ['| a | b |', '|---|:-:|', ...rows.map((cells) => `| ${cells.join(' | ')} |`)].join('\n'))
const list = fc
  .array(fc.tuple(fc.constantFrom('- ', '* ', '1. ', '  - ', '- [ ] ', '- [x] ', '- ```js', '1. ```'), line), {
    maxLength: 20,
  })
  .map((items) => items.map(([bullet, text]) => bullet + text).join('\n'))
const quote = fc.array(line, { minLength: 1, maxLength: 5 }).map((lines) => lines.map((text) => `> ${text}`).join('\n'))
const heading = fc
  .tuple(fc.integer({ min: 1, max: 7 }), sentence)
  .map(([level, text]) => `${'#'.repeat(level)} ${text}`)
const noise = fc.string({
  unit: fc.constantFrom('`', '~', '>', '\n', ' ', 'a', '#', '*', '_', '-', '\t', '|', '😀'),
  maxLength: 300,
})

const block = fc.oneof(
  { weight: 4, arbitrary: line },
  { weight: 4, arbitrary: fence },
  table,
  list,
  quote,
  heading,
  noise,
  fc.constant('---'),
)

/** Whole answers: a few blocks, with one or two line breaks between them. */
export const arbitraryMarkdown = fc
  .array(fc.tuple(block, fc.constantFrom('\n', '\n\n', '\r\n', '\n\n\n')), { maxLength: 12 })
  .map((blocks) => blocks.map(([text, gap]) => text + gap).join(''))
