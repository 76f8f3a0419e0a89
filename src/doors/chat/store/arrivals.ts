/**
 * Messages that arrived and wait in the line of their place. They are read when it is their turn, so an edit or a deletion
 * counts until then, and memory has only their keys. The messages are JSON of the channel; of it this file knows `StoredMessage`.
 */
import { ulid } from '../../../ids.ts'
import { type Store, sql, type Transaction } from '../../../store/store.ts'
import { type ChatMessageKey, ensurePlace, type PlaceKey } from './chat-log.ts'

/** Messages of one place that wait; further ones are refused. With the limit of a minute it is more than an hour of them. */
export const PLACE_WAITING_MAX = 2000
/** Of all places of a channel. */
export const CHANNEL_WAITING_MAX = 20_000
/** Read at once at a start. */
const PAGE_ARRIVALS = 500
/** Of one album; further ones are the next message. Services allow ten. */
export const ALBUM_MESSAGES_MAX = 10

export interface ChatArrival extends ChatMessageKey {
  readonly messageId: string
  readonly person: string
  /** Of its place, as in `KnownPlace`. */
  readonly description: string
  /** The place is the direct chat of the person. */
  readonly isDirect: boolean
  /** The message of the channel, as JSON. */
  readonly message: string
}

/** A message that waits, by its number in the order of arrival. */
export interface ArrivalKey extends PlaceKey {
  readonly arrival: string
}

/** What its author changed: the text, or that it is gone. */
export type Revision = { readonly text: string } | { readonly isWithdrawn: true }

/** A message that was admitted and whose task was open when it was last looked at. */
export interface OpenMessage {
  readonly id: string
  readonly taskId: string
}

export interface Arrivals {
  /** Stores a message until `ChatLog.record`. `full`: too many wait, so it was not stored. */
  arrive(arrival: ChatArrival): Promise<ArrivalKey | 'known' | 'full'>
  /** A page of what waits, in the order of arrival. */
  waiting(channel: string, after?: string): Promise<readonly ArrivalKey[]>
  /** The message as it is now; undefined when it waits no longer. */
  read(key: ArrivalKey): Promise<string | undefined>
  /** Joins what waits of the album that begins with this message; the others are recorded. Undefined as in `read`. */
  join(key: ArrivalKey): Promise<string | undefined>
  /** Changes a message where it waits or is held. Returns it where it was admitted. */
  revise(key: PlaceKey & { readonly messageId: string }, revision: Revision): Promise<OpenMessage | undefined>
}

export function createArrivals(store: Store): Arrivals {
  return {
    arrive: (arrival) => store.write(() => arrive(arrival)),
    waiting: (channel, after = '') => store.read(() => listWaiting(channel, after)),
    read: (key) => store.read(() => readArrival(key)),
    join: (key) => store.write(() => join(key)),
    revise: (key, revision) => store.write(() => revise(key, revision)),
  }
}

function* arrive({ description, message, isDirect, ...key }: ChatArrival): Transaction<ArrivalKey | 'known' | 'full'> {
  const { channel, place, id, messageId, person } = key
  if (yield* isFull(key)) return 'full'
  yield* ensurePlace({ channel, place, ...(isDirect && { person }) }, description)
  const arrival = ulid()
  const made = yield* sql(
    `insert into chat_messages (channel, place, id, message_id, person, state, received_at, incoming, arrival)
     values ($1, $2, $3, $4, $5, 'arrived', now_ms(), $6, $7) on conflict (channel, place, id) do nothing returning id`,
    [channel, place, id, messageId, person, message, arrival],
  )
  return made.length > 0 ? { channel, place, arrival } : 'known'
}

function* isFull({ channel, place }: PlaceKey): Transaction<boolean> {
  const [row] = yield* sql<{ waiting: number; here: number | null }>(
    `select count(*) as waiting, sum(case when place = $2 then 1 else 0 end) as here from chat_messages
     where channel = $1 and arrival is not null`,
    [channel, place],
  )
  return Number(row?.waiting) >= CHANNEL_WAITING_MAX || Number(row?.here) >= PLACE_WAITING_MAX
}

function* listWaiting(channel: string, after: string): Transaction<ArrivalKey[]> {
  const rows = yield* sql<{ place: string; arrival: string }>(
    `select place, arrival from chat_messages where channel = $1 and arrival is not null and arrival > $2
     order by arrival limit ${PAGE_ARRIVALS}`,
    [channel, after],
  )
  return rows.map((row) => ({ channel, ...row }))
}

interface WaitingRow {
  incoming: string
  arrival: string
}

function* readArrival({ channel, arrival }: ArrivalKey): Transaction<string | undefined> {
  const [row] = yield* sql<WaitingRow>('select incoming from chat_messages where channel = $1 and arrival = $2', [
    channel,
    arrival,
  ])
  return row?.incoming
}

/** The fields of a message that are read here. */
interface StoredMessage {
  readonly text: string
  readonly files: readonly unknown[]
  readonly author: { readonly id: string }
  readonly isAddressed: boolean
  readonly groupId?: string
  readonly isWithdrawn?: true
}

/** One transaction, so that a kill leaves either all parts of the album waiting, or the whole of it. */
function* join({ channel, arrival }: ArrivalKey): Transaction<string | undefined> {
  const rows = yield* sql<WaitingRow>(
    `select m.incoming, m.arrival from chat_messages first
     join chat_messages m on m.channel = first.channel and m.place = first.place and m.arrival >= first.arrival
     where first.channel = $1 and first.arrival = $2 order by m.arrival limit ${PLACE_WAITING_MAX}`,
    [channel, arrival],
  )
  const [first] = rows
  if (first === undefined || first.arrival !== arrival) return undefined
  const begin = JSON.parse(first.incoming) as StoredMessage
  const isPart = ({ groupId, author }: StoredMessage) => groupId === begin.groupId && author.id === begin.author.id
  const album = rows
    .map((row) => ({ ...row, message: JSON.parse(row.incoming) as StoredMessage }))
    .filter(({ message }) => isPart(message))
    .slice(0, ALBUM_MESSAGES_MAX)
  const whole = JSON.stringify(wholeOf(album.map(({ message }) => message)))
  yield* sql('update chat_messages set incoming = $3 where channel = $1 and arrival = $2', [channel, arrival, whole])
  for (const part of album.slice(1)) {
    yield* sql(
      `update chat_messages set state = 'closed', incoming = null, arrival = null where channel = $1 and arrival = $2`,
      [channel, part.arrival],
    )
  }
  return whole
}

/** What was taken back meanwhile is left out. */
function wholeOf([begin, ...more]: readonly StoredMessage[]): StoredMessage {
  const { groupId: _, ...first } = begin as StoredMessage
  const parts = [first, ...more].filter(({ isWithdrawn }) => isWithdrawn !== true)
  if (parts.length === 0) return first
  const { isWithdrawn: __, ...message } = first
  return {
    ...message,
    text: parts.flatMap(({ text }) => (text === '' ? [] : [text])).join('\n'),
    files: parts.flatMap(({ files }) => files),
    isAddressed: parts.some(({ isAddressed }) => isAddressed),
  }
}

function* revise(
  { channel, place, messageId }: PlaceKey & { readonly messageId: string },
  revision: Revision,
): Transaction<OpenMessage | undefined> {
  const rows = yield* sql<WaitingRow & { id: string; task_id: string | null }>(
    `select id, task_id, incoming, arrival from chat_messages where channel = $1 and place = $2 and message_id = $3
       and state in ('arrived', 'open')`,
    [channel, place, messageId],
  )
  for (const { arrival, incoming } of rows) {
    if (arrival === null) continue
    yield* sql('update chat_messages set incoming = $3 where channel = $1 and arrival = $2', [
      ...[channel, arrival],
      revised(incoming, revision),
    ])
  }
  yield* reviseHeld({ channel, place, messageId }, revision)
  const open = rows.find(({ task_id: taskId }) => taskId !== null)
  return open && { id: open.id, taskId: String(open.task_id) }
}

function* reviseHeld(
  { channel, place, messageId }: PlaceKey & { readonly messageId: string },
  revision: Revision,
): Transaction<void> {
  const held = yield* sql<{ id: string; message: string }>(
    'select id, message from held_messages where channel = $1 and place = $2',
    [channel, place],
  )
  for (const { id, message } of held) {
    const stored = JSON.parse(message) as { readonly messageId?: string }
    if ((stored.messageId ?? id) !== messageId) continue
    const key = [channel, place, id]
    if ('isWithdrawn' in revision)
      yield* sql('delete from held_messages where channel = $1 and place = $2 and id = $3', key)
    else
      yield* sql('update held_messages set message = $4 where channel = $1 and place = $2 and id = $3', [
        ...key,
        revised(message, revision),
      ])
  }
}

const revised = (message: string, revision: Revision): string => JSON.stringify({ ...JSON.parse(message), ...revision })
