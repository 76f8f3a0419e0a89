/**
 * Deliveries: replies that a door pushes, as durable rows. `sending` is committed before the call. A delivery that is
 * found `sending` after a crash may have arrived, so it is not repeated by itself.
 */
import { MoleculeError } from '../../errors.ts'
import { withinPage } from '../../store/page-budget.ts'
import { type Store, sql, type Transaction } from '../../store/store.ts'
import type { Deliveries, Delivery, DeliveryBody, DeliveryResult } from '../delivery.ts'
import { isGivenUp, retryDelayMs } from './retry-schedule.ts'

/** The oldest are listed, within the bytes of a page; later ones appear as these are resolved. */
const LIST_MAX = 200

export function createDeliveries(store: Store, host: string): Deliveries {
  return {
    take: (door) => store.write(() => take(door, host)),
    finish: (id, result) => store.write(() => finish(id, result)),
    needingDecision: () => store.read(needingDecision),
    resolve: (id, decision) => store.write(() => resolve(id, decision)),
  }
}

interface DeliveryRow {
  id: string
  workspace_id: string
  task_id: string
  channel: string
  body: string
  tries: number
}

function toDelivery(row: DeliveryRow): Delivery {
  const body = JSON.parse(row.body) as DeliveryBody
  const { id, workspace_id: workspaceId, task_id: taskId, channel, tries } = row
  return { id, workspaceId, taskId, channel, body, tries }
}

/** Takes the oldest open delivery of a channel only, so that a later one never overtakes it. */
function* take(door: string, host: string): Transaction<Delivery | undefined> {
  const [row] = yield* sql<DeliveryRow>(
    `select d.id, d.workspace_id, d.task_id, d.channel, d.body, d.tries from deliveries d
     where d.door = $1 and d.state in ('pending', 'sending') and d.state <> 'sending' and d.next_at <= now_ms() and not exists (
       select 1 from deliveries o where o.door = d.door and o.channel = d.channel and o.id < d.id
         and o.state in ('pending', 'sending'))
     order by d.id limit 1 /*for update skip locked*/`,
    [door],
  )
  if (row === undefined) return undefined
  yield* sql(`update deliveries set state = 'sending', sender = $2, tries = tries + 1 where id = $1`, [row.id, host])
  return toDelivery(row)
}

function* finish(id: string, result: DeliveryResult): Transaction<void> {
  const [row] = yield* sql<{ tries: number; age: number }>(
    `select tries, now_ms() - created_at as age from deliveries where id = $1 and state = 'sending' /*for update*/`,
    [id],
  )
  // A door whose answer was lost repeats its call: a finished delivery stays as it is.
  if (row === undefined) return
  if (result.type === 'sent') {
    yield* sql(
      `update deliveries set state = 'sent', receipt = $2, error = null, finished_at = now_ms() where id = $1`,
      [id, result.receipt ?? null],
    )
    return
  }
  if (result.type === 'unknown') {
    yield* sql(`update deliveries set state = 'unknown', error = $2 where id = $1`, [id, result.error])
    return
  }
  const givenUp = result.final === true || isGivenUp(row.tries, row.age)
  yield* sql('update deliveries set state = $2, error = $3, next_at = now_ms() + $4 where id = $1', [
    id,
    givenUp ? 'failed' : 'pending',
    result.error,
    retryDelayMs(row.tries),
  ])
}

/** At start: deliveries that this host was sending when it died may have arrived. Returns how many are unknown now. */
export function* markSendingUnknown(host: string): Transaction<number> {
  const rows = yield* sql(
    `update deliveries set state = 'unknown', error = 'the platform stopped while it was being sent'
     where state = 'sending' and sender = $1 returning id`,
    [host],
  )
  return rows.length
}

function* needingDecision(): Transaction<Awaited<ReturnType<Deliveries['needingDecision']>>> {
  const rows = yield* sql<DeliveryRow & { state: 'failed' | 'unknown'; error: string | null }>(
    `select d.id, d.workspace_id, d.task_id, d.channel, d.body, d.tries, d.state, d.error
     from (${withinPage(
       `select id, octet_length(body) as bytes from deliveries
        where state in ('failed', 'unknown') and finished_at is null order by id limit ${LIST_MAX}`,
       'p.id',
     )}) k join deliveries d on d.id = k.id order by d.id`,
  )
  return rows.map((row) => ({ ...toDelivery(row), state: row.state, error: row.error ?? '' }))
}

function* resolve(id: string, decision: 'resend' | 'dismiss'): Transaction<void> {
  const change =
    decision === 'resend'
      ? `state = 'pending', tries = 0, next_at = now_ms(), created_at = now_ms()`
      : 'finished_at = now_ms()'
  const rows = yield* sql(
    `update deliveries set ${change} where id = $1 and state in ('failed', 'unknown') and finished_at is null
     returning id`,
    [id],
  )
  if (rows.length === 0) throw new MoleculeError('not_found', `there is no delivery ${id} that needs a decision`)
}
