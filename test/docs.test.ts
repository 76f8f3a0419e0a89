/** Links between the pages of this repository: each leads to a file that exists and to a heading that it has. */
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { test } from 'node:test'

const ROOT = join(import.meta.dirname, '..')
const PAGES = globSync(['*.md', 'docs/**/*.md'], { cwd: ROOT }).sort()

const anchorsOf = (markdown: string): string[] =>
  [...markdown.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )

/** The links of a page that lead nowhere. */
function deadLinks(page: string): string[] {
  const links = readFileSync(join(ROOT, page), 'utf8').matchAll(/\]\(([^)\s]+)\)/g)
  return [...links]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
    .filter((target) => {
      const [path = '', anchor] = target.split('#')
      const file = path === '' ? join(ROOT, page) : resolve(ROOT, dirname(page), path)
      if (!existsSync(file)) return true
      return anchor !== undefined && !anchorsOf(readFileSync(file, 'utf8')).includes(anchor)
    })
}

test('every link of every page leads to a file and a heading that exist', () => {
  const dead = PAGES.flatMap((page) => deadLinks(page).map((link) => `${page}: ${link}`))
  assert.deepEqual(dead, [])
})

test('the index of docs/ names every page', () => {
  const index = readFileSync(join(ROOT, 'docs/README.md'), 'utf8')
  const pages = PAGES.filter((page) => /^docs\/(?!README)[^/]+\.md$/.test(page)).map((page) =>
    page.slice('docs/'.length),
  )
  assert.deepEqual(
    pages.filter((page) => !index.includes(`(${page})`)),
    [],
  )
})
