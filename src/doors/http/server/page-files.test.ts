import assert from 'node:assert/strict'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryDir } from '../../../../test/harness/process-harness.ts'
import { createPageFiles, PAGE_FOLDER } from './page-files.ts'

test('CV-1 a page that is not built says what to do, and appears once it is built', (t) => {
  const folder = temporaryDir(t)
  const files = createPageFiles(folder)
  const index = () => new TextDecoder().decode(files.index().bytes)
  assert.match(index(), /The web page is not built.*npm start/s)
  assert.equal(files.find('assets/a.js'), undefined)
  mkdirSync(join(folder, 'assets'))
  for (const name of [
    'index.html',
    'assets/a.js',
    'assets/a.js.br',
    'assets/a.js.gz',
    'assets/a.css',
    'a.svg',
    'assets/a.woff2',
    '.sources',
  ])
    writeFileSync(join(folder, name), name)
  assert.equal(index(), 'index.html')
  const file = files.find('assets/a.js')
  const texts = (bytes: ReadonlyMap<string, Uint8Array> | undefined) =>
    [...(bytes ?? [])].map(([name, each]) => [name, new TextDecoder().decode(each)])
  assert.equal(file?.type, 'text/javascript; charset=utf-8')
  assert.deepEqual(texts(file?.encoded), [
    ['br', 'assets/a.js.br'],
    ['gzip', 'assets/a.js.gz'],
  ])
  assert.deepEqual(
    ['index.html', 'assets/a.css', 'a.svg', 'assets/a.woff2'].map((name) => [
      files.find(name)?.type,
      files.find(name)?.encoded.size,
    ]),
    [
      ['text/html; charset=utf-8', 0],
      ['text/css; charset=utf-8', 0],
      ['image/svg+xml', 0],
      ['font/woff2', 0],
    ],
  )
  assert.equal(files.find('.sources'), undefined)
  // Read once: a build that replaces the folder does not mix with the files of the page that runs.
  rmSync(join(folder, 'assets'), { recursive: true })
  assert.equal(files.find('assets/a.js'), file)
})

/** Compressed, and without the font, whose text is shown at once in a font of the system. */
const FIRST_VIEW_BYTES_MAX = 180 * 1024

test('CV-5 the first view is small, and the font is a file of the page', () => {
  const files = createPageFiles(PAGE_FOLDER)
  const html = new TextDecoder().decode(files.index().bytes)
  const names = [...html.matchAll(/(?:src|href)="\/([^"]+)"/g)].map(([, name]) => String(name))
  const sizes = names.map((name) => files.find(name)?.encoded.get('br')?.length ?? 0)
  assert.ok(sizes.reduce((sum, size) => sum + size, 0) <= FIRST_VIEW_BYTES_MAX, JSON.stringify(sizes))
  const style = files.find(names.find((name) => name.endsWith('.css')) ?? '')
  const [, font = ''] =
    /url\(\/?([^)]*inter-latin-wght[^)]*\.woff2)\)/.exec(new TextDecoder().decode(style?.bytes)) ?? []
  const path = font.startsWith('assets/') ? font : `assets/${font.replace(/^\.\//, '')}`
  assert.equal(files.find(path)?.type, 'font/woff2', font)
})

test('CV-1 the page is the build in web/dist, and its paths have slashes on every system', (t) => {
  assert.equal(PAGE_FOLDER, join(import.meta.dirname, '../../../../web/dist'))
  const folder = temporaryDir(t)
  mkdirSync(join(folder, 'assets'))
  for (const name of ['index.html', 'assets/a.js', 'other\\b.js']) writeFileSync(join(folder, name), name)
  const files = createPageFiles(folder)
  for (const path of ['assets/a.js', 'other/b.js'])
    assert.equal(files.find(path)?.type, 'text/javascript; charset=utf-8')
})
