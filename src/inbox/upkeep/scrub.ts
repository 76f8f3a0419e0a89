/**
 * The scrub: compares every stored reply with its checksum, slice by slice, so that damage is found before the reply is
 * needed. A damaged reply ends in "needs you". Nothing is changed: the bytes may help its owner.
 */
import type { Clock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import type { Log } from '../../log.ts'
import { isReplyDamaged, isWhole } from '../../protocol/stored-reply.ts'
import { withinPage } from '../../store/page-budget.ts'
import { type Store, sql, type Transaction } from '../../store/store.ts'
import type { DamagedReplies } from '../owners.ts'

/** Replies of one slice: a sweep reads one slice, so a million messages take seven hours. */
const SLICE_ROWS_MAX = 200
const PASS_MS = 3600_000
/** Damaged replies that readers met since the last slice; further ones are found by a later slice. */
const NOTED_MAX = 100

/** A store whose reads note the damaged replies that they meet. */
export interface WatchedStore {
  readonly store: Store
  /** The ids of their messages, until the scrub takes them. */
  readonly damaged: Set<string>
}

export function noteDamage(store: Store): WatchedStore {
  const damaged = new Set<string>()
  const read: Store['read'] = (transaction) => {
    const result = store.read(transaction)
    result.catch((error: unknown) => {
      if (isReplyDamaged(error) && damaged.size < NOTED_MAX) damaged.add(String(error.details['messageId']))
    })
    return result
  }
  return { store: { ...store, read }, damaged }
}

export interface Scrub extends DamagedReplies {
  /** Checks the next replies. After the last one it rests for an hour. */
  slice(): Promise<void>
}

export interface ScrubOptions extends WatchedStore {
  readonly clock: Clock
  readonly log: Log
  readonly changed: (workspaceId: string) => void
}

export function createScrub({ store, damaged, clock, log, changed }: ScrubOptions): Scrub {
  let after = ''
  let restUntilMs = 0
  const report = async (ids: readonly string[]) => {
    for (const id of ids) {
      const found = await store.write(() => recordDamage(id))
      if (found === undefined) continue
      log.error({ messageId: id, taskId: found.taskId }, 'a stored reply does not match its checksum')
      changed(found.workspaceId)
    }
  }
  const checkNext = async () => {
    if (clock.monotonicMs() < restUntilMs) return
    const from = after
    const slice = await store.read(() => checkSlice(from))
    await report(slice.damaged)
    after = slice.last ?? ''
    if (slice.last === undefined) restUntilMs = clock.monotonicMs() + PASS_MS
  }
  return {
    async slice() {
      const met = [...damaged]
      damaged.clear()
      await report(met)
      await checkNext()
    },
    async dismiss(messageId) {
      changed(await store.write(() => dismiss(messageId)))
    },
  }
}

const SLICE = `select m.id, m.reply from (${withinPage(
  `select id, coalesce(octet_length(reply), 0) as bytes from messages where id > $1
   order by id limit ${SLICE_ROWS_MAX}`,
  'p.id',
)}) k join messages m on m.id = k.id order by m.id`

function* checkSlice(after: string): Transaction<{ last: string | undefined; damaged: string[] }> {
  const rows = yield* sql<{ id: string; reply: string | null }>(SLICE, [after])
  const damaged = rows.filter(({ reply }) => reply !== null && !isWhole(reply)).map(({ id }) => id)
  return { last: rows.at(-1)?.id, damaged }
}

/** The place of the message, when its damage was not known yet. */
function* recordDamage(id: string): Transaction<{ workspaceId: string; taskId: string } | undefined> {
  const [message] = yield* sql<{ workspace_id: string; task_id: string }>(
    `select workspace_id, task_id from messages where id = $1
     and not exists (select 1 from damaged_replies d where d.message_id = $1)`,
    [id],
  )
  if (message === undefined) return undefined
  const { workspace_id: workspaceId, task_id: taskId } = message
  yield* sql(
    `insert into damaged_replies (message_id, workspace_id, task_id, found_at) values ($1, $2, $3, now_ms())
     on conflict (message_id) do nothing`,
    [id, workspaceId, taskId],
  )
  return { workspaceId, taskId }
}

function* dismiss(id: string): Transaction<string> {
  const [row] = yield* sql<{ workspace_id: string }>(
    'update damaged_replies set dismissed_at = now_ms() where message_id = $1 returning workspace_id',
    [id],
  )
  if (row === undefined) throw new MoleculeError('not_found', `message ${id} has no damaged reply`)
  return row.workspace_id
}
