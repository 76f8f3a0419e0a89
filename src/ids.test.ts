import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ulid, ulidFloor, workspaceId } from './ids.ts'

test('PL-2 a workspace id is ws_ and a ULID', () => {
  assert.match(workspaceId(), /^ws_[0-9A-HJKMNP-TV-Z]{26}$/)
})

test('ids of one millisecond differ and sort in the order of their creation', () => {
  const ids = Array.from({ length: 50_000 }, () => ulid())
  assert.deepEqual(ids, ids.toSorted())
  assert.equal(new Set(ids).size, ids.length)
})

test('a clock that goes back does not make ids sort earlier', () => {
  const before = ulid(Date.now() + 10_000)
  assert.ok(ulid(Date.now() - 10_000) > before)
})

test('ulidFloor of a time sorts before all later ids and after all earlier ones', () => {
  const nowMs = Date.now() + 1_000_000
  const made = ulid(nowMs)
  assert.ok(ulidFloor(nowMs) <= made)
  assert.ok(ulidFloor(nowMs + 1) > made)
})
