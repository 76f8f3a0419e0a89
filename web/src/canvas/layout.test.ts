import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fakeWorkspace } from '../../../test/fakes/workspace-view.ts'
import { buildFamilies } from './families.ts'
import { CARD_HEIGHT, CARD_WIDTH, type CardPlace, layOut, takeFirst } from './layout.ts'

const workspace = (id: string, parent?: string) => fakeWorkspace(id, parent === undefined ? {} : { parent_id: parent })
const ROOM = { width: 1360, height: 700 }
const place = (...all: ReturnType<typeof workspace>[]) => layOut(buildFamilies(all), ROOM)
const at = (places: ReadonlyMap<string, CardPlace>, id: string) => places.get(id) ?? { x: Number.NaN, y: Number.NaN }

test('CV-1 a parent stands above the middle of its children', () => {
  const places = place(workspace('top'), workspace('a', 'top'), workspace('b', 'top'), workspace('c', 'top'))
  assert.equal(at(places, 'top').x, at(places, 'b').x)
  assert.ok(at(places, 'a').y > at(places, 'top').y + CARD_HEIGHT)
  assert.equal(at(places, 'a').y, at(places, 'c').y)
})

test('CV-5 no two of 200 cards overlap, with any parents', () => {
  const all = Array.from({ length: 200 }, (_, index) =>
    workspace(`w${index}`, index % 7 === 0 ? undefined : `w${Math.floor(index / 7)}`),
  )
  const places = [...place(...all).values()]
  assert.equal(places.length, 200)
  for (const [index, one] of places.entries()) {
    for (const other of places.slice(index + 1)) {
      const apart = Math.abs(one.x - other.x) >= CARD_WIDTH || Math.abs(one.y - other.y) >= CARD_HEIGHT
      assert.ok(apart, `${JSON.stringify(one)} and ${JSON.stringify(other)}`)
    }
  }
})

test('families wrap to the next row where the room is narrow', () => {
  const all = buildFamilies([
    workspace('top'),
    workspace('a', 'top'),
    workspace('b', 'top'),
    workspace('c', 'top'),
    workspace('alone'),
  ])
  const wide = layOut(all, ROOM)
  const narrow = layOut(all, { width: 900, height: 700 })
  assert.equal(at(wide, 'alone').y, 0)
  assert.ok(at(narrow, 'alone').y > at(narrow, 'a').y)
})

test('CV-5 the first places are those in view, in the order of all', () => {
  const box = (y: number) => ({ x: 0, y })
  const places = new Map([
    ['far', box(900)],
    ['one', box(0)],
    ['further', box(950)],
    ['two', box(100)],
  ])
  const first = (count: number) => [...takeFirst(places, count, ({ y }) => y < 700).keys()]
  assert.deepEqual(first(1), ['one'])
  assert.deepEqual(first(2), ['one', 'two'])
  assert.deepEqual(first(3), ['far', 'one', 'two'])
  assert.equal(
    takeFirst(places, 4, () => true),
    places,
  )
})
