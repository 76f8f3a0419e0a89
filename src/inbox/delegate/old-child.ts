/**
 * A new attempt at a message delegates again what the attempt before had delegated. It meets its old children: the n-th
 * delegation of one text to one workspace in this attempt is the n-th such delegation of the attempt before. Otherwise
 * every retry of a parent would run all of its children again. A delegation beyond those is new: an agent that asks the
 * same twice in one attempt gets two tasks. What an earlier attempt read, this one has not (`mark-read.ts`).
 */
import { runStatement, sql, type Transaction } from '../../store/store.ts'
import type { Admitted, Letter } from '../reception.ts'
import { meetChild, meetChildByKey } from '../rows/message-updates.ts'
import type { Ancestry } from './ancestry.ts'

/** A letter that may be a repeated delegation, and its keys. */
interface RepeatedLetter {
  readonly letter: Letter
  readonly key: string
  readonly dedupe: Uint8Array
  /** Of its content. */
  readonly hash: string
}

interface OldChildRow {
  id: string
  task_id: string
  context_id: string
}

/**
 * Attaches to the oldest child of an earlier attempt that this attempt has not met yet. A key that the caller gave says
 * already which task is meant; a message id does not, because a new attempt makes new ones.
 */
export function* meetOldChild(repeated: RepeatedLetter, ancestry: Ancestry): Transaction<Admitted | undefined> {
  const { letter, key, dedupe, hash } = repeated
  const { taskId, contextId } = letter.envelope.message
  const { rootId, parentId, parentEpoch } = ancestry
  if (letter.idempotencyKey !== undefined || taskId !== undefined || parentId === null) return undefined
  const old = yield* sql<OldChildRow>(
    `select m.id, m.task_id, t.context_id from messages m join tasks t on t.id = m.task_id
     where m.root_id = $1 and m.parent_id = $2 and m.workspace_id = $3 and m.content_hash = $4 and m.parent_epoch < $5
       and m.id = m.task_id and m.replayed_as is null order by m.id`,
    [rootId, parentId, letter.workspaceId, hash, parentEpoch],
  )
  const met = old.find((row) => contextId === undefined || row.context_id === contextId)
  if (met === undefined) return undefined
  // The child gets the key of this call, so that a repeated call of this attempt attaches to it too.
  yield* runStatement(meetChild(met.id, { parentEpoch, dedupe, key }))
  return { taskId: met.task_id, contextId: met.context_id, duplicate: true }
}

/** A letter that attaches by its key: the same for a child of an earlier attempt. */
export function* meetByKey(letter: Letter, ancestry: Ancestry, knownId: string): Transaction<void> {
  // The result of a child comes from no turn, and a repeated report of it asks for nothing.
  if (letter.parent === undefined) return
  yield* runStatement(meetChildByKey(knownId, ancestry))
}
