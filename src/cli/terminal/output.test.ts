import assert from 'node:assert/strict'
import test from 'node:test'
import { withoutControls } from '../../printable.ts'
import { render, renderFields, renderTable } from './output.ts'

const COLUMNS = [
  { title: 'name', of: ({ name }: { name: string }) => name },
  { title: 'size', of: ({ name }: { name: string }) => name.length },
]

test('CL-1 a table has titles and aligned columns; an empty one says so', () => {
  assert.equal(
    renderTable([{ name: 'a' }, { name: 'long' }], COLUMNS, { none: 'none' }),
    'NAME  SIZE\na     1\nlong  4\n',
  )
  assert.equal(renderTable([], COLUMNS, { none: 'There is none.' }), 'There is none.\n')
})

const wide = [
  { title: 'id', of: ({ id }: { id: string; text: string }) => id, isWhole: true },
  { title: 'status', of: () => 'idle' },
  { title: 'text', of: ({ text }: { id: string; text: string }) => text },
]

test('CL-8 a table is cut to the width of the terminal, names the cut columns, and keeps ids whole', () => {
  const rows = [
    { id: 'ws_0123456789', text: 'a long text that goes on and on' },
    { id: 'ws_1', text: 'short' },
  ]
  const lines = renderTable(rows, wide, { none: 'none', width: 40 }).split('\n')
  assert.deepEqual(lines, [
    'ID             STATUS  TEXT',
    'ws_0123456789  idle    a long text that…',
    'ws_1           idle    short',
    'cut to the width of this terminal: TEXT; -o json shows all',
    '',
  ])
  assert.equal(renderTable(rows, wide, { none: 'none', width: 80 }), renderTable(rows, wide, { none: 'none' }))
})

test('CL-8 a table fits 80 columns also beside two ids and many columns', () => {
  const columns = [
    { title: 'id', of: () => 'ws_01M7RYDKXX624V8X441N0NPKS1', isWhole: true },
    ...['name', 'runtime', 'status', 'waiting', 'role'].map((title) => ({ title, of: () => 'ten columns' })),
  ]
  const table = renderTable([{}], columns, { none: 'none', width: 80 })
  const [titles = '', line = '', note] = table.split('\n')
  assert.ok(titles.length <= 80 && line.length <= 80, table)
  assert.match(line, /^ws_01M7RYDKXX624V8X441N0NPKS1 {2}/)
  assert.equal(note, 'cut to the width of this terminal: NAME, RUNTIME, STATUS, WAITING, ROLE; -o json shows all')
})

test('CL-8 a table that is too wide for the terminal is one field a line', () => {
  const rows = [
    { id: 'ws_0123456789', text: 'a long text that goes on' },
    { id: 'ws_1', text: '' },
  ]
  assert.equal(
    renderTable(rows, wide, { none: 'none', width: 22 }),
    [
      'ID      ws_0123456789\nSTATUS  idle\nTEXT    a long text t…\n',
      'ID      ws_1\nSTATUS  idle\ncut to the width of this terminal: TEXT; -o json shows all\n',
    ].join('\n'),
  )
})

test('CL-8 a sentence that says what to do goes on in the next line', () => {
  const columns = [COLUMNS[0], { title: 'found', of: () => 'not installed -> npm install -g it', isWrapped: true }]
  assert.equal(
    renderTable([{ name: 'codex' }], columns as typeof COLUMNS, { none: 'none', width: 24 }),
    'NAME   FOUND\ncodex  not installed ->\n       npm install -g it\n',
  )
})

test('CL-8 letters and emoji of two columns are counted as two, and none is cut in half', () => {
  const rows = [{ id: '日本', text: '👍'.repeat(20) }]
  const [title, line] = renderTable(rows, wide, { none: 'none', width: 33 }).split('\n')
  assert.equal(title, 'ID    STATUS  TEXT')
  assert.equal(line, `日本  idle    ${'👍'.repeat(9)}…`)
})

test('CL-8 a cell of a megabyte is cut at once', () => {
  const rows = [{ id: '1', text: 'x'.repeat(1024 * 1024) }]
  assert.equal(renderTable(rows, wide, { none: 'none', width: 50 }).split('\n')[1]?.length, 50)
})

test('control characters in a name neither break the table nor reach the terminal', () => {
  assert.equal(renderTable([{ name: 'a\nb\u001b[31m\u0007' }], COLUMNS, { none: '' }), 'NAME  SIZE\na b   9\n')
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
