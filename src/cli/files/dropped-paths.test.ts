import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { droppedPaths } from './dropped-paths.ts'

const folder = mkdtempSync(join(tmpdir(), "molecule-it's "))
after(() => rmSync(folder, { recursive: true }))
const report = join(folder, 'my report (1).pdf')
const plain = join(folder, 'plain.txt')
writeFileSync(report, 'x')
writeFileSync(plain, 'x')
mkdirSync(join(folder, 'sub'))

const quoted = (path: string) => `'${path.replaceAll("'", `'\\''`)}'`
const escaped = (path: string) => path.replaceAll(/[ '()]/g, '\\$&')

test('CL-6 a dropped file is found in quotes, with escaped spaces, as a URL, or as it is', () => {
  const host = hostname().toLowerCase()
  for (const text of [
    quoted(report),
    `${quoted(report)} `,
    `"${report}"`,
    escaped(report),
    report,
    pathToFileURL(report).href,
    pathToFileURL(report).href.replace('file://', `file://${host}`),
  ]) {
    assert.deepEqual(droppedPaths(text), [report], text)
  }
})

test('CL-6 several dropped files come as words or as lines', () => {
  assert.deepEqual(droppedPaths(`${quoted(report)} ${escaped(plain)}`), [report, plain])
  assert.deepEqual(droppedPaths(`${pathToFileURL(report).href}\n${pathToFileURL(plain).href}\n`), [report, plain])
})

test('CL-6 a text that only mentions a path, a folder or a missing file is no dropped file', () => {
  for (const text of [
    '',
    '  ',
    'hello',
    `look at ${escaped(plain)}`,
    `${escaped(plain)} please`,
    join(folder, 'sub'),
    join(folder, 'missing'),
    `${quoted(plain)} ${join(folder, 'missing')}`,
    "'/unclosed",
    '/trailing\\',
    'file://elsewhere.test/x',
    'file://%',
    '/a\0b',
    `/${'x'.repeat(20_000)}`,
  ]) {
    assert.equal(droppedPaths(text), undefined, text.slice(0, 60))
  }
})
