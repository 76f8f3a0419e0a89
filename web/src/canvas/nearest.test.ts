import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nearestCard } from './nearest.ts'

const places = new Map([
  ['top', { x: 300, y: 0 }],
  ['left', { x: 0, y: 200 }],
  ['middle', { x: 300, y: 200 }],
  ['right', { x: 600, y: 220 }],
])

test('CV-5 arrow keys lead to the nearest card in their direction', () => {
  assert.equal(nearestCard(places, 'top', 'ArrowDown'), 'middle')
  assert.equal(nearestCard(places, 'middle', 'ArrowLeft'), 'left')
  assert.equal(nearestCard(places, 'middle', 'ArrowRight'), 'right')
  assert.equal(nearestCard(places, 'right', 'ArrowUp'), 'middle')
  assert.equal(nearestCard(places, 'top', 'ArrowUp'), undefined)
  assert.equal(nearestCard(places, 'gone', 'ArrowUp'), 'top')
})
