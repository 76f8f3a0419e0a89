import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { arbitraryMarkdown } from '../../../test/generators/markdown.ts'
import { readable } from './slack-messages.ts'
import { renderSlack, SLACK_TEXT_CHARS_MAX, toMrkdwn } from './slack-mrkdwn.ts'

const RUNS = 200

/** The signs of a text that is sent: each must be a link, because Slack reads all others as mentions and commands. */
function signsOf(text: string): string[] {
  return [...text.matchAll(/<[^<>]*>/g)].map(([sign]) => sign)
}

test('GW-18 every message of an arbitrary answer is visible, within the limit, closes its code, and pings no one', () => {
  const pings = fc.constantFrom(
    '<!channel>',
    '<!here|here>',
    '<@U0ADA>',
    '<#C1|general>',
    '<!subteam^S1>',
    '`<!channel>`',
  )
  const hostile = fc.array(fc.oneof(pings, fc.string({ unit: 'binary', maxLength: 20 })), { maxLength: 200 })
  const markdown = fc.oneof(
    arbitraryMarkdown,
    fc.string({ unit: 'binary' }),
    hostile.map((parts) => parts.join(' ')),
    fc.string({ minLength: 3000, maxLength: 9000, unit: fc.constantFrom('&', '<', '>', 'a', '\n') }),
  )
  fc.assert(
    fc.property(markdown, (given) => {
      for (const text of renderSlack(given)) {
        assert(text.trim() !== '' && text.length <= SLACK_TEXT_CHARS_MAX)
        assert.equal((text.match(/```/g) ?? []).length % 2, 0)
        for (const sign of signsOf(text)) assert.match(sign, /^<https?:\/\/[^\s|<>]+(?:\|[^|<>]+)?>$/)
        const bare = text.replaceAll(/<[^<>]*>/g, '').replaceAll(/&(?:amp|lt|gt);/g, '')
        assert.doesNotMatch(bare, /[&<]/)
      }
    }),
    { numRuns: RUNS },
  )
})

test('GW-18 no letter or digit of an answer is lost', () => {
  const letters = (text: string) => text.replaceAll(/[^\p{L}\p{N}]/gu, '')
  const word = fc.constantFrom(
    ...[
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
    ],
  )
  fc.assert(
    fc.property(fc.array(word), (words) => {
      const markdown = words.join(' ')
      assert.equal(letters(readable(toMrkdwn(markdown))), letters(markdown))
    }),
    { numRuns: RUNS },
  )
})

test('GW-18 Markdown becomes what Slack shows', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['**bold** and *it* and ~~no~~', '*bold* and _it_ and ~no~'],
    ['``echo `date` `` and `ls`', '```echo `date` ``` and `ls`'],
    ['not code: `\\``', 'not code: `ˋ`'],
    ['# A **title**\ntext', '*A title*\ntext'],
    ['- one\n* two\n  + [x] three', '• one\n• two\n  ☑ three'],
    ['> a\n> *b*\nc', '> a\n> _b_\nc'],
    ['`a < b && "c"`', '`a &lt; b &amp;&amp; "c"`'],
    ['[x **y**](https://e.org/?a=1&b=2 "t")', '<https://e.org/?a=1&amp;b=2|x **y**>'],
    ['[x](file:///etc) ![](https://e.org/a.png)', 'x (file:///etc) <https://e.org/a.png>'],
    ['<!channel> <@U1> @here', '&lt;!channel&gt; &lt;@U1&gt; @here'],
    ['<https://e.org> <b>x</b>', '<https://e.org> &lt;b&gt;x&lt;/b&gt;'],
    ['```ts\nif (a < b) {}\n```\nend', '```\nif (a &lt; b) {}\n```\nend'],
    ['\\*not\\* 1\\. ', '*not* 1.'],
    ['a\n\n---\n\nb', 'a\n\n———\n\nb'],
  ]
  for (const [markdown, text] of cases) assert.equal(toMrkdwn(markdown), text)
  assert.deepEqual(renderSlack('| a | b |\n|---|---|\n| 1 | 2 |'), ['```\na | b\n--|--\n1 | 2\n```'])
  assert.deepEqual(renderSlack(' \n```\n\n```\n'), [])
})

test('GW-18 what people write is read without its signs', () => {
  const cases: readonly (readonly [string, string])[] = [
    ['see <https://e.org|the page> &amp; <https://e.org>', 'see the page (https://e.org) & https://e.org'],
    ['<@U1|ada> in <#C1|general>: <!here>', '@ada in #general: @here'],
    ['1 &lt; 2 &gt; 1 &amp;lt;', '1 < 2 > 1 &lt;'],
    ['a < b', 'a < b'],
  ]
  for (const [text, shown] of cases) assert.equal(readable(text), shown)
})
