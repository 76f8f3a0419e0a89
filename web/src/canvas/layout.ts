/**
 * Places the cards: each parent above its children, siblings side by side. Many children without children of their own
 * are packed into rows, so that a large team stays readable. Pure: the same workspaces give the same places.
 */
import type { WorkspaceSummary } from '../../../src/client/workspace-calls.ts'
import type { FamilyTree } from './families.ts'

export const CARD_WIDTH = 248
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

export interface CardBox extends CardPlace {
  readonly height: number
}

/** By workspace id. */
export type CardPlaces = ReadonlyMap<string, CardBox>

interface Block {
  readonly width: number
  readonly height: number
  readonly places: readonly CardEntry[]
}

type CardEntry = readonly [id: string, box: CardBox]

export interface LayOutOptions {
  readonly heightOf: (workspace: WorkspaceSummary) => number
  /** The size of the map. */
  readonly room: { readonly width: number; readonly height: number }
}

/** The place of each card by workspace id: families in rows, so that all of them are as large as the room allows. */
export function layOut(families: readonly FamilyTree[], { heightOf, room }: LayOutOptions): CardPlaces {
  // Single cards follow after the families, packed like leaves.
  const grouped = families.filter(({ children }) => children.length > 0).map((tree) => layOutTree(tree, heightOf))
  const single = families.filter(({ children }) => children.length === 0)
  const blocks = single.length > 0 ? [...grouped, packLeaves(single, heightOf)] : grouped
  let best: (Block & { readonly zoom: number }) | undefined
  for (const factor of ROW_FACTORS) {
    const block = inRows(blocks, room.width * factor)
    const zoom = Math.min(1, room.width / block.width, room.height / block.height)
    if (best === undefined || zoom > best.zoom) best = { ...block, zoom }
  }
  return new Map(best?.places)
}

const move = ([id, box]: CardEntry, dx: number, dy: number): CardEntry => [id, { ...box, x: box.x + dx, y: box.y + dy }]

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
  for (const [id, { x, y, height }] of one) {
    const box = other.get(id)
    if (box === undefined || box.x !== x || box.y !== y || box.height !== height) return false
  }
  return true
}

/** So many of the places: first those that come first, each group in its order. The result keeps the order of all. */
export function takeFirst(places: CardPlaces, count: number, comesFirst: (box: CardBox) => boolean): CardPlaces {
  if (count >= places.size) return places
  const { first = [], other = [] } = Object.groupBy(places, ([, box]) => (comesFirst(box) ? 'first' : 'other'))
  const taken = new Set([...first, ...other].slice(0, count).map(([id]) => id))
  return new Map([...places].filter(([id]) => taken.has(id)))
}

type HeightOf = (workspace: WorkspaceSummary) => number

function layOutTree({ workspace, children }: FamilyTree, heightOf: HeightOf): Block {
  const height = heightOf(workspace)
  if (children.length === 0) return { width: CARD_WIDTH, height, places: [[workspace.id, { x: 0, y: 0, height }]] }
  const parents = children.filter((child) => child.children.length > 0)
  const leaves = children.filter((child) => child.children.length === 0)
  const blocks =
    leaves.length > LEAF_COLUMNS_MAX
      ? [...parents.map((child) => layOutTree(child, heightOf)), packLeaves(leaves, heightOf)]
      : children.map((child) => layOutTree(child, heightOf))
  const below = besides(blocks, GAP_X)
  const width = Math.max(CARD_WIDTH, below.width)
  const shift = (width - below.width) / 2
  const top = height + LEVEL_GAP
  return {
    width,
    height: top + below.height,
    places: [
      [workspace.id, { x: (width - CARD_WIDTH) / 2, y: 0, height }],
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
function packLeaves(leaves: readonly FamilyTree[], heightOf: HeightOf): Block {
  const columns = Math.min(leaves.length, Math.max(LEAF_COLUMNS_MAX, Math.ceil(Math.sqrt(leaves.length / 2))))
  const places: CardEntry[] = []
  let y = 0
  for (let start = 0; start < leaves.length; start += columns) {
    const row = leaves.slice(start, start + columns)
    const heights = row.map(({ workspace }) => heightOf(workspace))
    row.forEach(({ workspace }, column) => {
      places.push([workspace.id, { x: column * (CARD_WIDTH + GAP_X), y, height: heights[column] ?? 0 }])
    })
    y += Math.max(...heights) + GAP_Y
  }
  return { width: columns * (CARD_WIDTH + GAP_X) - GAP_X, height: y - GAP_Y, places }
}
