/** Delegated messages whose end, or whose parent's end, is not handled yet. */
import { sql, type Transaction } from '../../store/store.ts'
import { IS_GIVEN_UP, inStates } from '../rows/message.ts'
import { messagesOfTask } from '../rows/task-messages.ts'

/** Children of each kind handled in one pass; the next pass handles the rest. */
const CHILDREN_MAX = 100

interface OrphanRow {
  task_id: string
  workspace_id: string
}

/** Open children of a parent that was cancelled or is dead. */
export function* findOrphans(): Transaction<OrphanRow[]> {
  return yield* sql<OrphanRow>(
    `select distinct m.task_id, m.workspace_id from messages m join messages p on p.id = m.parent_id
     where m.child_open = 1 and m.settled_at is null and not m.${inStates('stopping')}
       and p.${IS_GIVEN_UP} limit ${CHILDREN_MAX}`,
  )
}

export interface EndedRow {
  id: string
  workspace_id: string
  /** 1 when the turn of its parent is done and did not read it; a parent that was cancelled or failed gets no result. */
  due: number
}

/**
 * Children that have ended, whose end was not handled, and whose parent has ended or is deleted. While the parent runs,
 * its turn may still read the result. A task with another open message has no result yet.
 */
export function* findEnded(): Transaction<EndedRow[]> {
  return yield* sql<EndedRow>(
    `select m.id, m.workspace_id,
       case when p.${inStates('done')} and coalesce(m.read_epoch, 0) <> coalesce(p.settled_epoch, -1) then 1 else 0 end as due
     from messages m left join messages p on p.id = m.parent_id
     where m.child_open = 1 and m.settled_at is not null and (p.id is null or p.settled_at is not null)
       and not exists (select 1 from messages o where ${messagesOfTask('o', 'm.task_id')} and o.settled_at is null)
     order by m.settled_at, m.id limit ${CHILDREN_MAX}`,
  )
}
