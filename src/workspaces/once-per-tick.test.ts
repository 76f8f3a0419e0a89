import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { oncePerTick } from './once-per-tick.ts'

test('PL-3 calls within one turn of the event loop share one lookup; the next turn looks up again', async () => {
  const lookups: string[] = []
  const lookUp = oncePerTick((id) => (lookups.push(id) === 1 ? undefined : lookups.length))
  assert.deepEqual([lookUp('a'), lookUp('a'), lookUp('b'), lookUp('b')], [undefined, undefined, 2, 2])
  await nextTurn()
  assert.equal(lookUp('a'), 3)
  assert.deepEqual(lookups, ['a', 'b', 'a'])
})

test('PL-3 a single lookup of a turn is made again in the next turn', async () => {
  let lookups = 0
  const lookUp = oncePerTick(() => ++lookups)
  const found = [lookUp('a')]
  await nextTurn()
  found.push(lookUp('a'))
  await nextTurn()
  assert.deepEqual([...found, lookUp('a')], [1, 2, 3])
})
