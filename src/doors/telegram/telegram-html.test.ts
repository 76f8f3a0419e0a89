import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseTelegramHtml } from '../../../test/fakes/telegram/html.ts'
import { arbitraryMarkdown } from '../../../test/generators/markdown.ts'
import { splitMarkdown } from '../chat/markdown/markdown-split.ts'
import { renderTelegram, TELEGRAM_TEXT_CHARS_MAX, toTelegramHtml } from './telegram-html.ts'

const RUNS = 200

test('GW-11 every part of an arbitrary answer is valid HTML for Telegram, visible, and within the limit', () => {
  fc.assert(
    fc.property(fc.oneof(arbitraryMarkdown, fc.string({ unit: 'binary' })), (markdown) => {
      for (const html of renderTelegram(markdown)) {
        const { text } = parseTelegramHtml(html)
        assert(text.trim() !== '' && text.length <= TELEGRAM_TEXT_CHARS_MAX)
      }
    }),
    { numRuns: RUNS },
  )
})

test('GW-15 a text that is cut anywhere, below the state of its turn, is valid HTML', () => {
  fc.assert(
    fc.property(arbitraryMarkdown, fc.nat(), (markdown, at) => {
      const text = `Working for 4s · 1 tool: Bash\n\n${markdown.slice(0, at % (markdown.length + 1))}`
      const [shown = ''] = renderTelegram(text)
      assert.ok(parseTelegramHtml(shown).text.startsWith('Working for 4s'))
    }),
    { numRuns: RUNS },
  )
})

test('GW-11 the HTML is valid for every split, and no text is longer than its Markdown', () => {
  fc.assert(
    fc.property(arbitraryMarkdown, fc.integer({ min: 500, max: 1500 }), (markdown, limit) => {
      for (const part of splitMarkdown(markdown, limit)) {
        assert(parseTelegramHtml(toTelegramHtml(part)).text.length <= part.length)
      }
    }),
    { numRuns: RUNS },
  )
})

test('GW-11 no letter or digit of an answer is lost', () => {
  const letters = (text: string) => text.replaceAll(/[^\p{L}\p{N}]/gu, '')
  const word = fc.constantFrom(
    '**a1**',
    '_b2_',
    '***c3***',
    '`d4`',
    '~~e5~~',
    'f6',
    '* g7',
    'snake_case_h8',
    '<i9>',
    '&j0;',
    '**',
    '_',
    '\\*',
  )
  fc.assert(
    fc.property(fc.array(word), (words) => {
      const markdown = words.join(' ')
      assert.equal(letters(parseTelegramHtml(toTelegramHtml(markdown)).text), letters(markdown))
    }),
    { numRuns: RUNS },
  )
})

test('GW-11 Markdown becomes the HTML that Telegram shows', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['**bold** and *it* and ~~no~~', '<b>bold</b> and <i>it</i> and <s>no</s>'],
    ['***both***', '<i><b>both</b></i>'],
    ['**a *b* c**', '<b>a <i>b</i> c</b>'],
    ['snake_case_name 2 * 3 * 4', 'snake_case_name 2 * 3 * 4'],
    ['# A **title**\ntext', '<b>A title</b>\ntext'],
    ['- one\n* two\n  + [x] three', '• one\n• two\n  ☑ three'],
    ['> a\n> *b*\nc', '<blockquote>a\n<i>b</i></blockquote>\nc'],
    ['`a < b && "c"`', '<code>a &lt; b &amp;&amp; &quot;c&quot;</code>'],
    ['``a`b``', '<code>a`b</code>'],
    ['[x **y**](https://e.org/?a=1&b=2 "t")', '<a href="https://e.org/?a=1&amp;b=2">x <b>y</b></a>'],
    [
      '[x](file:///etc) ![](https://e.org/a.png)',
      'x (file:///etc) <a href="https://e.org/a.png">https://e.org/a.png</a>',
    ],
    ['[![pic](https://e.org/a.png)](https://e.org)', '<a href="https://e.org">pic</a>'],
    ['[x]() <me@e.org> www.e.org', '[x]() &lt;me@e.org&gt; www.e.org'],
    ['a  \nb\\\nc', 'a\nb\nc'],
    ['<https://e.org> <b>x</b>', '<a href="https://e.org">https://e.org</a> &lt;b&gt;x&lt;/b&gt;'],
    ['```ts\nif (a < b) {}\n```\nend', '<pre><code class="language-ts">if (a &lt; b) {}</code></pre>\nend'],
    ['1. Do\n   ```\n   ls\n   ```', '1. Do\n<pre>ls</pre>'],
    ['\\*not\\* 1\\. ', '*not* 1.'],
    ['---', '———'],
  ]
  for (const [markdown, html] of cases) assert.equal(toTelegramHtml(markdown), html)
  assert.deepEqual(renderTelegram('| a | b |\n|---|---|\n| 1 | 2 |'), ['<pre>a | b\n--|--\n1 | 2</pre>'])
  assert.deepEqual(renderTelegram(' \n```\n\n```\n'), [])
})

test('GW-11 a paragraph with very many marks is read line by line, and a line with as many is text', () => {
  const line = '**a** '.repeat(90).trim()
  assert.equal(toTelegramHtml(`${line}\n${line}`), `${line}\n${line}`.replaceAll('**a**', '<b>a</b>'))
  const long = '**a** '.repeat(101).trim()
  assert.equal(toTelegramHtml(`${long}\n**b**`), `${long}\n<b>b</b>`)
})

test('GW-11 the fake refuses the HTML that Telegram refuses', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['<b>x', `Can't find end tag corresponding to start tag "b"`],
    ['ä<x>', 'Unsupported start tag "x" at byte offset 2'],
    ['a < b', 'Unsupported start tag "" at byte offset 2'],
    ['<b><i>x</b></i>', 'Unmatched end tag at byte offset 7, expected "</i>", found "</b>"'],
    ['x</b>', 'Unexpected end tag at byte offset 1'],
    ['<b', 'Unclosed start tag at byte offset 0'],
    ['<a href>x</a>', 'Expected equal sign in declaration of an attribute of the tag "a" at byte offset 0'],
  ]
  for (const [html, message] of cases) assert.throws(() => parseTelegramHtml(html), { message })
})
