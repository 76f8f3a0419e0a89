import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { temporaryDir } from '../../../test/harness/process-harness.ts'
import { systemClock } from '../../clock.ts'
import { missingMigrations } from '../migrations.ts'
import { openSqlite } from './sqlite.ts'

/** A store of an earlier schema, whose last process crashed when `inLog` is true: a row is only in the log. */
function makeStore(t: TestContext, version: number, { inLog = false } = {}): string {
  const path = join(temporaryDir(t), 'molecule.db')
  const database = new DatabaseSync(path)
  database.exec('pragma journal_mode = wal; create table schema_version (version integer not null)')
  for (const [number, text] of missingMigrations(0).slice(0, version)) {
    database.exec(text)
    database.exec(`insert into schema_version (version) values (${number})`)
  }
  if (inLog) {
    // A reader keeps the log when the writer closes.
    const reader = new DatabaseSync(path)
    t.after(() => reader.close())
    reader.exec('begin; select count(*) from schema_version')
  }
  database.exec('create table marks (text text); insert into marks values (1)')
  database.close()
  return path
}

const open = async (path: string) => await openSqlite({ path, clock: systemClock }).close()
const copies = (path: string) => readdirSync(join(path, '..')).filter((name) => /schema-\d+$/.test(name))

test('RE-6 a store is copied aside before its schema changes, with what is only in its log', async (t) => {
  for (const inLog of [false, true]) {
    const path = makeStore(t, 27, { inLog })
    await open(path)
    assert.deepEqual(copies(path), ['molecule.db.schema-27'])
    const copy = new DatabaseSync(`${path}.schema-27`)
    assert.deepEqual({ ...copy.prepare('select max(version) as version from schema_version').get() }, { version: 27 })
    assert.deepEqual({ ...copy.prepare('select count(*) as marks from marks').get() }, { marks: 1 })
    copy.close()
    await open(path)
    assert.deepEqual(copies(path), ['molecule.db.schema-27'], 'a start without an upgrade copies nothing')
  }
})

test('RE-6 a new store is not copied, and three copies are kept', async (t) => {
  const fresh = join(temporaryDir(t), 'molecule.db')
  await open(fresh)
  assert.deepEqual(copies(fresh), [])
  const path = makeStore(t, 27)
  for (const version of [9, 10, 20, 26]) writeFileSync(`${path}.schema-${version}`, '')
  writeFileSync(`${path}.schema-9-wal`, '')
  await open(path)
  assert.deepEqual(copies(path).sort(), ['molecule.db.schema-20', 'molecule.db.schema-26', 'molecule.db.schema-27'])
  assert.equal(existsSync(`${path}.schema-9-wal`), false)
})

test('RE-6 a store that cannot be copied is refused with one sentence, and stays as it was', async (t) => {
  const path = makeStore(t, 27)
  mkdirSync(join(`${path}.schema-27`, 'in-the-way'), { recursive: true })
  assert.throws(() => openSqlite({ path, clock: systemClock }), {
    code: 'disk_low',
    message: /could not be copied before its upgrade .*: free some space, or move .*schema-\* away, then start again$/,
  })
  assert.ok(statSync(`${path}.schema-27`).isDirectory())
  const store = new DatabaseSync(path)
  assert.deepEqual({ ...store.prepare('select max(version) as version from schema_version').get() }, { version: 27 })
  store.close()
})
