/**
 * The memory of workspaces: short texts in a namespace, `workspace:<id>` for one workspace or `team:<id>` for a workspace
 * and its children, found again by their words.
 * Invariant: every statement names one namespace, and a search reads a bounded number of rows however many there are.
 *
 * Not the full-text search of the engines, which reads and ranks every match. Three common words in 50,000 of 100,000
 * memories: FTS5 40 ms and `tsvector` with GIN 113 ms, our index 2 ms on SQLite and 10 ms on PostgreSQL. `ts_rank` does not
 * prefer rare words, and the two need different SQL. They write a memory in a third and in half of our time and space.
 */
import { hash } from 'node:crypto'
import { MoleculeError } from '../errors.ts'
import { ulid } from '../ids.ts'
import { maskPatterns } from '../log.ts'
import { type Row, type Statement, type Store, sql, statement, type Transaction, together } from '../store/store.ts'
import { usesTeamMemory } from './config/config-file.ts'
import { countWords } from './memory/words.ts'
import type { Workspace } from './workspace.ts'

export type MemoryKind = 'memory' | 'summary'

export interface Memory {
  readonly id: string
  readonly namespace: string
  readonly kind: MemoryKind
  readonly text: string
  /** Who wrote it: the id of a workspace, or the name of a person's token. */
  readonly writtenBy: string
  readonly createdAtMs: number
  readonly expiresAtMs?: number
}

export interface MemoryDraft {
  readonly namespace: string
  readonly kind: MemoryKind
  readonly text: string
  readonly writtenBy: string
}

export interface MemoryPage {
  readonly memories: readonly Memory[]
  /** Pass it on to get the next page; absent on the last one. */
  readonly nextCursor?: string
}

export interface Memories {
  /** The namespace that a caller means: `workspace`, `team`, or one of them in full. Throws `forbidden` with the reason. */
  resolveNamespace(workspaceId: string, given: string): Promise<string>
  /** The namespace of the workspace itself and, unless it has `team_memory: false`, that of its team. */
  namespacesOf(workspaceId: string): Promise<string[]>
  /** The names of the workspaces that wrote these memories, by id. A deleted workspace and a person have none. */
  writersOf(memories: readonly Memory[]): Promise<ReadonlyMap<string, string>>
  /** Stores the text without secrets. Throws `unsupported_operation` when the namespace is full. */
  commit(draft: MemoryDraft): Promise<Memory>
  /** The best matches first. */
  search(namespace: string, query: string, limit: number): Promise<Memory[]>
  /** The newest first. */
  list(namespace: string, page: { readonly limit: number; readonly cursor?: string | undefined }): Promise<MemoryPage>
  /** False if the namespace has no such memory. */
  forget(namespace: string, id: string): Promise<boolean>
  /** Deletes a slice of what has expired; the number of memories. */
  prune(): Promise<number>
  /** Deletes a slice of the namespace; the number of memories. */
  forgetAll(namespace: string): Promise<number>
}

export const MEMORY_CHARACTERS_MAX = 16_000
export const QUERY_CHARACTERS_MAX = 1000
export const MEMORIES_PAGE_MAX = 100
const MEMORIES_MAX = 100_000
const SUMMARY_KEPT_MS = 30 * 24 * 3600_000
const QUERY_WORDS_MAX = 12
/** Of one word, this many of the newest memories are compared. */
const MATCHES_MAX = 500
/** Two words that are both common: their common memories are looked for among this many of the newest of each. */
const COMMON_MATCHES_MAX = 2000
/** One slice deletes some ten times as many words. */
const PRUNED_AT_ONCE = 50

export interface MemoriesOptions {
  readonly store: Store
  readonly find: (
    workspaceId: string,
  ) => Promise<(Pick<Workspace, 'id' | 'parentId'> & Partial<Pick<Workspace, 'name' | 'runtimeConfig'>>) | undefined>
}

export function createMemories({ store, find }: MemoriesOptions): Memories {
  const required = async (workspaceId: string) => {
    const own = await find(workspaceId)
    if (own === undefined) throw new MoleculeError('not_found', `there is no workspace ${workspaceId}`)
    return own
  }
  const room = createRoom()
  return {
    resolveNamespace: async (workspaceId, given) => namespaceOf(await required(workspaceId), given),
    async namespacesOf(workspaceId) {
      const own = await required(workspaceId)
      const team = usesTeamMemory(own.runtimeConfig ?? {}) ? [namespaceOf(own, 'team')] : []
      return [namespaceOf(own, 'workspace'), ...team]
    },
    async writersOf(memories) {
      const ids = [...new Set(memories.map(({ writtenBy }) => writtenBy))].filter(isWriterAgent)
      const found = await Promise.all(ids.map((id) => find(id)))
      return new Map(found.flatMap((writer) => (writer?.name === undefined ? [] : [[writer.id, writer.name]])))
    },
    async commit(draft) {
      const { namespace } = draft
      if (!room.take(namespace)) room.set(namespace, await store.read(() => countMemories(namespace)))
      const id = `mem_${ulid()}`
      const text = maskPatterns(draft.text)
      return await store.write(() => insertMemory(id, { ...draft, text }))
    },
    search: (namespace, query, limit) => store.read(() => searchMemories({ namespace, query, limit })),
    list: (namespace, page) => store.read(() => listMemories(namespace, page)),
    forget: (namespace, id) => store.write(() => deleteMemory(namespace, id)),
    prune: () => store.write(() => deleteSlice('expires_at < now_ms()', [])),
    forgetAll: (namespace) => store.write(() => deleteSlice('namespace = $1', [namespace])),
  }
}

/** Whether a workspace wrote the memory, and not a person. */
export const isWriterAgent = (writtenBy: string): boolean => writtenBy.startsWith('ws_')

/** A workspace has its own namespace, that of its children, and that of its parent. */
function namespaceOf({ id, parentId }: Pick<Workspace, 'id' | 'parentId'>, given: string): string {
  if (given === 'workspace' || given === `workspace:${id}`) return `workspace:${id}`
  if (given === 'team') return `team:${parentId ?? id}`
  if (given === `team:${id}` || (parentId !== undefined && given === `team:${parentId}`)) return given
  const allowed = [`workspace:${id}`, `team:${id}`, ...(parentId === undefined ? [] : [`team:${parentId}`])]
  const reason = `the workspace ${id} may not use the memories of ${given}; it has ${allowed.join(', ')}`
  throw new MoleculeError('forbidden', reason, { details: { namespace: given } })
}

/** The same text in the same namespace is one memory: an agent that runs again would otherwise remember it twice. */
function* insertMemory(id: string, draft: MemoryDraft): Transaction<Memory> {
  const { namespace, kind, text, writtenBy } = draft
  const keptMs = kind === 'summary' ? SUMMARY_KEPT_MS : null
  const [row] = yield* sql(
    `insert into memories (id, namespace, kind, text, hash, written_by, created_at, expires_at)
     values ($1, $2, $3, $4, $5, $6, now_ms(), now_ms() + $7)
     on conflict (namespace, hash) do update set expires_at = excluded.expires_at returning ${COLUMNS}`,
    [id, namespace, kind, text, hash('sha256', `${kind}\n${text}`, 'base64url'), writtenBy, keptMs],
  )
  const memory = toMemory(row as Row)
  if (memory.id === id) yield* insertWords(namespace, id, [...countWords(text)])
  return memory
}

/** Rows of one statement. One row a statement takes three times as long; a text for every number would never be reused. */
const ROWS_AT_ONCE = [32, 8, 2, 1]

function* insertWords(namespace: string, id: string, words: readonly [string, number][]): Transaction<void> {
  const statements: Statement[] = []
  for (let from = 0; from < words.length; ) {
    const rows = ROWS_AT_ONCE.find((size) => size <= words.length - from) ?? 1
    const slice = words.slice(from, from + rows)
    const row = (_: unknown, index: number) => `($1, $${2 * index + 3}, $2, $${2 * index + 4})`
    statements.push(
      statement(
        `insert into memory_words (namespace, word, memory_id, count) values ${slice.map(row).join(', ')}
         on conflict (namespace, word, memory_id) do nothing`,
        [namespace, id, ...slice.flat()],
      ),
    )
    from += rows
  }
  yield* together(statements)
}

/** Namespaces whose room is known. At the limit all are counted again. */
const ROOMS_MAX = 1000
/** A process takes this part of the free room before it counts again: other processes on the store write too. */
const ROOM_PART = 4

/**
 * How many memories this process may add to a namespace before it counts them again. To count before every write makes it
 * slower with every memory: 1.3 ms more on SQLite with 50,000.
 */
function createRoom() {
  const left = new Map<string, number>()
  return {
    /** False where the namespace must be counted first. */
    take(namespace: string): boolean {
      const free = left.get(namespace) ?? 0
      if (free <= 0) return false
      left.set(namespace, free - 1)
      return true
    },
    /** Throws when the namespace is full. */
    set(namespace: string, count: number): void {
      if (count >= MEMORIES_MAX) {
        const message = `${namespace} has ${MEMORIES_MAX} memories: forget some first`
        throw new MoleculeError('unsupported_operation', message)
      }
      if (left.size >= ROOMS_MAX) left.clear()
      left.set(namespace, Math.floor((MEMORIES_MAX - count) / ROOM_PART))
    },
  }
}

function* countMemories(namespace: string): Transaction<number> {
  const [row] = yield* sql<{ count: number }>('select count(*) as count from memories where namespace = $1', [
    namespace,
  ])
  return Number(row?.count ?? 0)
}

interface MemoryQuery {
  readonly namespace: string
  readonly query: string
  readonly limit: number
}

/** A memory counts more the rarer its words are and the more of them it has; of two equal ones the newer comes first. */
function* searchMemories({ namespace, query, limit }: MemoryQuery): Transaction<Memory[]> {
  const words = [...countWords(query, QUERY_WORDS_MAX).keys()]
  const found = (yield* together(
    words.map((word) => statement(NEWEST_WITH_WORD, [namespace, word])),
  )) as unknown as WordMatch[][]
  const weights = found.map((matches) => 1 / Math.log(2 + matches.length))
  const scores = new Map<string, number>()
  for (const [index, matches] of found.entries()) {
    for (const { id, count } of matches) {
      scores.set(id, (scores.get(id) ?? 0) + (weights[index] ?? 0) * (2 - 1 / count))
    }
  }
  for (const id of yield* findCommonMatches(namespace, commonWords(words, found))) {
    if (!scores.has(id)) scores.set(id, 2 * Math.min(...weights))
  }
  const best = [...scores].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? 1 : -1)).slice(0, limit)
  const rows = yield* together(best.map(([id]) => statement(SELECT_LIVE, [namespace, id])))
  return rows.flat().map(toMemory)
}

interface WordMatch {
  readonly id: string
  readonly count: number
}

/**
 * The end of a statement that stops at the limit. PostgreSQL would read and sort all rows of a word when it expects fewer
 * rows than `limit 500`, as it does without statistics: 21 ms for 29,000 rows. It does not know the value of a subselect,
 * so it reads in the order of the index: 0.1 ms.
 */
const newestFirst = (limit: number): string => `order by memory_id desc limit (select ${limit})`

const NEWEST_WITH_WORD = `select memory_id as id, count from memory_words where namespace = $1 and word = $2
  ${newestFirst(MATCHES_MAX)}`

/** The words of which not all matches were read. */
const commonWords = (words: readonly string[], found: readonly WordMatch[][]): string[] =>
  words.filter((_, index) => found[index]?.length === MATCHES_MAX)

const newestWith = (word: string): string =>
  `select memory_id as id from memory_words where namespace = $1 and word = ${word} ${newestFirst(COMMON_MATCHES_MAX)}`

/**
 * `is true` keeps PostgreSQL from making a join of it. For a prepared statement it expects one row of each word, and a join
 * then compares each row with each: 400 ms with 50,000 memories, against 2 ms with the hash table that it makes of `in`.
 */
const NEWEST_WITH_BOTH = `select id from (${newestWith('$2')}) a where (id in (${newestWith('$3')})) is true
  order by id desc limit ${MATCHES_MAX}`

/** Two common words may occur together only in a memory that is not among the newest of either. */
function* findCommonMatches(namespace: string, [first, second]: readonly string[]): Transaction<string[]> {
  if (first === undefined || second === undefined) return []
  const rows = yield* sql<{ id: string }>(NEWEST_WITH_BOTH, [namespace, first, second])
  return rows.map(({ id }) => id)
}

const COLUMNS = 'id, namespace, kind, text, written_by, created_at, expires_at'
const IS_LIVE = '(expires_at is null or expires_at > now_ms())'
const SELECT_LIVE = `select ${COLUMNS} from memories where namespace = $1 and id = $2 and ${IS_LIVE}`

function* listMemories(
  namespace: string,
  { limit, cursor }: { readonly limit: number; readonly cursor?: string | undefined },
): Transaction<MemoryPage> {
  const rows = yield* sql(
    `select ${COLUMNS} from memories where namespace = $1 and id < $2 and ${IS_LIVE} order by id desc limit $3`,
    [namespace, cursor ?? AFTER_ALL_IDS, limit + 1],
  )
  const memories = rows.slice(0, limit).map(toMemory)
  const last = memories.at(-1)
  return rows.length > limit && last !== undefined ? { memories, nextCursor: last.id } : { memories }
}

/** A letter: in the collations of most languages a sign such as `~` comes before all digits, and the list would be empty. */
const AFTER_ALL_IDS = 'mem_z'

function* deleteMemory(namespace: string, id: string): Transaction<boolean> {
  const rows = yield* sql<{ text: string }>('delete from memories where namespace = $1 and id = $2 returning text', [
    ...[namespace, id],
  ])
  for (const { text } of rows) yield* deleteWords({ namespace, id, text })
  return rows.length > 0
}

function* deleteSlice(condition: string, values: readonly string[]): Transaction<number> {
  const rows = yield* sql<{ namespace: string; id: string; text: string }>(
    `delete from memories where id in (select id from memories where ${condition} limit ${PRUNED_AT_ONCE})
     returning namespace, id, text`,
    values,
  )
  for (const row of rows) yield* deleteWords(row)
  return rows.length
}

/** The index has no key by memory: the words are those of the text. */
function* deleteWords({ namespace, id, text }: Pick<Memory, 'namespace' | 'id' | 'text'>): Transaction<void> {
  const words = [...countWords(text).keys()]
  yield* together(
    words.map((word) =>
      statement('delete from memory_words where namespace = $1 and word = $2 and memory_id = $3', [
        ...[namespace, word, id],
      ]),
    ),
  )
}

function toMemory(row: Row): Memory {
  const { id, namespace, kind, text, written_by, created_at, expires_at } = row as Record<string, string>
  return {
    id,
    namespace,
    text,
    kind: kind as MemoryKind,
    writtenBy: written_by,
    createdAtMs: Number(created_at),
    ...(expires_at !== null && { expiresAtMs: Number(expires_at) }),
  } as Memory
}
