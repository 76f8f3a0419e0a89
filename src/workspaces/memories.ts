/**
 * The memory of workspaces: short texts in a namespace, `workspace:<id>` for one workspace or `team:<id>` for a workspace
 * and its children, found again by their words.
 * Invariant: every statement names one namespace.
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
import { findMemoryIds, type MemoryQuery } from './memory/find-memories.ts'
import { countWords } from './memory/words.ts'
import type { Workspace } from './workspace.ts'

export type MemoryKind = 'memory' | 'summary'

/** A memory as a brief needs it. */
export interface Memory {
  readonly id: string
  readonly text: string
  /** Who wrote it: the id of a workspace, or the name of a person's token. */
  readonly writtenBy: string
  readonly createdAtMs: number
}

export interface MemoryDraft {
  readonly namespace: string
  readonly kind: MemoryKind
  readonly text: string
  readonly writtenBy: string
}

export interface Memories {
  /** The namespace that a caller means: `workspace`, `team`, or one of them in full. Throws `forbidden` with the reason. */
  resolveNamespace(workspaceId: string, given: string): Promise<string>
  /** The namespace of the workspace itself and, unless it has `team_memory: false`, that of its team. */
  namespacesOf(workspaceId: string): Promise<string[]>
  /** The names of the workspaces among these writers, by id. A deleted workspace and a person have none. */
  namesOfWriters(writers: readonly string[]): Promise<ReadonlyMap<string, string>>
  /** Stores the text without secrets; the id of the memory. Throws `unsupported_operation` when the namespace is full. */
  commit(draft: MemoryDraft): Promise<string>
  /** For a brief: the best matches first. */
  search(query: MemoryQuery): Promise<Memory[]>
  /** For a brief: the newest first. */
  newest(namespace: string, limit: number): Promise<Memory[]>
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
    async namesOfWriters(writers) {
      const ids = [...new Set(writers)].filter(isWriterAgent)
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
    search: (query) => store.read(() => searchMemories(query)),
    newest: (namespace, limit) => store.read(() => listNewest(namespace, limit)),
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
function* insertMemory(id: string, draft: MemoryDraft): Transaction<string> {
  const { namespace, kind, text, writtenBy } = draft
  const keptMs = kind === 'summary' ? SUMMARY_KEPT_MS : null
  const [stored] = yield* sql<{ id: string }>(
    `insert into memories (id, namespace, kind, text, hash, written_by, created_at, expires_at)
     values ($1, $2, $3, $4, $5, $6, now_ms(), now_ms() + $7)
     on conflict (namespace, hash) do update set expires_at = excluded.expires_at returning id`,
    [id, namespace, kind, text, hash('sha256', `${kind}\n${text}`, 'base64url'), writtenBy, keptMs],
  )
  if (stored?.id === id) yield* insertWords(namespace, id, [...countWords(text)])
  return stored?.id ?? id
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

const LIVE = `select id, text, written_by, created_at from memories
  where namespace = $1 and (expires_at is null or expires_at > now_ms())`

function* searchMemories(query: MemoryQuery): Transaction<Memory[]> {
  const ids = yield* findMemoryIds(query)
  const rows = yield* together(ids.map((id) => statement(`${LIVE} and id = $2`, [query.namespace, id])))
  return rows.flat().map(toMemory)
}

function* listNewest(namespace: string, limit: number): Transaction<Memory[]> {
  return (yield* sql(`${LIVE} order by id desc limit $2`, [namespace, limit])).map(toMemory)
}

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
function* deleteWords({ namespace, id, text }: { namespace: string; id: string; text: string }): Transaction<void> {
  const words = [...countWords(text).keys()]
  yield* together(
    words.map((word) =>
      statement('delete from memory_words where namespace = $1 and word = $2 and memory_id = $3', [
        ...[namespace, word, id],
      ]),
    ),
  )
}

const toMemory = ({ id, text, written_by, created_at }: Row): Memory => ({
  id: String(id),
  text: String(text),
  writtenBy: String(written_by),
  createdAtMs: Number(created_at),
})
