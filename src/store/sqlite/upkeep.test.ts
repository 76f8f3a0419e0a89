import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import { systemClock } from '../../clock.ts'
import { silentLog } from '../../log.ts'
import { createMetrics } from '../../metrics.ts'
import { type Store, sql } from '../store.ts'
import { openSqlite } from './sqlite.ts'

const MIB = 1024 * 1024

function open(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'molecule-upkeep-'))
  const path = join(folder, 'molecule.db')
  const logged: string[] = []
  const metrics = createMetrics()
  const log = { ...silentLog, warn: (_: object, text: string) => void logged.push(text) }
  const store = openSqlite({ path, clock: systemClock, log, metrics })
  t.after(async () => {
    await store.close()
    rmSync(folder, { recursive: true })
  })
  return { path, store, logged, metrics }
}

async function fill(store: Store, mebibytes: number): Promise<void> {
  await store.write(() => sql('create table if not exists notes (body text)'))
  for (let n = 0; n < mebibytes; n++) await store.write(() => sql('insert into notes values ($1)', ['x'.repeat(MIB)]))
}

test('RE-7 the file of the store shrinks after rows were deleted, slice by slice', async (t) => {
  const { path, store } = open(t)
  await fill(store, 16)
  await store.upkeep?.()
  await store.write(() => sql('delete from notes'))
  let slices = 1
  while (await store.upkeep?.()) {
    slices += 1
    await store.write(() => sql('insert into notes values ($1)', ['a write in between']))
  }
  assert.ok(slices > 10, `${slices} slices`)
  // A checkpoint writes the new size to the file.
  const checkpoint = new DatabaseSync(path)
  checkpoint.exec('pragma wal_checkpoint(truncate)')
  checkpoint.close()
  assert.ok(statSync(path).size < 4 * MIB, `${statSync(path).size} bytes`)
})

test('RE-7 a reader of another process that keeps the write-ahead log large is logged once, counted, and it shrinks after', async (t) => {
  const { path, store, logged, metrics } = open(t)
  await fill(store, 1)
  const reader = new DatabaseSync(path, { readOnly: true })
  reader.exec('begin')
  reader.prepare('select count(*) from notes').get()
  await fill(store, 70)
  for (let n = 0; n < 3; n++) await store.upkeep?.()
  const isOfWal = (text: string) => text.startsWith('the write-ahead log')
  assert.deepEqual(logged.filter(isOfWal), ['the write-ahead log of the store grows: another process reads it'])
  assert.deepEqual(metrics.read().get('molecule_store_wal_held_total'), [{ labels: {}, value: 3 }])
  reader.close()
  await store.upkeep?.()
  assert.ok(statSync(`${path}-wal`).size <= 64 * MIB)
})
