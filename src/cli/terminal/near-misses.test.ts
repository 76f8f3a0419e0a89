import assert from 'node:assert/strict'
import test from 'node:test'
import { didYouMean, nearMisses } from './near-misses.ts'

test('CL-7 typing errors, swapped letters, other case and half words are near; other words are not', () => {
  const known = ['parrot', 'claude-code', 'pending', 'status', 'stop', 'up', 'y']
  const cases: readonly (readonly [string, readonly string[]])[] = [
    ['parot', ['parrot']],
    ['Parrto', ['parrot']],
    ['PARROT', ['parrot']],
    ['claude', ['claude-code']],
    ['pedning', ['pending']],
    ['stauts', ['status']],
    ['stpo', ['stop']],
    ['ls', []],
    ['start', []],
    ['dance', []],
    ['', []],
    ['x', []],
    ['x'.repeat(5000), []],
  ]
  for (const [typed, expected] of cases) assert.deepEqual(nearMisses(typed, known), expected, typed)
})

test('CL-7 equally near words are all named, at most three', () => {
  assert.equal(didYouMean('cot', ['cat', 'cut', 'dog']), '; did you mean "cat" or "cut"?')
  assert.equal(nearMisses('ox', ['ax', 'bx', 'cx', 'dx']).length, 3)
  assert.deepEqual(nearMisses('modle', ['model', 'model']), ['model'])
  assert.equal(didYouMean('cot', []), '')
})
