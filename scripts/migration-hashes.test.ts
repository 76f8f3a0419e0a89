import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addMigrations, checkMigrations } from './migration-hashes.ts'

const FIRST = [1, 'create table one (id text)'] as const
const SECOND = [2, 'create table two (id text)'] as const

test('RE-4 a recorded migration passes, and a new one is refused until it is recorded', () => {
  const recorded = addMigrations({}, [FIRST])
  assert.deepEqual(checkMigrations(recorded, [FIRST]), [])
  const [problem, ...others] = checkMigrations(recorded, [FIRST, SECOND])
  assert.match(problem ?? '', /^migration 2 is new: record it with npx node scripts\/migration-hashes\.ts --add$/)
  assert.deepEqual(others, [])
  assert.deepEqual(checkMigrations(addMigrations(recorded, [FIRST, SECOND]), [FIRST, SECOND]), [])
})

test('RE-4 an edited migration is refused, also after new migrations were recorded', () => {
  const edited = [1, 'create table one (id text, name text)'] as const
  const recorded = addMigrations({}, [FIRST])
  for (const hashes of [recorded, addMigrations(recorded, [edited, SECOND])]) {
    const [problem] = checkMigrations(hashes, [edited, SECOND])
    assert.match(problem ?? '', /^migration 1 was edited .* put the change into a new migration$/)
  }
})

test('RE-4 a migration that was removed is refused', () => {
  assert.match(checkMigrations(addMigrations({}, [FIRST, SECOND]), [FIRST])[0] ?? '', /^migration 2 .*: put it back$/)
})
