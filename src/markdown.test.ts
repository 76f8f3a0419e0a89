import assert from 'node:assert/strict'
import { test } from 'node:test'
import { divideMarkdown, parseInline, parseMarkdown } from './markdown.ts'

test('CV-14 Markdown that is nested too deep is plain text', () => {
  const staircase = Array.from({ length: 60 }, (_, depth) => `${'  '.repeat(depth)}- a`).join('\n')
  for (const deep of ['>'.repeat(3000), '> '.repeat(3000), '+ '.repeat(3000), '1. '.repeat(3000), staircase]) {
    assert.ok(parseMarkdown(deep) === undefined, deep.slice(0, 20))
  }
  for (const usual of ['> a\n>> b', '- a\n  - b\n    - c\n      > **d _e_**', '| a |\n|---|\n| **b** |']) {
    assert.ok(parseMarkdown(usual) !== undefined, usual)
  }
})

test('CV-14 a long text is parsed in parts that divide no block, and nothing of it is lost', () => {
  const code = `\`\`\`js\n${'let x = 1\n\n'.repeat(3000)}\`\`\`\n`
  const text = `${'A paragraph.\n\n- an item\n\n  its second paragraph\n\n'.repeat(400)}${code}\nThe end.\n`
  const parts = divideMarkdown(text)
  assert.ok(parts.length > 3)
  assert.equal(parts.map((part) => part.text).join(''), text)
  for (const part of parts) {
    assert.equal(part.isPlain, false)
    assert.equal((part.text.match(/```/g) ?? []).length % 2, 0, 'a part ends inside of code')
    assert.doesNotMatch(part.text, /^\s/)
  }
})

test('CV-14 a paragraph or a text beyond the limit is plain text', () => {
  const [first, second] = divideMarkdown(`${'a'.repeat(5000)}\n\n${'!'.repeat(50_000)}`)
  assert.deepEqual([first?.isPlain, second?.isPlain], [false, true])
  assert.deepEqual(
    divideMarkdown('a\n\n'.repeat(100_000)).map(({ isPlain }) => isPlain),
    [true],
  )
})

test('CV-14 a paragraph with thousands of marks is plain text; as many in code, or in several paragraphs, are not', () => {
  for (const mark of ['*', '_', '!', '__a', '* * ']) assert.equal(parseMarkdown(mark.repeat(2500)), undefined, mark)
  const code = ['```', ...Array.from({ length: 900 }, () => '__init__ *args'), '```'].join('\n')
  for (const usual of [code, '**bold** and *more*\n\n'.repeat(900)]) assert.ok(parseMarkdown(usual) !== undefined)
})

test('CV-14 GW-11 marks beside the punctuation of a script without spaces open and close', () => {
  for (const text of ['**标题：**内容', '文字**（注）**文字', '这是**“重点”**。', '**強調。**次']) {
    const types = parseInline(text)?.map(({ type }) => type)
    assert.ok(types?.includes('strong'), text)
  }
  for (const text of ['2 ** 3 ** 4', 'a ** b：** c'])
    assert.deepEqual(
      parseInline(text)?.map(({ type }) => type),
      ['text'],
    )
})
