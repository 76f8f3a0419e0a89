/** The memories of a namespace as people and tools see them: in pages, the newest first, or those that match a text. */
import type { ApiAnswer } from '../api/api.ts'
import { MoleculeError } from '../errors.ts'
import { type ReadStore, sql, statement, type Transaction, together } from '../store/store.ts'
import { findMemoryIds, type MemoryQuery } from '../workspaces/memory/find-memories.ts'
import { instant, instantOf } from './instant.ts'

export interface MemoryPageQuery {
  readonly namespace: string
  readonly limit: number
  /** The `next` of the page before. */
  readonly cursor?: string | undefined
}

type MemoriesAnswer = ApiAnswer<'GET /workspaces/{id}/memories'>
type MemoryAnswer = MemoriesAnswer['memories'][number]

export const readMemories = (store: ReadStore, query: MemoryPageQuery): Promise<MemoriesAnswer> =>
  store.read(() => page(query))

/** The best matches first. */
export const searchMemories = (store: ReadStore, query: MemoryQuery): Promise<MemoryAnswer[]> =>
  store.read(() => matches(query))

/** Throws `not_found` where it was forgotten. */
export async function readMemory(store: ReadStore, namespace: string, id: string): Promise<MemoryAnswer> {
  const [row] = await store.read(() => sql<MemoryRow>(ONE, [namespace, id]))
  if (row === undefined) throw new MoleculeError('not_found', `${namespace} has no memory ${id}`)
  return memory(row)
}

interface MemoryRow {
  id: string
  namespace: string
  kind: MemoryAnswer['kind']
  text: string
  written_by: string
  created_at: number
  expires_at: number | null
}

const LIVE = `select id, namespace, kind, text, written_by, created_at, expires_at from memories
  where namespace = $1 and (expires_at is null or expires_at > now_ms())`
const ONE = `${LIVE} and id = $2`
const PAGE = `${LIVE} and id < $2 order by id desc limit $3`

/** A letter: in the collations of most languages a sign such as `~` comes before all digits, and the list would be empty. */
const AFTER_ALL_IDS = 'mem_z'

function* page({ namespace, limit, cursor = AFTER_ALL_IDS }: MemoryPageQuery): Transaction<MemoriesAnswer> {
  const rows = yield* sql<MemoryRow>(PAGE, [namespace, cursor, limit + 1])
  const memories = rows.slice(0, limit).map(memory)
  return { memories, next: (rows.length > limit && memories.at(-1)?.id) || null }
}

function* matches(query: MemoryQuery): Transaction<MemoryAnswer[]> {
  const ids = yield* findMemoryIds(query)
  const rows = yield* together(ids.map((id) => statement(ONE, [query.namespace, id])))
  return (rows.flat() as unknown as MemoryRow[]).map(memory)
}

const memory = ({ created_at, expires_at, ...row }: MemoryRow): MemoryAnswer => ({
  ...row,
  created_at: instant(created_at),
  expires_at: instantOf(expires_at) ?? null,
})
