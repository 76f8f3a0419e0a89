/** Reads back what was written in a room or a thread: for a bot without a position, and for sends without an answer. */
import type { HistoryQuery, SoughtPost } from '../chat/channel.ts'
import { type MatrixApi, path } from './matrix-api.ts'
import { isGone } from './matrix-errors.ts'
import { eventsOf, type MatrixEvent, textOf } from './matrix-json.ts'
import { type MatrixAccount, NONCE_FIELD } from './matrix-messages.ts'
import { type Rooms, targetOf } from './matrix-rooms.ts'

const PAGE_EVENTS = '100'
/** Of one call: between the messages of people there may be many reactions. */
const PAGES_MAX = 20
/** What the bot reads of a room. */
export const TIMELINE_TYPES = [
  ...['m.room.message', 'm.room.encrypted', 'm.reaction', 'm.room.redaction', 'm.room.tombstone'],
  ...['m.room.member', 'm.room.name', 'm.room.canonical_alias', 'm.room.encryption'],
]
const FILTER = JSON.stringify({ lazy_load_members: true, types: TIMELINE_TYPES })

export interface MatrixHistoryContext {
  readonly api: MatrixApi
  readonly rooms: Rooms
}

interface PagesOptions {
  readonly place: string
  /** From here on backwards; absent: from the newest event. */
  readonly from?: string
  /** Up to this position of a sync. */
  readonly to?: string
  /** True: this event and all before it are not wanted. */
  readonly isEnd: (event: MatrixEvent) => boolean
  readonly pagesMax?: number
}

/** The events of a room or a thread after the end, the oldest first. */
export async function readBack(
  { place, from, to, isEnd, pagesMax = PAGES_MAX }: PagesOptions,
  { api, rooms }: MatrixHistoryContext,
  signal: AbortSignal,
): Promise<MatrixEvent[]> {
  const { roomId, rootId } = targetOf(place)
  const route =
    rootId === undefined
      ? path`/client/v3/rooms/${roomId}/messages`
      : path`/client/v1/rooms/${roomId}/relations/${rootId}/m.thread`
  const found: MatrixEvent[] = []
  let next = from
  for (let pages = 0; pages < pagesMax; pages++) {
    const query = {
      ...{ dir: 'b', limit: PAGE_EVENTS },
      ...(rootId === undefined && { filter: FILTER }),
      ...(next !== undefined && { from: next }),
      ...(to !== undefined && { to }),
    }
    const answer = await api.call({ method: 'GET', path: route, query }, signal)
    for (const event of eventsOf(answer['state'])) rooms.apply(roomId, event)
    const page = eventsOf(answer['chunk'])
    const end = page.findIndex(isEnd)
    found.push(...(end === -1 ? page : page.slice(0, end)))
    next = textOf(answer[rootId === undefined ? 'end' : 'next_batch'])
    if (end !== -1 || next === undefined || page.length === 0) break
  }
  return found.reverse()
}

/** The oldest messages after the mark of the query. Empty where the bot no longer sees the room. */
export async function readMissed(query: HistoryQuery, context: MatrixHistoryContext, signal: AbortSignal) {
  const isEnd = ({ id, sentAtMs }: MatrixEvent) =>
    'sinceMs' in query ? sentAtMs < query.sinceMs : id === query.afterMessageId
  try {
    return await readBack({ place: query.place.id, isEnd }, context, signal)
  } catch (error) {
    if (isGone(error)) return []
    throw error
  }
}

/** Every event of the bot has the nonce of its post. A post of which a part is missing is not found. */
export async function findSent(
  { place, nonce, text, files = [], sinceMs }: SoughtPost,
  { me, ...context }: MatrixHistoryContext & { readonly me: MatrixAccount },
  signal: AbortSignal,
): Promise<string | undefined> {
  const events = await readBack({ place, isEnd: ({ sentAtMs }) => sentAtMs < sinceMs }, context, signal)
  const own = events.filter(({ sender, content }) => sender === me.id && content[NONCE_FIELD] === nonce)
  if (own.length < files.length + (text === '' ? 0 : 1)) return undefined
  return (own.find(({ content }) => content['url'] === undefined) ?? own[0])?.id
}
