import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type MapMarks, mergeNodes } from './card-nodes.ts'

const NO_MARKS: MapMarks = { chosenId: undefined, targetId: undefined, tabStopId: undefined }
const places = new Map([
  ['a', { x: 0, y: 0 }],
  ['b', { x: 264, y: 0 }],
])

test('CV-5 a node keeps its object until its card moves or is marked', () => {
  const before = mergeNodes([], places, NO_MARKS)
  assert.deepEqual(
    before.map(({ id, position }) => ({ id, position })),
    [
      { id: 'a', position: { x: 0, y: 0 } },
      { id: 'b', position: { x: 264, y: 0 } },
    ],
  )
  const same = new Map(places).set('b', { x: 264, y: 0 })
  for (const [index, node] of mergeNodes(before, same, NO_MARKS).entries()) assert.equal(node, before[index])
  const [a, chosen] = mergeNodes(before, places, { ...NO_MARKS, chosenId: 'b' })
  assert.equal(a, before[0])
  assert.equal(chosen?.data.isChosen, true)
  const moved = mergeNodes(before, new Map(places).set('b', { x: 264, y: 50 }), NO_MARKS)[1]
  assert.deepEqual(moved?.position, { x: 264, y: 50 })
  assert.equal(moved?.data, before[1]?.data)
})

test('a card that is held stays where the pointer is', () => {
  const held = mergeNodes([], places, NO_MARKS).map((node) => ({ ...node, position: { x: 7, y: 9 }, dragging: true }))
  for (const { position } of mergeNodes(held, places, NO_MARKS)) assert.deepEqual(position, { x: 7, y: 9 })
})

test('the node of a workspace that was deleted goes', () => {
  const before = mergeNodes([], places, NO_MARKS)
  const left = mergeNodes(before, new Map([...places].slice(1)), NO_MARKS)
  assert.deepEqual(
    left.map(({ id }) => id),
    ['b'],
  )
})
