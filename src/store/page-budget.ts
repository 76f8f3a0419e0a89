/**
 * The byte budget of a page. Rows alone do not bound a page: 30 tasks with artifacts of 8 MB stopped the platform for
 * 6 s. The database adds up the sizes of the stored texts, so a page is cut before any of it is read or parsed.
 */
import { MoleculeError } from '../errors.ts'

/** A page has at most this many bytes of stored text. A single row that is larger comes alone. */
export const PAGE_BYTES_MAX = 1024 * 1024
/** For followers of a log: a thousand of them may hold a page each. */
export const FOLLOW_BYTES_MAX = 256 * 1024

/**
 * The rows of `select`, in this order, that fit into the budget, and at least one. `select` must have a column `bytes`
 * (`octet_length` reads the size of a text on both engines without reading the text) and should select keys only: the
 * database keeps its rows in memory to add up their sizes.
 */
export const withinPage = (select: string, order: string, bytesMax = PAGE_BYTES_MAX): string =>
  `select * from (select p.*, sum(p.bytes) over (order by ${order} rows unbounded preceding) as bytes_through
     from (${select}) p) b where b.bytes_through <= ${bytesMax} or b.bytes_through = b.bytes`

/** A budget for texts that a page reads one by one, because only some of its rows need them. */
export interface ByteBudget {
  /** False when the page is full. The first text of a page always fits. */
  take(bytes: number): boolean
}

export function createByteBudget(bytesMax: number): ByteBudget {
  let taken = 0
  let isEmpty = true
  return {
    take(bytes) {
      if (!isEmpty && taken + bytes > bytesMax) return false
      isEmpty = false
      taken += bytes
      return true
    },
  }
}

/** A cursor of a list that is ordered by a time and an id. */
export interface TimeCursor {
  readonly atMs: number
  readonly id: string
}

export const writeTimeCursor = ({ atMs, id }: TimeCursor): string => `${atMs}.${id}`

/** Throws `invalid_request` for a text that is no cursor. */
export function readTimeCursor(text: string): TimeCursor {
  const [, atMs, id] = /^(\d{1,15})\.([\w-]{1,64})$/.exec(text) ?? []
  if (atMs !== undefined && id !== undefined) return { atMs: Number(atMs), id }
  throw new MoleculeError('invalid_request', 'after must be the "next" of an earlier page', {
    details: { path: 'after' },
  })
}
