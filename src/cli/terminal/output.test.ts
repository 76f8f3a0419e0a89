import assert from 'node:assert/strict'
import test from 'node:test'
import { withoutControls } from '../../printable.ts'
import { render, renderFields, renderTable } from './output.ts'

const COLUMNS = [
  { title: 'name', of: ({ name }: { name: string }) => name },
  { title: 'size', of: ({ name }: { name: string }) => name.length },
]

test('CL-1 a table has titles and aligned columns; an empty one says so', () => {
  assert.equal(renderTable([{ name: 'a' }, { name: 'long' }], COLUMNS, 'none'), 'NAME  SIZE\na     1\nlong  4\n')
  assert.equal(renderTable([], COLUMNS, 'There is none.'), 'There is none.\n')
})

test('control characters in a name neither break the table nor reach the terminal', () => {
  assert.equal(renderTable([{ name: 'a\nb\u001b[31m\u0007' }], COLUMNS, ''), 'NAME  SIZE\na b   9\n')
  assert.equal(withoutControls('\u001b]0;title\u0007x\ty\n'), ']0;titlex\ty\n')
})

test('fields omit missing values; JSON and YAML are complete', async () => {
  const fields = [
    ['a', 1],
    ['longer', null],
    ['b', undefined],
    ['c', 'x'],
  ] as const
  assert.equal(renderFields(fields), 'a  1\nc  x\n')
  assert.equal(await render({ a: [1] }, 'json'), '{\n  "a": [\n    1\n  ]\n}\n')
  assert.equal(await render({ a: [1] }, 'yaml'), 'a:\n  - 1\n')
})
