import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { oncePerTick } from './once-per-tick.ts'

test('PL-3 calls within one turn of the event loop share one lookup; the next turn lookups up again', async () => {
  const lookups: string[] = []
  const lookUp = oncePerTick((id) => (lookups.push(id) === 1 ? undefined : lookups.length))
  assert.deepEqual([lookUp('a'), lookUp('a'), lookUp('b'), lookUp('b')], [undefined, undefined, 2, 2])
  await nextTurn()
  assert.equal(lookUp('a'), 3)
  assert.deepEqual(lookups, ['a', 'b', 'a'])
})
