import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createOpenBodies } from './open-bodies.ts'

const LIMITS = { perOwnerMax: 2, perOwnerBytesMax: 100, inAllMax: 3, inAllBytesMax: 150, smallBytesMax: 10 }
const TOO_MANY = { code: 'too_many_requests', retryable: true, details: { retryAfterMs: 2000 } }

test('PL-31 an owner and all owners have a number of unfinished bodies, and a closed one counts no more', () => {
  const bodies = createOpenBodies(LIMITS)
  const first = bodies.open('a')
  bodies.open('a')
  assert.throws(() => bodies.open('a'), TOO_MANY)
  bodies.open('b')
  assert.throws(() => bodies.open('c'), TOO_MANY)
  first.close()
  bodies.open('c')
  assert.throws(() => bodies.open('a'), TOO_MANY)
})

test('PL-31 an owner has a number of bytes in unfinished bodies, whose bytes are given back at the end', () => {
  const bodies = createOpenBodies(LIMITS)
  const [one, other] = [bodies.open('a'), bodies.open('a')]
  one.add(60)
  other.add(40)
  assert.throws(() => other.add(1), TOO_MANY)
  one.close()
  other.add(1)
})

test('PL-31 large bodies of all owners have a number of bytes, and small bodies pass beside them', () => {
  const bodies = createOpenBodies(LIMITS)
  const [one, other] = [bodies.open('a'), bodies.open('b')]
  one.add(100)
  other.add(50)
  const small = bodies.open('c')
  small.add(10)
  assert.throws(() => small.add(1), TOO_MANY)
  one.close()
  small.add(1)
})
