import assert from 'node:assert/strict'
import { test } from 'node:test'
import { boundDiffs, DIFF_BYTES_MAX, DIFF_FILES_MAX, diffOfFile, diffOfTexts } from './file-diff.ts'

test('CV-4 the diff of two texts has the changed lines with three lines around each place', () => {
  const lines = Array.from({ length: 20 }, (_, index) => `line ${index}`)
  const changed = lines.map((line, index) => (index === 2 ? 'third' : line)).toSpliced(15, 1)
  assert.equal(
    diffOfTexts('/w/a', `${lines.join('\n')}\n`, `${changed.join('\n')}\n`).diff,
    [
      ...['--- /w/a', '+++ /w/a', '@@ @@', ' line 0', ' line 1', '-line 2', '+third', ' line 3', ' line 4', ' line 5'],
      ...['@@ @@', ' line 12', ' line 13', ' line 14', '-line 15', ' line 16', ' line 17', ' line 18'],
    ].join('\n'),
  )
  assert.equal(diffOfTexts('a', 'x', 'x').diff, '--- a\n+++ a')
  assert.equal(diffOfTexts('a', '', 'x\n').diff, '--- a\n+++ a\n@@ @@\n+x')
})

test('CV-4 a created and a deleted file are named so', () => {
  assert.equal(diffOfFile('a', 'created', 'x\ny\n').diff, '--- /dev/null\n+++ a\n@@ @@\n+x\n+y')
  assert.equal(diffOfFile('a', 'deleted', 'x').diff, '--- a\n+++ /dev/null\n@@ @@\n-x')
})

test('CV-4 a large diff ends with the number of its other lines, and a large text is compared in no time', () => {
  const { diff } = diffOfFile('a', 'created', 'x'.repeat(99).concat('\n').repeat(1000))
  assert.ok(Buffer.byteLength(diff) < DIFF_BYTES_MAX + 40)
  assert.match(diff, /\n\+x{99}\n\.\.\. 9\d\d more lines$/)
  assert.equal(
    diffOfFile('a', 'created', 'x'.repeat(DIFF_BYTES_MAX)).diff,
    '--- /dev/null\n+++ a\n@@ @@\n... 1 more lines',
  )
  const texts = ['a', 'b'].map((letter) => Array.from({ length: 5000 }, (_, n) => `${letter}${n}`).join('\n'))
  assert.match(diffOfTexts('a', texts[0] ?? '', texts[1] ?? '').diff, /^-a0$/m)
})

test('CV-4 the diffs of one tool use are few and small together', () => {
  const small = Array.from({ length: 30 }, (_, index) => diffOfFile(`f${index}`, 'created', 'x'))
  assert.equal(boundDiffs(small).length, DIFF_FILES_MAX)
  const large = Array.from({ length: 3 }, (_, index) => diffOfFile(`f${index}`, 'created', 'x\n'.repeat(5000)))
  assert.deepEqual(boundDiffs(large), large.slice(0, 1))
  assert.deepEqual(boundDiffs([diffOfFile('p'.repeat(2000), 'created', 'x')]), [])
})
