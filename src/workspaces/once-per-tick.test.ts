import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { oncePerTick } from './once-per-tick.ts'

test('PL-3 who asks within one turn of the event loop shares a look; the next turn looks again', async () => {
  const looks: string[] = []
  const look = oncePerTick((id) => (looks.push(id) === 1 ? undefined : looks.length))
  assert.deepEqual([look('a'), look('a'), look('b'), look('b')], [undefined, undefined, 2, 2])
  await nextTurn()
  assert.equal(look('a'), 3)
  assert.deepEqual(looks, ['a', 'b', 'a'])
})
