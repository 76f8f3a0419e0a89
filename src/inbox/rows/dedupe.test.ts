/** The dedupe key of a message: stored keys stay valid, and the range of a key has the messages of every sender. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dedupeOf, dedupeOfContent, dedupeRange } from './dedupe.ts'

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const inRange = (bytes: Uint8Array, [from, to]: readonly [Uint8Array, Uint8Array]) =>
  Buffer.compare(bytes, from) >= 0 && Buffer.compare(bytes, to) <= 0

test('IN-1 a key is stored as its start, a checksum and a hash with its sender: keys of earlier versions are found', () => {
  const key = 'the-first-sixteen-and-more'
  const stored = hex(dedupeOf({ workspaceId: 'ws_1', principal: 'people', key }))
  assert.equal(stored, `${Buffer.from('the-first-sixtee').toString('hex')}a88e4a452a228683657fb5fcbf2990ed`)
  assert.equal(
    hex(dedupeOf({ workspaceId: 'ws_1', principal: 'people', key: 'k' })),
    '6b0862575d8d3aeab09c7801eaa1cda68d',
  )
  const placed = { hash: 'h', contextId: 'c', taskId: 't' }
  assert.equal(
    hex(dedupeOfContent({ workspaceId: 'ws_1', principal: 'people', key: 'k' }, placed)),
    '6b0862575d662b45434159e53ea5f34c47',
  )
})

test('IN-1 the range of a key has that key of every workspace and sender, and no neighbour', () => {
  for (const key of ['k', 'the-first-sixteen-and-more', 'ä'.repeat(20), '']) {
    const range = dedupeRange(key)
    const senders = Array.from({ length: 50 }, (_, count) => ({ workspaceId: `ws_${count}`, principal: `p${count}` }))
    const stored = senders.flatMap((sender) => [
      dedupeOf({ ...sender, key }),
      ...['a', 'b'].map((content) => dedupeOfContent({ ...sender, key }, { hash: content })),
    ])
    assert.ok(stored.every((bytes) => inRange(bytes, range)))
    assert.equal(new Set(stored.map(hex)).size, 150)
    for (const other of [`${key}x`, `x${key}`]) {
      assert.ok(senders.every((sender) => !inRange(dedupeOf({ ...sender, key: other }), range)))
    }
  }
})
