import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allPages, withAfter } from './pages.ts'

test('PL-23 pages are read with the cursor of the page before, until a page has none', async () => {
  const asked: (string | undefined)[] = []
  const cursors = ['a', '', undefined, 'never']
  const pages = await allPages(async (next) => {
    asked.push(next)
    const cursor = cursors[asked.length - 1]
    return { page: asked.length, ...(cursor !== undefined && { next: cursor }) }
  })
  assert.deepEqual(asked, [undefined, 'a', ''])
  assert.deepEqual(pages, [{ page: 1, next: 'a' }, { page: 2, next: '' }, { page: 3 }])
})

test('PL-23 a list that never ends is left after a thousand pages', async () => {
  let asked = 0
  const pages = await allPages(async () => {
    asked += 1
    if (asked > 2000) assert.fail('it reads on')
    return { next: 'more' }
  })
  assert.deepEqual([asked, pages.length], [1000, 1000])
})

test('PL-23 a cursor is one more parameter of the path', () => {
  assert.equal(withAfter('/a', undefined), '/a')
  assert.equal(withAfter('/a', 'x&y'), '/a?after=x%26y')
  assert.equal(withAfter('/a?b=c', 'x'), '/a?b=c&after=x')
})
