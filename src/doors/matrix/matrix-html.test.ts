import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { parseMatrixHtml } from '../../../test/fakes/matrix/html.ts'
import { arbitraryMarkdown } from '../../../test/generators/markdown.ts'
import { editContent } from './matrix-content.ts'
import { contentBytes, MATRIX_TEXT_CHARS_MAX, matrixText, renderMatrix, toMatrixHtml } from './matrix-html.ts'

const RUNS = 200
/** Of an event, less what a homeserver adds to it. */
const EVENT_BYTES_MAX = 65_536 - 3000

test('GW-18 every part of an arbitrary answer is HTML that Matrix allows, visible, and within the size of an event', () => {
  fc.assert(
    fc.property(fc.oneof(arbitraryMarkdown, fc.string({ unit: 'binary' })), (markdown) => {
      for (const text of renderMatrix(markdown)) {
        assert(text.trim() !== '' && text.length <= MATRIX_TEXT_CHARS_MAX)
        parseMatrixHtml(matrixText(text).formatted_body ?? '')
        assert(contentBytes(matrixText(text)) < EVENT_BYTES_MAX)
        assert(contentBytes(editContent('$event', text)) < EVENT_BYTES_MAX)
      }
    }),
    { numRuns: RUNS },
  )
})

test('GW-18 a text of characters that take many bytes is split by its bytes', () => {
  for (const unit of ['漢', '"', '\u0001', '😀', '&', '<b>']) {
    const parts = renderMatrix(unit.repeat(20_000))
    assert(parts.length > 1)
    for (const text of parts) assert(contentBytes(editContent('$event', text)) < EVENT_BYTES_MAX, unit)
    assert.equal(parts.join(''), unit.repeat(20_000))
  }
})

test('GW-18 no letter or digit of an answer is lost', () => {
  const letters = (text: string) => text.replaceAll(/[^\p{L}\p{N}]/gu, '')
  const word = fc.constantFrom(
    ...['**a1**', '_b2_', '***c3***', '`d4`', '~~e5~~', 'f6', 'snake_case_h8', '<i9>', '&j0;', '**', '_', '\\*'],
  )
  fc.assert(
    fc.property(fc.array(word), (words) => {
      const markdown = words.join(' ')
      assert.equal(letters(parseMatrixHtml(toMatrixHtml(markdown))), letters(markdown))
    }),
    { numRuns: RUNS },
  )
})

test('GW-18 Markdown becomes the HTML that Matrix shows', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['**bold** and *it* and ~~no~~', '<strong>bold</strong> and <em>it</em> and <del>no</del>'],
    ['a\nb', 'a<br>b'],
    ['one\n\ntwo', '<p>one</p><p>two</p>'],
    ['# A **title**\ntext', '<h1>A <strong>title</strong></h1><p>text</p>'],
    ['- one\n- [x] two\n  - three', '<ul><li>one</li><li>☑ two<ul><li>three</li></ul></li></ul>'],
    ['3. c\n4. d', '<ol start="3"><li>c</li><li>d</li></ol>'],
    ['> a\n> *b*', '<blockquote><p>a<br><em>b</em></p></blockquote>'],
    ['`a < b && "c"`', '<code>a &lt; b &amp;&amp; &quot;c&quot;</code>'],
    ['[x **y**](https://e.org/?a=1&b=2)', '<a href="https://e.org/?a=1&amp;b=2">x <strong>y</strong></a>'],
    [
      '[x](javascript:alert(1)) ![](https://e.org/a.png)',
      '[x](javascript:alert(1)) <a href="https://e.org/a.png">https://e.org/a.png</a>',
    ],
    ['[![pic](https://e.org/a.png)](https://e.org)', '<a href="https://e.org">pic</a>'],
    ['<b onclick="x">hi</b> @room', '&lt;b onclick=&quot;x&quot;&gt;hi&lt;/b&gt; @room'],
    ['```ts\nif (a < b) {}\n```\nend', '<pre><code class="language-ts">if (a &lt; b) {}</code></pre><p>end</p>'],
    [
      '|a|b|\n|-|-|\n|1|2|',
      '<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr></tbody></table>',
    ],
    ['---', '<hr>'],
  ]
  for (const [markdown, html] of cases) assert.equal(toMatrixHtml(markdown), html)
  assert.deepEqual(matrixText('plain & simple'), { body: 'plain & simple' })
})

test('GW-18 a paragraph with very many marks is shown as written, and the others are not', () => {
  const dense = '_*a'.repeat(300)
  assert.equal(
    toMatrixHtml(`**x**\n\n${dense}\n\n\`\`\`js\n1 < 2\n\`\`\``),
    `<p><strong>x</strong></p><p>${dense}</p><pre><code class="language-js">1 &lt; 2</code></pre>`,
  )
})

test('GW-18 the fake refuses the HTML that Matrix does not allow', () => {
  for (const html of [
    '<b>x',
    '</b>',
    '<b><i>x</b></i>',
    '<script>x</script>',
    '<p onclick="x">a</p>',
    '<a href="javascript:x">a</a>',
    'a & b',
    'a < b',
  ])
    assert.throws(() => parseMatrixHtml(html), html)
})
