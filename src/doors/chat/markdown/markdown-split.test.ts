import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { arbitraryMarkdown } from '../../../../test/generators/markdown.ts'
import { readBlocks } from './markdown-blocks.ts'
import { splitMarkdown } from './markdown-split.ts'

const RUNS = 300
const arbitraryLimit = fc.integer({ min: 500, max: 2000 })

/** The text without what a split may change: blanks, quote marks, and the lines that open and close fences. */
function contentOf(markdown: string): string {
  return readBlocks(markdown)
    .map((block) => (block.type === 'fence' ? block.body : block.lines).join(''))
    .join('')
    .replaceAll(/[\s>]/g, '')
}

const normal = (markdown: string) => markdown.replaceAll(/\r\n?/g, '\n').toWellFormed()

test('GW-2 every part is within the limit, and the joined parts are the answer up to fence repair', () => {
  fc.assert(
    fc.property(arbitraryMarkdown, arbitraryLimit, (markdown, limit) => {
      const parts = splitMarkdown(markdown, limit)
      for (const part of parts) assert(part.length <= limit && part.trim() !== '')
      assert.equal(parts.map(contentOf).join(''), contentOf(normal(markdown)))
    }),
    { numRuns: RUNS },
  )
})

test('GW-2 every part closes each fence that it opens, and splits no surrogate pair', () => {
  fc.assert(
    fc.property(arbitraryMarkdown, arbitraryLimit, (markdown, limit) => {
      for (const part of splitMarkdown(markdown, limit)) {
        assert(part.isWellFormed())
        for (const block of readBlocks(part)) assert(block.type === 'text' || block.isClosed, part)
      }
    }),
    { numRuns: RUNS },
  )
})

test('GW-2 a fence that fits into a message is never split', () => {
  fc.assert(
    fc.property(arbitraryMarkdown, arbitraryLimit, (markdown, limit) => {
      const bodies = (text: string) =>
        readBlocks(text).flatMap((block) => (block.type === 'fence' ? [block.body.join('')] : []))
      const split = bodies(splitMarkdown(markdown, limit).join('\n')).map((body) => body.trimEnd())
      for (const body of bodies(normal(markdown)).filter(({ length }) => length + 300 <= limit)) {
        assert(split.includes(body.trimEnd()), body)
      }
    }),
    { numRuns: RUNS },
  )
})

test('GW-2 a 9,000-character answer with code blocks becomes messages that each render alone', () => {
  const code = Array.from({ length: 90 }, (_, n) => `const value${n} = compute(${n}) // line ${n}`).join('\n')
  const text = 'A paragraph about the change. '.repeat(30).trim()
  const answer =
    `# Result\n\n${text}\n\n\`\`\`ts\n${code}\n\`\`\`\n\n${text}\n\n## Next\n\n${text}\n\n\`\`\`sh\nnpm test\n\`\`\`\n`.repeat(
      2,
    )
  assert(answer.length > 9000)
  const parts = splitMarkdown(answer, 2000)
  for (const part of parts) {
    assert(part.length <= 2000)
    assert.equal((part.match(/```/g) ?? []).length % 2, 0)
    assert(!part.endsWith('## Next'), 'a heading stays with its text')
  }
  assert(parts.some((part) => part.startsWith('```ts\nconst value')))
  assert.equal(parts.map(contentOf).join(''), contentOf(answer))
})

test('GW-2 paragraphs stay whole, long lines break between words', () => {
  const paragraph = 'word '.repeat(100).trim()
  assert.deepEqual(splitMarkdown(`${paragraph}\n\n${paragraph}\n\nend`, 1010), [`${paragraph}\n\n${paragraph}\n\nend`])
  assert.deepEqual(splitMarkdown(`${paragraph}\n\n${paragraph}\n\nend`, 600), [paragraph, `${paragraph}\n\nend`])
  for (const part of splitMarkdown('word '.repeat(1000), 600)) assert.match(part, /^(word )*word$/)
})

test('GW-2 an unclosed fence, a blank answer and an impossible limit', () => {
  assert.deepEqual(splitMarkdown('```js\nlet a', 500), ['```js\nlet a\n```'])
  assert.deepEqual(splitMarkdown(' \n\n\t\n', 500), [])
  assert.throws(() => splitMarkdown('a', 20), /room for 500/)
})
