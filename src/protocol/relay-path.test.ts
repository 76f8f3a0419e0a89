import assert from 'node:assert/strict'
import { test } from 'node:test'
import { extendRelayPath, refuseLoop } from './relay-path.ts'

test('a message carries the ids of its relays, and an invalid path counts as empty', () => {
  assert.deepEqual(extendRelayPath(undefined, 'ws_a'), ['ws_a'])
  assert.deepEqual(extendRelayPath({ molecule_path: ['ws_a'] }, 'ws_b'), ['ws_a', 'ws_b'])
  for (const strange of ['ws_a', 7, null, { ws_a: true }, [['ws_a']]]) {
    assert.deepEqual(extendRelayPath({ molecule_path: strange }, 'ws_a'), ['ws_a'])
  }
})

test('a message that comes back to a relay is refused with the whole circle, and so is a long path', () => {
  const circle = { molecule_path: ['ws_a', 'ws_b'] }
  assert.throws(() => refuseLoop(circle, 'ws_a'), { code: 'forbidden', message: /circle: ws_a -> ws_b -> ws_a$/ })
  refuseLoop(circle, 'ws_c')
  const long = { molecule_path: ['1', '2', '3', '4', '5'] }
  assert.throws(() => refuseLoop(long, 'ws_c'), { code: 'forbidden', message: /already passed 5 relays: 1 -> 2/ })
})
