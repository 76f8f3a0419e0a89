import assert from 'node:assert/strict'
import test from 'node:test'
import fc from 'fast-check'
import { createMarkdownWriter, createPlainWriter } from './markdown.ts'

/** The output for a text that arrives in these pieces. */
function written(...pieces: string[]): string {
  let out = ''
  const markdown = createMarkdownWriter((text) => {
    out += text
  })
  for (const piece of pieces) markdown.push(piece)
  markdown.end()
  return out
}

const ESCAPE = '\u001b'
const STYLES = new RegExp(`${ESCAPE}\\[[0-9;]*m`, 'g')
/** Styles as tags, so that a test is readable. */
const seen = (...pieces: string[]) =>
  written(...pieces)
    .replaceAll(`${ESCAPE}[1;4m`, '<h>')
    .replaceAll(`${ESCAPE}[1m`, '<b>')
    .replaceAll(`${ESCAPE}[36m`, '<c>')
    .replaceAll(`${ESCAPE}[2m`, '<d>')
    .replaceAll(`${ESCAPE}[0m`, '</>')

test('CL-5 headings, bold, code, lists and fences are styled', () => {
  assert.equal(seen('# Title\ntext'), '<h>Title</>\ntext')
  assert.equal(seen('a **bold** word'), 'a <b>bold</> word')
  assert.equal(seen('use `ls **` now'), 'use <c>ls **</> now')
  assert.equal(seen('- one\n  * two\n+ three'), '• one\n  • two\n• three')
  assert.equal(
    seen('```js\nlet a = **b**\n# no heading\n```\nafter'),
    '<d>```js</>\n<c>let a = **b**</>\n<c># no heading</>\n<d>```</>\nafter',
  )
  assert.equal(seen('## A **bold** `name` here\n'), '<h>A <b>bold</><h> <c>name</><h> here</>\n')
})

test('CL-5 text that only looks like Markdown is unchanged', () => {
  for (const text of [
    '2 * 3 * 4',
    '2 ** 3',
    '#hash',
    'a*b',
    '-5 degrees',
    '*',
    '**',
    '#',
    'x `',
    '1. first\n2. second',
  ]) {
    assert.equal(written(text).replaceAll(STYLES, ''), text.replace(' `', ' '), text)
  }
  assert.equal(seen('a **bold that\nnever ends'), 'a <b>bold that</>\nnever ends')
})

test('CL-5 the output does not depend on how the text is cut into pieces', () => {
  const text = '# T\nsome **bold** and `code`\n- a\n* b\n```\nx\n```\nend **'
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: text.length }), { maxLength: 20 }), (cuts) => {
      const places = [0, ...cuts.toSorted((a, b) => a - b), text.length]
      const pieces = places.slice(1).map((end, index) => text.slice(places[index], end))
      assert.equal(written(...pieces), written(text))
    }),
  )
})

test('CL-5 control characters do not reach a terminal; a pipe gets the text unchanged', () => {
  assert.equal(written('a\u001b[2Jb\u0007c\u009b31md\te'), 'abc31md\te')
  let out = ''
  const plain = createPlainWriter((text) => {
    out += text
  })
  plain.push('**as** it is')
  assert.equal(plain.atLineStart(), false)
  plain.push('\n')
  plain.end()
  assert.deepEqual([out, plain.atLineStart()], ['**as** it is\n', true])
})
