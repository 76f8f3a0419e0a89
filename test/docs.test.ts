/** The pages of this repository: each link leads to a file and a heading that exist, and each walk passes functions that exist. */
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

/** The rows of the tables under "Three walks": functions, and the file that has them. */
function walkRows(): { readonly walk: string; readonly names: readonly string[]; readonly file: string }[] {
  const page = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8')
  const [, section = ''] = /^## Three walks\n(.*?)^## /ms.exec(page) ?? []
  return section
    .split(/^### /m)
    .slice(1)
    .flatMap((part) =>
      [...part.matchAll(/^\|[^|]*\|(.*)\| `([^`]+\.ts)` *\|$/gm)].map(([, functions = '', file = '']) => ({
        walk: part.split('\n', 1)[0] ?? '',
        names: [...functions.matchAll(/`(\w+)`/g)].map(([, name = '']) => name),
        file,
      })),
    )
}

test('the walks of docs/architecture.md pass functions that are in their files', () => {
  const rows = walkRows()
  assert.equal(new Set(rows.map(({ walk }) => walk)).size, 3)
  const missing = rows.flatMap(({ names, file }) => {
    const path = join(ROOT, 'src', file)
    const source = existsSync(path) ? readFileSync(path, 'utf8') : ''
    return names.filter((name) => !new RegExp(`\\b${name}\\b`).test(source)).map((name) => `${file}: ${name}`)
  })
  assert.deepEqual(missing, [])
})
