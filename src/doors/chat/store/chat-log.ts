/**
 * What the chat door remembers: the conversation of each place and the last message seen there, and the messages that it
 * handled with their tasks.
 */
import { ulid } from '../../../ids.ts'
import { type Row, type Store, sql, type Transaction } from '../../../store/store.ts'

export interface PlaceKey {
  readonly channel: string
  readonly place: string
}

export interface KnownPlace extends PlaceKey {
  /** The place of the channel, as JSON. */
  readonly description: string
  readonly contextId: string
  /** The last message seen there; absent before the first. */
  readonly seen?: { readonly id: string; readonly atMs: number }
  /** How many messages of bots followed each other, and whether the door said that it stops. */
  readonly guard: { readonly bots: number; readonly said: boolean }
}

export interface ChatMessageKey extends PlaceKey {
  /** The key of its admission. */
  readonly id: string
}

export interface HandledMessage extends ChatMessageKey {
  /** The id for reactions and replies. */
  readonly messageId: string
  readonly person: string
  readonly taskId?: string
  /** The live message of the task (`send/live-message.ts`). */
  readonly progressId?: string
  readonly receivedAtMs: number
}

/** Handled messages are remembered for this long: longer than a service repeats them. */
const REMEMBERED_MS = 7 * 24 * 3600_000
/** Followed again after a restart; the oldest first. */
const OPEN_MAX = 1000
const PLACES_MAX = 5000
/** A place without a message for this long is forgotten, unless it is bound: its next message begins a new conversation. */
const PLACE_REMEMBERED_MS = 180 * 24 * 3600_000

export interface ChatLog {
  /** The place, made where it is new. `person`: whose direct chat it is. */
  place(key: PlaceKey & { readonly person?: string }, description: string): Promise<KnownPlace>
  find(key: PlaceKey): Promise<KnownPlace | undefined>
  /** The places of a channel with a message, and the bound ones that are known, the latest first. */
  places(channel: string): Promise<KnownPlace[]>
  /** Begins a new conversation in the place. */
  newContext(key: PlaceKey): Promise<void>
  /** Goes back to a conversation of the place. */
  setContext(key: PlaceKey, contextId: string): Promise<void>
  markSeen(key: PlaceKey, seen: { readonly id: string; readonly atMs: number }): Promise<void>
  setGuard(key: PlaceKey, guard: KnownPlace['guard']): Promise<void>
  handled(key: ChatMessageKey): Promise<boolean>
  /**
   * Open until `close`, where it has a task. A held message is recorded a second time, with its task. Returns the message
   * that waited until now (`Arrivals`).
   */
  record(message: Omit<HandledMessage, 'receivedAtMs' | 'progressId'>): Promise<string | undefined>
  /** Messages whose tasks had not ended. */
  open(channel: string): Promise<HandledMessage[]>
  /** The same of one place. */
  openIn(key: PlaceKey): Promise<HandledMessage[]>
  /** Those of the message with this id, or of the progress message with it. */
  openAt(channel: string, messageId: string): Promise<HandledMessage[]>
  /** The messages of a task, the oldest first. */
  ofTask(taskId: string): Promise<HandledMessage[]>
  /** The last message of a place with a task. */
  lastOf(key: PlaceKey): Promise<HandledMessage | undefined>
  /** Undefined: it has none any more. */
  setProgress(key: ChatMessageKey, progressId: string | undefined): Promise<void>
  /** The messages of a channel that have one. */
  withProgress(channel: string): Promise<HandledMessage[]>
  close(key: ChatMessageKey): Promise<void>
  /** Forgets old messages and prompts. */
  prune(): Promise<void>
}

export function createChatLog(store: Store): ChatLog {
  const run = async (text: string, values: readonly (string | number | null)[]) => {
    await store.write(() => sql(text, values))
  }
  const messages = (where: string, values: readonly string[]) => store.read(() => listMessages(where, values))
  const setContext = ({ channel, place }: PlaceKey, contextId: string) =>
    run('update chat_places set context_id = $3 where channel = $1 and place = $2', [channel, place, contextId])
  return {
    place: (key, description) => store.write(() => ensurePlace(key, description)),
    find: ({ channel, place }) => store.read(() => findPlace(channel, place)),
    places: (channel) => store.read(() => listPlaces(channel)),
    newContext: (key) => setContext(key, ulid()),
    setContext,
    markSeen: ({ channel, place }, { id, atMs }) =>
      run(
        `update chat_places set seen_id = $3, seen_at = $4
         where channel = $1 and place = $2 and (seen_id is null or seen_at <= $4)`,
        [channel, place, id, atMs],
      ),
    setGuard: ({ channel, place }, guard) =>
      run('update chat_places set guard = $3 where channel = $1 and place = $2', [
        channel,
        place,
        JSON.stringify(guard),
      ]),
    handled: (key) => store.read(() => isHandled(key)),
    record: (message) => store.write(() => record(message)),
    open: (channel) => messages(`channel = $1 and state = 'open'`, [channel]),
    openIn: ({ channel, place }) => messages(`channel = $1 and place = $2 and state = 'open'`, [channel, place]),
    openAt: (channel, messageId) =>
      messages(`channel = $1 and state = 'open' and (message_id = $2 or progress_id = $2)`, [channel, messageId]),
    ofTask: (taskId) => messages('task_id = $1', [taskId]),
    lastOf: ({ channel, place }) => store.read(() => lastMessage(channel, place)),
    setProgress: ({ channel, place, id }, progressId) =>
      run('update chat_messages set progress_id = $4 where channel = $1 and place = $2 and id = $3', [
        ...[channel, place, id],
        progressId ?? null,
      ]),
    withProgress: (channel) => messages('channel = $1 and progress_id is not null', [channel]),
    close: ({ channel, place, id }) =>
      run(`update chat_messages set state = 'closed' where channel = $1 and place = $2 and id = $3`, [
        channel,
        place,
        id,
      ]),
    prune: () => store.write(prune),
  }
}

export function* ensurePlace(
  { channel, place, person }: PlaceKey & { readonly person?: string },
  description: string,
): Transaction<KnownPlace> {
  const [row] = yield* sql(
    `insert into chat_places (channel, place, description, context_id, person) values ($1, $2, $3, $4, $5)
     on conflict (channel, place) do update set description = excluded.description,
       person = coalesce(excluded.person, chat_places.person) returning *`,
    [channel, place, description, ulid(), person ?? null],
  )
  return toPlace(row as Row)
}

function* findPlace(channel: string, place: string): Transaction<KnownPlace | undefined> {
  const [row] = yield* sql('select * from chat_places where channel = $1 and place = $2', [channel, place])
  return row && toPlace(row)
}

function* listPlaces(channel: string): Transaction<KnownPlace[]> {
  const rows = yield* sql(
    `select * from chat_places p where channel = $1 and (seen_id is not null or exists (
       select 1 from channel_bindings b where b.channel = p.channel and b.place = p.place))
     order by seen_at desc limit ${PLACES_MAX}`,
    [channel],
  )
  return rows.map(toPlace)
}

function toPlace(row: Row): KnownPlace {
  const { seen_id: seenId, guard } = row
  return {
    channel: String(row['channel']),
    place: String(row['place']),
    description: String(row['description']),
    contextId: String(row['context_id']),
    ...(typeof seenId === 'string' && { seen: { id: seenId, atMs: Number(row['seen_at']) } }),
    guard: typeof guard === 'string' ? JSON.parse(guard) : { bots: 0, said: false },
  }
}

function* isHandled({ channel, place, id }: ChatMessageKey): Transaction<boolean> {
  const rows = yield* sql('select id from chat_messages where channel = $1 and place = $2 and id = $3', [
    channel,
    place,
    id,
  ])
  return rows.length > 0
}

function* record(message: Omit<HandledMessage, 'receivedAtMs' | 'progressId'>): Transaction<string | undefined> {
  const { channel, place, id, messageId, person, taskId } = message
  const [waited] = yield* sql<{ incoming: string }>(
    'select incoming from chat_messages where channel = $1 and place = $2 and id = $3 and arrival is not null',
    [channel, place, id],
  )
  yield* sql(
    `insert into chat_messages (channel, place, id, message_id, person, task_id, state, received_at)
     values ($1, $2, $3, $4, $5, $6, $7, now_ms())
     on conflict (channel, place, id) do update set task_id = excluded.task_id, state = excluded.state,
       incoming = null, arrival = null
     where chat_messages.arrival is not null or (chat_messages.task_id is null and excluded.task_id is not null)`,
    [channel, place, id, messageId, person, taskId ?? null, taskId === undefined ? 'closed' : 'open'],
  )
  return waited?.incoming
}

function* listMessages(where: string, values: readonly string[]): Transaction<HandledMessage[]> {
  const rows = yield* sql(
    `select * from chat_messages where ${where} order by received_at, id limit ${OPEN_MAX}`,
    values,
  )
  return rows.map(toMessage)
}

function* lastMessage(channel: string, place: string): Transaction<HandledMessage | undefined> {
  const [row] = yield* sql(
    `select * from chat_messages where channel = $1 and place = $2 and task_id is not null
     order by received_at desc, id desc limit 1`,
    [channel, place],
  )
  return row && toMessage(row)
}

function toMessage(row: Row): HandledMessage {
  const { task_id: taskId, progress_id: progressId } = row
  return {
    channel: String(row['channel']),
    place: String(row['place']),
    id: String(row['id']),
    messageId: String(row['message_id']),
    person: String(row['person']),
    ...(typeof taskId === 'string' && { taskId }),
    ...(typeof progressId === 'string' && { progressId }),
    receivedAtMs: Number(row['received_at']),
  }
}

function* prune(): Transaction<void> {
  yield* sql(`delete from chat_messages where state = 'closed' and received_at < now_ms() - ${REMEMBERED_MS}`)
  yield* sql(`delete from chat_prompts where created_at < now_ms() - ${REMEMBERED_MS}`)
  yield* sql(
    `delete from chat_places where seen_at < now_ms() - ${PLACE_REMEMBERED_MS} and not exists (
       select 1 from channel_bindings b where b.channel = chat_places.channel and b.place = chat_places.place)`,
  )
}
