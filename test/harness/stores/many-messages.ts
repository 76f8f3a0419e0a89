/**
 * Fills a store with many settled messages by SQL: copies of one task that the platform itself has answered, so that each
 * row has all columns of a real one. Ten messages are one conversation; each message is a task of its own.
 */
import { type Row, type Store, sql, type Transaction } from '../../../src/store/store.ts'

export interface CopyMessagesOptions {
  /** A task of one message, settled, whose text contains `COPIED_TEXT`. Its copies are older. */
  readonly taskId: string
  readonly count: number
  /** How many copies are there already. */
  readonly after?: number
  /** Each so many copies one has `LARGE_BYTES` of text; 0 = none. */
  readonly largeEach?: number
}

export const COPIED_TEXT = 'copied'
export const MESSAGES_OF_CONVERSATION = 10
const LARGE_BYTES = 64 * 1024
/** Copies of one transaction. */
const BATCH = 20_000

/** The id of a conversation of copies; the first is 0. */
export const copiedConversation = (conversation: number): string => `02AAAAAAAAAAAAAAA${100_000_000 + conversation}`

export async function copyMessages(store: Store, options: CopyMessagesOptions): Promise<void> {
  const { taskId, count, after = 0, largeEach = 0 } = options
  for (let from = after; from < after + count; from += BATCH) {
    const until = Math.min(from + BATCH, after + count)
    await store.write(() => copyBatch({ taskId, from, until, largeEach, engine: store.engine }))
  }
}

interface Batch {
  readonly taskId: string
  readonly from: number
  readonly until: number
  readonly largeEach: number
  readonly engine: Store['engine']
}

const idOf = (prefix: string, number: string): string =>
  `'${prefix}AAAAAAAAAAAAAAA' || cast(100000000 + ${number} as text)`
const MESSAGE_ID = idOf('01', 'i')
const CONVERSATION_ID = idOf('02', `(i / ${MESSAGES_OF_CONVERSATION})`)

function* copyBatch({ taskId, from, until, largeEach, engine }: Batch): Transaction<void> {
  const [message] = yield* sql<{ workspace_id: string; conversation_id: string }>(
    'select workspace_id, conversation_id from messages where id = $1',
    [taskId],
  )
  if (message === undefined) throw new Error(`there is no task ${taskId}`)
  const [events] = yield* sql<{ low: number; high: number }>(
    'select min(seq) as low, max(seq) as high from events where task_id = $1',
    [taskId],
  )
  const { low, high } = events ?? { low: 0, high: 0 }
  const numbers = { from, until }
  const older = (column: string) => ({ [column]: `t.${column} - 1000000 + i` })
  const text = `case when ${largeEach} > 0 and i % ${Math.max(1, largeEach)} = 0 then '${'x'.repeat(LARGE_BYTES)}' else 'word' || cast(i as text) end`
  const ids = { conversation_id: CONVERSATION_ID }
  yield* copyRows({
    table: 'conversations',
    where: `t.id = '${message.conversation_id}' and i % ${MESSAGES_OF_CONVERSATION} = 0`,
    numbers,
    columns: {
      id: CONVERSATION_ID,
      context_id: CONVERSATION_ID,
      last_n: `${MESSAGES_OF_CONVERSATION}`,
      settled_n: `${MESSAGES_OF_CONVERSATION}`,
    },
  })
  yield* copyRows({
    table: 'tasks',
    where: `t.id = '${taskId}'`,
    numbers,
    columns: { ...ids, id: MESSAGE_ID, context_id: CONVERSATION_ID, ...older('created_at'), ...older('updated_at') },
  })
  yield* copyRows({
    table: 'messages',
    where: `t.id = '${taskId}'`,
    numbers,
    columns: {
      ...ids,
      id: MESSAGE_ID,
      task_id: MESSAGE_ID,
      n: `i % ${MESSAGES_OF_CONVERSATION} + 1`,
      dedupe: `cast(${MESSAGE_ID} as ${engine === 'sqlite' ? 'blob' : 'bytea'})`,
      envelope: `replace(t.envelope, '${COPIED_TEXT}', ${text})`,
      ...older('admitted_at'),
      ...older('ready_at'),
      ...older('settled_at'),
      ...older('leased_at'),
    },
  })
  yield* copyRows({
    table: 'events',
    where: `t.task_id = '${taskId}'`,
    numbers,
    columns: {
      seq: `${high} + i * ${high - low + 1} + t.seq - ${low} + 1`,
      task_id: MESSAGE_ID,
      message_id: MESSAGE_ID,
      ...older('at_ms'),
    },
  })
  yield* copyRows({
    table: 'turn_usage',
    where: `t.message_id = '${taskId}'`,
    numbers,
    columns: { message_id: MESSAGE_ID, task_id: MESSAGE_ID, ...older('ended_at') },
  })
  yield* sql('update workspace_load set seq = $1 where workspace_id = $2', [
    high + until * (high - low + 1),
    message.workspace_id,
  ])
}

interface CopiedRows {
  readonly table: string
  readonly where: string
  readonly numbers: { readonly from: number; readonly until: number }
  /** The columns that differ, as expressions of the row `t` and the number `i`. */
  readonly columns: Readonly<Record<string, string>>
}

function* copyRows({ table, where, numbers: { from, until }, columns }: CopiedRows): Transaction<void> {
  const [one] = yield* sql<Row>(`select * from ${table} limit 1`)
  const names = Object.keys(one ?? {})
  if (names.length === 0) return
  const values = names.map((name) => columns[name] ?? `t.${name}`)
  yield* sql(
    `insert into ${table} (${names.join(', ')})
     with recursive numbers(i) as (select ${from} union all select i + 1 from numbers where i + 1 < ${until})
     select ${values.join(', ')} from numbers, ${table} t where ${where}`,
  )
}
