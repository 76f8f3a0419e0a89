/**
 * Deliveries: replies that a door pushes, as durable rows. `sending` is committed before the call. A delivery that is
 * found `sending` after a crash may have arrived, so it is not repeated by itself.
 */
import { MoleculeError, toMoleculeError } from '../../errors.ts'
import { withinPage } from '../../store/page-budget.ts'
import { type Store, sql, statement, type Transaction, together } from '../../store/store.ts'
import type { Deliveries, Delivery, DeliveryBody, DeliveryDecision, DeliveryPart, DeliveryResult } from '../delivery.ts'
import { nameDelivery } from '../delivery-name.ts'
import { recordChange } from '../rows/log.ts'
import type { DeliveryHints } from './delivery-hints.ts'
import { insertDelivery, sendOn } from './insert-delivery.ts'
import { GIVE_UP_MS, retryDelayMs } from './retry-schedule.ts'

/** A person waits for the answer: after an outage it arrives within this time. */
const RETRY_MS_MAX = 5 * 60_000
/** Without a connection, or without the time at which a limit ends. */
const LATER_MS = 5000
/** The oldest are listed, within the bytes of a page; later ones appear as these are resolved. */
const LIST_MAX = 200

export interface DeliveriesOptions {
  readonly store: Store
  /** A task changed, or without one, the workspace. */
  readonly changed: (workspaceId: string, taskId?: string) => void
  readonly host: string
  readonly hints: DeliveryHints
}

export function createDeliveries({ store, changed, host, hints }: DeliveriesOptions): Deliveries {
  const write = async (transaction: () => Transaction<TaskOfDelivery | undefined>) => {
    const row = await store.write(transaction)
    if (row !== undefined) changed(row.workspace_id, row.task_id ?? undefined)
  }
  return {
    async take(door, split) {
      for (;;) {
        // A door looks often: without this read, every look would be a write.
        const due = await store.read(() => findDue(door))
        if (due === undefined) return undefined
        const made = split === undefined ? undefined : partsOf(due, split)
        const taken = await store.write(() => take(due.id, { door, host, contents: made?.contents }))
        // Another process has it. The door asks again, because this one may be locked for a while.
        if (taken === undefined) return undefined
        const { error } = made ?? {}
        if (error === undefined || (taken.parts?.length ?? 0) > 0) return taken
        await write(() => finish(due.id, { type: 'failed', error, final: true }))
      }
    },
    async add(delivery) {
      await store.write(() => insertDelivery(delivery))
      hints.written()
    },
    async forward(door, find) {
      for (let hasNext = true; hasNext; ) {
        const due = await store.read(() => findDue(door))
        if (due === undefined) return
        hasNext = await sendOn(due.id, await find(toDelivery(due)), store)
        hints.written()
      }
    },
    async hurry(door, channel) {
      await store.write(() => sql(HURRY, [door, channel]))
      hints.written()
    },
    async withdraw(id) {
      const set = `state = 'failed', error = 'it is no longer needed', finished_at = now_ms()`
      await store.write(() => sql(`update deliveries set ${set} where id = $1 and finished_at is null`, [id]))
    },
    dueInMs: (door) => store.read(() => findDueTime(door)),
    watch: hints.watch,
    async beginPart(id, n, content) {
      await store.write(() => beginPart(id, n, content))
    },
    async partSent(id, n, receipt) {
      const set = `state = 'sent', receipt = $3`
      const sent = statement(`update delivery_parts set ${set} where delivery_id = $1 and n = $2`, [id, n, receipt])
      await store.write(() => together([sent, statement('update deliveries set tries = 1 where id = $1', [id])]))
    },
    async interrupted(door) {
      // The door sends nothing yet, so what is being sent was begun by a process that is gone.
      await store.write(() => markUnknown('door', door))
      return await store.read(() => findInterrupted(door))
    },
    unknown: (door) => store.read(() => findInterrupted(door)),
    hasOpen: (door, channel, taskId) => store.read(() => hasOpen(door, channel, taskId)),
    lastReceipt: (door, channel) => store.read(() => findLastReceipt(door, channel)),
    async resume(id, receipt) {
      await write(() => resume(id, receipt))
      hints.written()
    },
    finish: (id, result) => write(() => finish(id, result)),
    async move(door, from, to) {
      const open = `door = $1 and channel = $2 and finished_at is null`
      await store.write(() => sql(`update deliveries set channel = $3 where ${open}`, [door, from, to]))
      hints.written()
    },
    async endDoor(door) {
      for (const workspaceId of await store.write(() => endDoor(door))) changed(workspaceId)
    },
    needingDecision: () => store.read(needingDecision),
    async resolve(id, decision, resolver) {
      await write(() => resolve(id, decision, resolver))
      hints.written()
    },
  }
}

const HURRY = `update deliveries set next_at = now_ms() where door = $1 and channel = $2 and state = 'pending'`

interface DeliveryRow {
  id: string
  workspace_id: string
  task_id: string | null
  channel: string
  body: string
  tries: number
}

function toDelivery(row: DeliveryRow): Delivery {
  const body = JSON.parse(row.body) as DeliveryBody
  const { id, workspace_id: workspaceId, task_id: taskId, channel, tries } = row
  return { id, workspaceId, ...(taskId !== null && { taskId }), channel, body, tries }
}

/** The oldest open delivery of a channel only, so that a later one never overtakes it. */
const NEXT = `from deliveries d
     where d.door = $1 and d.state in ('pending', 'sending') and d.state <> 'sending' and not exists (
       select 1 from deliveries o where o.door = d.door and o.channel = d.channel and o.id < d.id
         and o.state in ('pending', 'sending'))`
const DUE = `select d.id, d.workspace_id, d.task_id, d.channel, d.body, d.tries ${NEXT} and d.next_at <= now_ms()
     order by d.id limit 1`
const DUE_TIME = `select min(d.next_at) - now_ms() as due_in ${NEXT}`

function* findDue(door: string): Transaction<DeliveryRow | undefined> {
  const [row] = yield* sql<DeliveryRow>(DUE, [door])
  return row
}

function* findDueTime(door: string): Transaction<number | undefined> {
  const [row] = yield* sql<{ due_in: number | null }>(DUE_TIME, [door])
  return typeof row?.due_in === 'number' ? Math.max(0, row.due_in) : undefined
}

type Split = (body: DeliveryBody) => readonly string[]

/** An answer that cannot be split fails alone; thrown, it would end every later delivery of the door with it. */
function partsOf(row: DeliveryRow, split: Split): { contents: readonly string[]; error?: string } {
  try {
    return { contents: split(toDelivery(row).body) }
  } catch (error) {
    return { contents: [], error: `the answer could not be split into messages: ${toMoleculeError(error).message}` }
  }
}

/** Undefined when this delivery is no longer the next one. Without `contents`, parts are not read. */
function* take(
  id: string,
  { door, host, contents }: { door: string; host: string; contents: readonly string[] | undefined },
): Transaction<Delivery | undefined> {
  const [row] = yield* sql<DeliveryRow>(`${DUE} /*for update skip locked*/`, [door])
  if (row?.id !== id) return undefined
  yield* sql(`update deliveries set state = 'sending', sender = $2, tries = tries + 1 where id = $1`, [id, host])
  const delivery = toDelivery(row)
  return contents === undefined ? delivery : { ...delivery, parts: yield* ensureParts(id, contents) }
}

function* ensureParts(id: string, contents: readonly string[]): Transaction<DeliveryPart[]> {
  const known = yield* readParts(id)
  if (known.length > 0) return known
  yield* together(
    contents.map((content, n) =>
      statement(`insert into delivery_parts (delivery_id, n, content, state) values ($1, $2, $3, 'pending')`, [
        ...[id, n],
        content,
      ]),
    ),
  )
  return contents.map((content, n) => ({ n, content, state: 'pending' }))
}

function* beginPart(id: string, n: number, content: string | undefined): Transaction<void> {
  yield* sql(
    `update delivery_parts set state = 'sending', tried_at = coalesce(tried_at, now_ms()), content = coalesce($3, content)
     where delivery_id = $1 and n = $2`,
    [id, n, content ?? null],
  )
}

interface PartRow extends Pick<DeliveryPart, 'n' | 'content' | 'state'> {
  receipt: string | null
  age: number | null
}

function* hasOpen(door: string, channel: string, taskId = ''): Transaction<boolean> {
  const rows = yield* sql(
    `select 1 as there from deliveries where door = $1 and channel = $2 and state in ('pending', 'sending')
       and (task_id = $3 or $3 = '') limit 1`,
    [door, channel, taskId],
  )
  return rows.length > 0
}

function* findLastReceipt(door: string, channel: string): Transaction<string | undefined> {
  const [row] = yield* sql<{ receipt: string }>(
    `select receipt from deliveries where door = $1 and channel = $2 and state = 'sent' and receipt is not null
     order by id desc limit 1`,
    [door, channel],
  )
  return row?.receipt
}

function* readParts(id: string): Transaction<DeliveryPart[]> {
  const rows = yield* sql<PartRow>(
    'select n, content, state, receipt, now_ms() - tried_at as age from delivery_parts where delivery_id = $1 order by n',
    [id],
  )
  return rows.map(({ age, receipt, ...part }) => ({
    ...part,
    ...(age !== null && { triedAgoMs: Number(age) }),
    ...(receipt !== null && { receipt }),
  }))
}

/** Both states are named so that the planner uses the index of deliveries that no person has handled. */
function* findInterrupted(door: string): Transaction<Delivery[]> {
  const rows = yield* sql<DeliveryRow>(
    `select d.id, d.workspace_id, d.task_id, d.channel, d.body, d.tries from deliveries d
     where d.door = $1 and d.state in ('failed', 'unknown') and d.finished_at is null and d.state = 'unknown' and exists (
       select 1 from delivery_parts p where p.delivery_id = d.id and p.state = 'sending')
     order by d.id limit ${LIST_MAX}`,
    [door],
  )
  const found: Delivery[] = []
  for (const row of rows) found.push({ ...toDelivery(row), parts: yield* readParts(row.id) })
  return found
}

function* resume(id: string, receipt: string | undefined): Transaction<TaskOfDelivery | undefined> {
  const set = receipt === undefined ? `state = 'pending'` : `state = 'sent', receipt = $2`
  const values = receipt === undefined ? [id] : [id, receipt]
  yield* sql(`update delivery_parts set ${set} where delivery_id = $1 and state = 'sending'`, values)
  const [row] = yield* sql<TaskOfDelivery>(
    `update deliveries set state = 'pending', next_at = now_ms() where id = $1 and state = 'unknown'
     returning ${TASK_COLUMNS}`,
    [id],
  )
  if (row === undefined) return undefined
  yield* noteDelivery(row, { text: `${nameOf(row)} goes on where it was cut off`, by: 'platform' })
  return row
}

/** Returns the workspaces that had open deliveries to this door. */
function* endDoor(door: string): Transaction<string[]> {
  const rows = yield* sql<TaskOfDelivery>(
    `update deliveries set state = 'failed', error = 'the channel was removed', finished_at = now_ms()
     where door = $1 and finished_at is null returning ${TASK_COLUMNS}`,
    [door],
  )
  const byWorkspace = new Map(rows.map((row) => [row.workspace_id, row]))
  for (const row of byWorkspace.values())
    yield* noteDelivery(row, {
      text: `the channel ${door} was removed; open answers to it are dropped`,
      by: 'platform',
    })
  return [...byWorkspace.keys()]
}

/** Returns the task where the delivery now needs a person. */
function* finish(id: string, result: DeliveryResult): Transaction<TaskOfDelivery | undefined> {
  const [row] = yield* sql<TaskOfDelivery & { tries: number; age: number }>(
    `select ${TASK_COLUMNS}, tries, now_ms() - created_at as age from deliveries
     where id = $1 and state = 'sending' /*for update*/`,
    [id],
  )
  // A door whose answer was lost repeats its call: a finished delivery stays as it is.
  if (row === undefined) return undefined
  if (result.type === 'sent') {
    yield* sql(
      `update deliveries set state = 'sent', receipt = $2, error = null, finished_at = now_ms() where id = $1`,
      [id, result.receipt ?? null],
    )
    yield* sql('delete from delivery_parts where delivery_id = $1', [id])
    return undefined
  }
  if (result.type === 'unknown') {
    yield* sql(`update deliveries set state = 'unknown', error = $2 where id = $1`, [id, result.error])
    yield* noteDelivery(row, { text: `${nameOf(row)} may not have arrived`, by: 'platform' })
    return row
  }
  yield* sql(`update delivery_parts set state = 'pending' where delivery_id = $1 and state = 'sending'`, [id])
  const isTry = result.type === 'failed'
  const givenUp = (isTry && result.final === true) || row.age >= GIVE_UP_MS
  yield* sql('update deliveries set state = $2, error = $3, next_at = now_ms() + $4, tries = $5 where id = $1', [
    id,
    givenUp ? 'failed' : 'pending',
    result.error,
    result.retryAfterMs ?? (isTry ? Math.min(retryDelayMs(row.tries), RETRY_MS_MAX) : LATER_MS),
    isTry ? row.tries : row.tries - 1,
  ])
  if (!givenUp) return undefined
  yield* noteDelivery(row, { text: `${nameOf(row)} could not be sent`, by: 'platform' })
  return row
}

const TASK_COLUMNS = 'workspace_id, task_id, message_id, door'

/** Task and message are null for a delivery that belongs to a workspace only. */
interface TaskOfDelivery {
  workspace_id: string
  task_id: string | null
  message_id: string | null
  door: string
}

/** What a person reads of it in the activity. */
const nameOf = (row: TaskOfDelivery): string => `the ${nameDelivery(row).text}`

/** Writes into the log of the workspace, so that live readers see a change of what needs a person. */
function* noteDelivery(row: TaskOfDelivery, note: { readonly text: string; readonly by: string }): Transaction<void> {
  const { workspace_id: workspaceId, task_id: taskId, message_id: messageId } = row
  const about = taskId === null || messageId === null ? {} : { taskId, messageId }
  const [load] = yield* sql('select slots from workspace_load where workspace_id = $1 /*for update*/', [workspaceId])
  // A deleted workspace has no log.
  if (load === undefined) return
  const entries = [{ ...about, items: [{ t: 'note', type: 'delivery', ...note } as const] }]
  yield* together(recordChange({ workspaceId, entries }))
}

/**
 * At start: deliveries that this host was sending when it died may have arrived. One in parts is unknown only when one of
 * its parts was being sent; else it goes on with the next part. Returns how many are unknown now.
 */
export const markSendingUnknown = (host: string): Transaction<number> => markUnknown('sender', host)

function* markUnknown(column: 'sender' | 'door', value: string): Transaction<number> {
  yield* sql(
    `update deliveries set state = 'pending' where state = 'sending' and ${column} = $1
       and exists (select 1 from delivery_parts p where p.delivery_id = deliveries.id)
       and not exists (select 1 from delivery_parts p where p.delivery_id = deliveries.id and p.state = 'sending')`,
    [value],
  )
  const rows = yield* sql<TaskOfDelivery>(
    `update deliveries set state = 'unknown', error = 'the platform stopped while it was being sent'
     where state = 'sending' and ${column} = $1 returning ${TASK_COLUMNS}`,
    [value],
  )
  for (const row of rows) yield* noteDelivery(row, { text: `${nameOf(row)} may not have arrived`, by: 'platform' })
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

function* resolve(id: string, decision: DeliveryDecision, resolver: string): Transaction<TaskOfDelivery | undefined> {
  const change =
    decision === 'resend'
      ? `state = 'pending', tries = 0, next_at = now_ms(), created_at = now_ms()`
      : 'finished_at = now_ms()'
  const [row] = yield* sql<TaskOfDelivery>(
    `update deliveries set ${change} where id = $1 and state in ('failed', 'unknown') and finished_at is null
     returning ${TASK_COLUMNS}`,
    [id],
  )
  if (row === undefined) throw new MoleculeError('not_found', `there is no delivery ${id} that needs a decision`)
  if (decision === 'resend')
    yield* sql(`update delivery_parts set state = 'pending' where delivery_id = $1 and state = 'sending'`, [id])
  const text = decision === 'resend' ? 'is sent again' : 'counts as arrived, or is no longer needed'
  yield* noteDelivery(row, { text: `${nameOf(row)} ${text}`, by: resolver })
  return row
}
