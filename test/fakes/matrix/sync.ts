/** The answers of the fake homeserver about the past: syncs, pages of a room, relations. A token is a position in the stream. */
import { type Content, MatrixError, type MatrixWorld, type RoomEvent } from './world.ts'

type Query = URLSearchParams

const PAGE_EVENTS_MAX = 100

/** `s5`: what comes after the fifth event. `t5`: what was before it. */
function positionOf(token: string | null, kind: string, world: MatrixWorld): number {
  const [, position] = new RegExp(`^[${kind}](\\d+)$`).exec(token ?? '') ?? []
  if (position === undefined || Number(position) > world.stream.length + 1)
    throw new MatrixError(400, 'M_INVALID_PARAM', 'Invalid stream token')
  return Number(position)
}

interface Positioned {
  readonly position: number
  readonly roomId: string
  readonly event: RoomEvent
}

const positioned = (world: MatrixWorld): Positioned[] =>
  world.stream.map((one, index) => ({ ...one, position: index + 1 }))

/** Undefined when nothing has happened since. */
export function answerSync(query: Query, world: MatrixWorld): Content | undefined {
  const isInitial = query.get('since') === null
  const since = isInitial ? 0 : positionOf(query.get('since'), 's', world)
  const { room } = readFilter(query)
  const { types, limit } = room?.timeline ?? {}
  if (!Array.isArray(types) || typeof limit !== 'number' || limit < 1)
    throw new MatrixError(400, 'M_BAD_JSON', 'the filter of the timeline has no types or no limit')
  const fresh = positioned(world).filter(({ position }) => position > since)
  const rooms: Record<'join' | 'invite' | 'leave', Content> = { join: {}, invite: {}, leave: {} }
  for (const roomId of new Set(fresh.map((one) => one.roomId))) {
    const own = fresh.filter((one) => one.roomId === roomId)
    const membership = world.membership(roomId)
    if (membership === 'join') rooms.join[roomId] = joined(roomId, { fresh: own, types, limit, isInitial }, world)
    const isNew = own.some(({ event }) => event.type === 'm.room.member' && event.state_key === world.bot)
    if (membership === 'invite' && isNew) rooms.invite[roomId] = { invite_state: { events: stripped(roomId, world) } }
    if (membership === 'leave' && isNew && !isInitial) rooms.leave[roomId] = {}
  }
  const direct = [...world.rooms.values()].filter(({ isDirect }) => isDirect).map(({ id }) => id)
  const account = { events: [{ type: 'm.direct', content: { '@1001:fake.test': direct } }] }
  if (fresh.length === 0 && !isInitial) return undefined
  return { next_batch: `s${world.stream.length}`, rooms, account_data: account }
}

interface TimelineOptions {
  readonly fresh: readonly Positioned[]
  readonly types: readonly string[]
  readonly limit: number
  readonly isInitial: boolean
}

function joined(roomId: string, { fresh, types, limit, isInitial }: TimelineOptions, world: MatrixWorld): Content {
  const join = fresh.findLast(
    ({ event }) =>
      event.type === 'm.room.member' &&
      event.state_key === world.bot &&
      event.content['membership'] === 'join' &&
      event.unsigned?.['prev_content']?.['membership'] !== 'join',
  )
  const isNew = isInitial || join !== undefined
  // The timeline of a room that is new to the bot goes back before its arrival.
  const own = isNew ? positioned(world).filter((one) => one.roomId === roomId) : fresh
  const shown = own.filter(({ event }) => types.includes(event.type))
  const timeline = shown.slice(-limit)
  const speakers = new Set(timeline.map(({ event }) => event.sender))
  const state = [...(world.rooms.get(roomId)?.state.values() ?? [])].filter(({ type, state_key = '' }) =>
    type === 'm.room.member' ? speakers.has(state_key) : isNew,
  )
  const [first] = timeline
  return {
    summary: {
      'm.joined_member_count': world.members(roomId, 'join').length,
      'm.invited_member_count': world.members(roomId, 'invite').length,
      'm.heroes': world.members(roomId, 'join').filter((user) => user !== world.bot),
    },
    state: { events: state },
    timeline: {
      events: timeline.map(({ event }) => event),
      limited: shown.length > timeline.length || (isNew && !isInitial),
      prev_batch: `t${first?.position ?? world.stream.length}`,
    },
  }
}

/** Without ids, as for a room that the bot is not in. */
const stripped = (roomId: string, world: MatrixWorld): Content[] =>
  [...(world.rooms.get(roomId)?.state.values() ?? [])].map(({ type, sender, state_key, content }) => ({
    ...{ type, sender, state_key },
    content,
  }))

function readFilter(query: Query): Content {
  try {
    return JSON.parse(query.get('filter') ?? '{}')
  } catch {
    throw new MatrixError(400, 'M_NOT_JSON', 'the filter is no JSON')
  }
}

/** `/messages`, backwards. */
export function answerMessages(roomId: string, query: Query, world: MatrixWorld): Content {
  if (query.get('dir') !== 'b') throw new MatrixError(400, 'M_MISSING_PARAM', 'dir')
  const from = query.get('from') === null ? world.stream.length + 1 : positionOf(query.get('from'), 't', world)
  const to = query.get('to') === null ? 0 : positionOf(query.get('to'), 'st', world)
  const { types = [] } = readFilter(query)
  const limit = Math.min(Number(query.get('limit') ?? 10), PAGE_EVENTS_MAX)
  const known = new Set<RoomEvent>()
  const found = positioned(world)
    .filter((one) => one.roomId === roomId && types.includes(one.event.type))
    .filter(({ position }) => position < from && position > to)
    .filter(({ event }) => !known.has(event) && known.add(event).size > 0)
    .reverse()
  const page = found.slice(0, limit)
  const last = page.at(-1)
  return {
    chunk: page.map(({ event }) => event),
    start: `t${from}`,
    ...(found.length > page.length && last && { end: `t${last.position}` }),
  }
}

/** `/relations`, the newest first. */
export function answerRelations(
  roomId: string,
  { eventId, type, query }: { readonly eventId: string; readonly type: string; readonly query: Query },
  world: MatrixWorld,
): Content {
  if (world.find(roomId, eventId) === undefined) throw new MatrixError(404, 'M_NOT_FOUND', 'Unknown event')
  const from = query.get('from') === null ? 0 : Number(query.get('from'))
  const limit = Math.min(Number(query.get('limit') ?? 10), PAGE_EVENTS_MAX)
  const related = world
    .eventsOf(roomId)
    .filter(({ content }) => content['m.relates_to']?.['event_id'] === eventId)
    .filter(({ content }) => content['m.relates_to']?.['rel_type'] === type)
    .reverse()
  const chunk = related.slice(from, from + limit)
  return { chunk, ...(from + limit < related.length && { next_batch: String(from + limit) }) }
}
