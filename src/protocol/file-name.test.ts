import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { extensionOf, numberedFileName, safeFileName } from './file-name.ts'

test('PL-17 any file name from outside becomes one plain name', () => {
  const cases: [string | undefined, string][] = [
    ['report.pdf', 'report.pdf'],
    ['../../etc/passwd', 'passwd'],
    ['..\\..\\boot.ini', 'boot.ini'],
    ['/etc/shadow', 'shadow'],
    ['..', 'file-1'],
    ['.env', 'env'],
    ['', 'file-1'],
    [undefined, 'file-1'],
    ['a\nb\0c.txt', 'a_b_c.txt'],
    ['évil\u202Egnp.exe', 'évil_gnp.exe'],
    ['$(id).sh', '_(id).sh'],
    ['NUL.txt', '_NUL.txt'],
    ['///', 'file-1'],
  ]
  for (const [given, expected] of cases) assert.equal(safeFileName(given, 'file-1'), expected, JSON.stringify(given))
  assert.equal(extensionOf('image/png'), '.png')
  assert.equal(extensionOf('x-what/ever'), '')
  assert.equal(numberedFileName('report.pdf', 2), 'report-2.pdf')
})

test('PL-17 a safe name has no folder, is not too long and is not empty', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary', maxLength: 400 }), fc.string()), (given) => {
      const name = safeFileName(given, 'file')
      assert.match(name, /^[^/\\\p{Cc}]+$/u)
      assert.ok(!name.startsWith('.') && Buffer.byteLength(name) <= 121, name)
      assert.equal(safeFileName(name, 'file'), name)
    }),
    { numRuns: 500 },
  )
})
