/**
 * Places the cards: each parent above its children, siblings side by side. Many children without children of their own
 * are packed into rows, so that a large team stays readable. All cards have the same size, so that no card moves when
 * another one gets a banner. Pure: the same workspaces give the same places.
 */
import type { FamilyTree } from './families.ts'

export const CARD_WIDTH = 248
/** Room for the name, two lines of a role or one line and a banner, and the line of counts. */
export const CARD_HEIGHT = 160
const GAP_X = 16
const GAP_Y = 16
/** Between a parent and its children: room for the wire. */
const LEVEL_GAP = 56
/** Families stand side by side up to one of these multiples of the room's width; the one that shows them largest is taken. */
const ROW_FACTORS = [1, 1.25, 1.6, 2, 2.5, 3.2, 4]
const LEAF_COLUMNS_MAX = 4
const FAMILY_GAP = 48

export interface CardPlace {
  readonly x: number
  readonly y: number
}

/** By workspace id. */
export type CardPlaces = ReadonlyMap<string, CardPlace>

interface Block {
  readonly width: number
  readonly height: number
  readonly places: readonly CardEntry[]
}

type CardEntry = readonly [id: string, place: CardPlace]

/** The size of the map. */
export interface MapRoom {
  readonly width: number
  readonly height: number
}

/** The place of each card by workspace id: families in rows, so that all of them are as large as the room allows. */
export function layOut(families: readonly FamilyTree[], room: MapRoom): CardPlaces {
  // Single cards follow after the families, packed like leaves.
  const grouped = families.filter(({ children }) => children.length > 0).map(layOutTree)
  const single = families.filter(({ children }) => children.length === 0)
  const blocks = single.length > 0 ? [...grouped, packLeaves(single)] : grouped
  let best: (Block & { readonly zoom: number }) | undefined
  for (const factor of ROW_FACTORS) {
    const block = inRows(blocks, room.width * factor)
    const zoom = Math.min(1, room.width / block.width, room.height / block.height)
    if (best === undefined || zoom > best.zoom) best = { ...block, zoom }
  }
  return new Map(best?.places)
}

const move = ([id, { x, y }]: CardEntry, dx: number, dy: number): CardEntry => [id, { x: x + dx, y: y + dy }]

function inRows(blocks: readonly Block[], widthMax: number): Block {
  const places: CardEntry[] = []
  let [x, y, rowHeight, width] = [0, 0, 0, 0]
  for (const block of blocks) {
    if (x > 0 && x + block.width > widthMax) {
      y += rowHeight + FAMILY_GAP
      x = 0
      rowHeight = 0
    }
    for (const entry of block.places) places.push(move(entry, x, y))
    width = Math.max(width, x + block.width)
    x += block.width + FAMILY_GAP
    rowHeight = Math.max(rowHeight, block.height)
  }
  return { width, height: y + rowHeight, places }
}

export function hasSamePlaces(one: CardPlaces, other: CardPlaces): boolean {
  if (one.size !== other.size) return false
  for (const [id, { x, y }] of one) {
    const place = other.get(id)
    if (place === undefined || place.x !== x || place.y !== y) return false
  }
  return true
}

/** So many of the places: first those that come first, each group in its order. The result keeps the order of all. */
export function takeFirst(places: CardPlaces, count: number, comesFirst: (place: CardPlace) => boolean): CardPlaces {
  if (count >= places.size) return places
  const { first = [], other = [] } = Object.groupBy(places, ([, place]) => (comesFirst(place) ? 'first' : 'other'))
  const taken = new Set([...first, ...other].slice(0, count).map(([id]) => id))
  return new Map([...places].filter(([id]) => taken.has(id)))
}

function layOutTree({ workspace, children }: FamilyTree): Block {
  if (children.length === 0) {
    return { width: CARD_WIDTH, height: CARD_HEIGHT, places: [[workspace.id, { x: 0, y: 0 }]] }
  }
  const parents = children.filter((child) => child.children.length > 0)
  const leaves = children.filter((child) => child.children.length === 0)
  const blocks =
    leaves.length > LEAF_COLUMNS_MAX ? [...parents.map(layOutTree), packLeaves(leaves)] : children.map(layOutTree)
  const below = besides(blocks, GAP_X)
  const width = Math.max(CARD_WIDTH, below.width)
  const shift = (width - below.width) / 2
  const top = CARD_HEIGHT + LEVEL_GAP
  return {
    width,
    height: top + below.height,
    places: [
      [workspace.id, { x: (width - CARD_WIDTH) / 2, y: 0 }],
      ...below.places.map((entry) => move(entry, shift, top)),
    ],
  }
}

function besides(blocks: readonly Block[], gap: number): Block {
  const places: CardEntry[] = []
  let x = 0
  for (const block of blocks) {
    for (const entry of block.places) places.push(move(entry, x, 0))
    x += block.width + gap
  }
  return { width: x - gap, height: Math.max(...blocks.map(({ height }) => height)), places }
}

/** Rows of cards without children, about as wide as they are high, and at most four in a row below a parent. */
function packLeaves(leaves: readonly FamilyTree[]): Block {
  const columns = Math.min(leaves.length, Math.max(LEAF_COLUMNS_MAX, Math.ceil(Math.sqrt(leaves.length / 2))))
  const rows = Math.ceil(leaves.length / columns)
  const placeOf = (index: number): CardPlace => ({
    x: (index % columns) * (CARD_WIDTH + GAP_X),
    y: Math.floor(index / columns) * (CARD_HEIGHT + GAP_Y),
  })
  return {
    width: columns * (CARD_WIDTH + GAP_X) - GAP_X,
    height: rows * (CARD_HEIGHT + GAP_Y) - GAP_Y,
    places: leaves.map(({ workspace }, index) => [workspace.id, placeOf(index)]),
  }
}
