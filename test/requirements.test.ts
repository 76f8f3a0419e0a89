/**
 * Compares the list of requirements with the titles of all tests, and tests the comparison itself on samples. The
 * samples are strings, so their titles cite nothing.
 */
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { checkCitations, readCitations } from './citations.ts'
import { type Requirement, requirements } from './requirements.ts'

const ROOT = join(import.meta.dirname, '..')
const CITING_FILES = ['{src,scripts,test,bench}/**/*.test.ts', 'web/src/**/*.test.ts', 'test/contracts/**/*.ts']

const LIST: readonly Requirement[] = [
  { id: 'XX-1', built: true, text: 'a thing that works' },
  { id: 'XX-2', built: false, text: 'a thing to come' },
]

const cited = (source: string) => readCitations('a.test.ts', source).map((citation) => citation.id)

describe('the requirements of Molecule', () => {
  it('are cited by a test if and only if they are built', () => {
    const files = [...new Set(globSync(CITING_FILES, { cwd: ROOT }))]
    const citations = files.flatMap((file) => readCitations(file, readFileSync(join(ROOT, file), 'utf8')))
    assert.deepEqual(checkCitations(requirements, citations), [])
  })
  it('have unique ids and texts of at most twelve words', () => {
    const ids = requirements.map((requirement) => requirement.id)
    assert.deepEqual(ids, [...new Set(ids)])
    for (const { id, text } of requirements) assert.ok(text.split(' ').length <= 12, id)
  })
})

describe('checking citations', () => {
  it('reports nothing when exactly the built requirements are cited', () => {
    assert.deepEqual(checkCitations(LIST, [{ id: 'XX-1', file: 'a.test.ts' }]), [])
  })
  it('reports a built requirement that no test cites', () => {
    assert.deepEqual(checkCitations(LIST, []), ['XX-1 is marked built, but no test cites it.'])
  })
  it('reports a citation of an unknown requirement', () => {
    const citations = [
      { id: 'XX-1', file: 'a.test.ts' },
      { id: 'XX-9', file: 'a.test.ts' },
    ]
    assert.deepEqual(checkCitations(LIST, citations), ['a.test.ts cites XX-9, which does not exist.'])
  })
  it('reports a citation of a pending requirement', () => {
    const citations = [
      { id: 'XX-1', file: 'a.test.ts' },
      { id: 'XX-2', file: 'b.test.ts' },
    ]
    assert.deepEqual(checkCitations(LIST, citations), ['b.test.ts cites XX-2, which is pending: move it to built.'])
  })
})

describe('reading citations', () => {
  it('finds ids in titles of tests and groups, also several in one title', () => {
    const source = `describe('XX-1', () => { it('XX-2 and XX-3: both', run); test("XX-4", run) }); t.test('XX-5', run)`
    assert.deepEqual(cited(source), ['XX-1', 'XX-2', 'XX-3', 'XX-4', 'XX-5'])
  })
  it('finds ids in titles that are templates or concatenated strings', () => {
    assert.deepEqual(cited("test(`XX-1 ${name}`, run); test('XX-2 ' + name, run)"), ['XX-1', 'XX-2'])
  })
  it('finds ids in the strings passed to a contract suite', () => {
    assert.deepEqual(cited(`backendContract('XX-1 exec', { title: 'XX-2', make })`), ['XX-1', 'XX-2'])
  })
  it('returns an id once for each file', () => {
    assert.deepEqual(cited(`test('XX-1 a', run); test('XX-1 b', run)`), ['XX-1'])
  })
  it('ignores comments, data, other calls and strings that only look like ids', () => {
    assert.deepEqual(cited(`// test('XX-1')\nconst a = 'XX-2'; log('XX-3'); test('UTF-8, SHA-256', run)`), [])
  })
  it('ignores skipped tests and everything inside a skipped group', () => {
    const source = `test.skip('XX-1', run); it.todo('XX-2'); test('XX-3', { skip: true }, run);
      test('XX-4', { todo: 'later' }, run); describe.skip('XX-5', () => { test('XX-6', run) })`
    assert.deepEqual(cited(source), [])
  })
  it('counts a test that only some machines skip', () => {
    assert.deepEqual(cited(`test('XX-1', { skip: isWindows, timeout: 5 }, run)`), ['XX-1'])
  })
})
