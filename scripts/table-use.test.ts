/** Tests the check of tables on samples: a violation of each kind, and what is no SQL. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkTables, type TableOwners } from './table-use.ts'

const OWNERS: TableOwners = {
  tables: { 'src/post': ['letters', 'stamps'], 'src/house': ['rooms'] },
  readers: ['src/window'],
  tableReaders: { 'src/house/mail.ts': ['letters'] },
}
const MAIL = 'export const text = `select * from letters`'

/** Each violation as `file: the first words`. */
function check(sources: Readonly<Record<string, string>>, mail: string | undefined = MAIL): string[] {
  const files = { ...(mail !== '' && { 'src/house/mail.ts': mail }), ...sources }
  return checkTables(new Map(Object.entries(files)), OWNERS).map(({ file, message }) => `${file}: ${message}`)
}

test('a room names its own tables, and those of others where the list allows it', () => {
  assert.deepEqual(
    check({ 'src/post/a.ts': 'sql(`update letters set n = 1 where id in (select id from stamps)`)' }),
    [],
  )
})

test('a table of another room is refused, however its statement names it', () => {
  for (const statement of [
    'select * from letters',
    'select * from rooms r join letters l on true',
    'insert into letters (id) values (1)',
    'update letters set n = 1',
    'delete from letters',
  ]) {
    const [first, ...more] = check({ 'src/house/a.ts': `sql('${statement}')` })
    assert.match(first ?? '', /^src\/house\/a\.ts: the table letters belongs to src\/post: ask src\/post, or list/)
    assert.deepEqual(more, [])
  }
  assert.equal(check({ 'src/house/a.ts': 'sql(`select ${columns} from letters where ${condition}`)' }).length, 1)
})

test('a room of readers names every table, and writes none', () => {
  assert.deepEqual(check({ 'src/window/a.ts': 'sql(`select * from letters join rooms on true`)' }), [])
  for (const statement of ['update letters set n = 1', 'insert into letters (id) values (1)', 'delete from letters']) {
    const found = check({ 'src/window/a.ts': `sql('${statement}')` })
    assert.deepEqual(found, [
      'src/window/a.ts: the file writes the table letters, and its room only reads: ask src/post',
    ])
  }
})

test('a comment, a sentence and a test are no SQL', () => {
  assert.deepEqual(
    check({
      'src/house/a.ts': `// select * from letters\nexport const sentence = 'it comes from letters of friends'`,
      'src/house/a.test.ts': 'sql(`select * from letters`)',
      'test/a.ts': 'sql(`select * from letters`)',
    }),
    [],
  )
})

test('a new table needs an owner', () => {
  const source = 'export const schema = `create table chairs (id text)`'
  assert.match(String(check({ 'src/store/migrations/0001.ts': source })), /the table chairs has no owner/)
})

test('an exception that is not needed any more must go', () => {
  assert.match(
    String(check({}, 'export const text = ``')),
    /mail\.ts: the file does not name the table letters any more/,
  )
  assert.match(String(check({}, '')), /mail\.ts: there is no such file/)
})
