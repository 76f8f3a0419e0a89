import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ulid, ulidFloor, workspaceId } from './ids.ts'

test('PL-2 a workspace id is ws_ and a ULID', () => {
  assert.match(workspaceId(), /^ws_[0-9A-HJKMNP-TV-Z]{26}$/)
})

test('ids made in one millisecond are different and sort in the order they were made', () => {
  const ids = Array.from({ length: 50_000 }, () => ulid())
  assert.deepEqual(ids, ids.toSorted())
  assert.equal(new Set(ids).size, ids.length)
})

test('a clock that goes back does not bring ids back', () => {
  const before = ulid(Date.now() + 10_000)
  assert.ok(ulid(Date.now() - 10_000) > before)
})

test('the floor of a time sorts before every id made from then on, and after those made before', () => {
  const nowMs = Date.now() + 1_000_000
  const made = ulid(nowMs)
  assert.ok(ulidFloor(nowMs) <= made)
  assert.ok(ulidFloor(nowMs + 1) > made)
})
