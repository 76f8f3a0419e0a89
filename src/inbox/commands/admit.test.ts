/** A large letter is prepared like a small one, and other callers run meanwhile. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { letterTo } from '../../../test/fakes/letters.ts'
import { isLargeLetter, prepareLargeLetter, prepareLetter } from './admit.ts'

test('a letter of more than 256 KiB is prepared in steps, and other callers run in between', async () => {
  const letter = letterTo('ws_1')
  assert.deepEqual(
    [{}, { bytes: 262_144 }, { bytes: 262_145 }].map((size) => isLargeLetter({ ...letter, ...size })),
    [false, false, true],
  )
  let others = 0
  const other = nextTurn().then(() => {
    others += 1
  })
  assert.deepEqual(await prepareLargeLetter(letter), prepareLetter(letter))
  assert.equal(others, 1)
  await other
})
