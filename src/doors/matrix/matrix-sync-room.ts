/** What one sync says about one room: its state, what was missed before it, and its events in their order. */
import { toMoleculeError } from '../../errors.ts'
import { path } from './matrix-api.ts'
import { readBack } from './matrix-history.ts'
import { eventsOf, type MatrixEvent, type MatrixJson, objectOf, textOf } from './matrix-json.ts'
import { type EventReceiver, NotStored, type ReceiveContext, type ReceivedEvent } from './matrix-receive.ts'

const GAP_PAGES_MAX = 20

export interface RoomContext extends ReceiveContext {
  readonly receiver: EventReceiver
}

export function takeState(roomId: string, room: MatrixJson, { rooms }: Pick<RoomContext, 'rooms'>): void {
  rooms.summarize(roomId, room['summary'])
  for (const event of eventsOf(objectOf(room['state'])['events'])) rooms.apply(roomId, event)
}

interface RoomOfSync {
  readonly roomId: string
  readonly room: MatrixJson
  readonly since: string
  readonly isLive: boolean
}

/** Hands the events of the room to the door in their order. Throws `NotStored`. */
export async function receiveRoom(
  { roomId, room, since, isLive }: RoomOfSync,
  context: RoomContext,
  signal: AbortSignal,
): Promise<void> {
  const { rooms, receiver, me } = context
  const isNew = !rooms.has(roomId)
  takeState(roomId, room, context)
  const timeline = objectOf(room['timeline'])
  const from = timeline['limited'] === true ? textOf(timeline['prev_batch']) : undefined
  const isEnd = (event: MatrixEvent) => isArrival(event, me.id)
  const options = { place: roomId, from: from ?? '', to: since, isEnd, pagesMax: GAP_PAGES_MAX }
  const shown = eventsOf(timeline['events'])
  // The messages before the bot came are not for it, though it may read them.
  const invitation = shown.findLastIndex((event) => isInvitation(event, me.id))
  const arrival = invitation === -1 ? shown.findLastIndex(isEnd) : invitation
  const older = from === undefined || arrival !== -1 ? [] : await readBack(options, context, signal)
  const events = [...older, ...shown.slice(arrival + 1)]
  for (const event of shown) rooms.apply(roomId, event)
  if (isNew && rooms.isEncrypted(roomId)) await receiver.tellEncrypted(roomId)
  for (const event of events) {
    if (signal.aborted) throw new NotStored('an earlier message could not be stored')
    await receiveEvent({ roomId, event, isLive }, context)
  }
  const last = events.findLast(({ type, sender }) => type === 'm.room.message' && sender !== me.id)
  if (last !== undefined) void markRead(roomId, last.id, context)
}

/** An event that cannot be read must not hold up all later ones; one that cannot be stored must. */
async function receiveEvent(received: ReceivedEvent, { receiver, log }: RoomContext): Promise<void> {
  try {
    await receiver.receive(received)
  } catch (error) {
    if (error instanceof NotStored) throw error
    log.warn({ err: toMoleculeError(error), room: received.roomId }, 'an event of a Matrix room could not be read')
  }
}

const isInvitation = ({ type, stateKey, content }: MatrixEvent, me: string): boolean =>
  type === 'm.room.member' && stateKey === me && content['membership'] === 'invite'

/** The bot was invited, or joined without that. Later its membership is written again when its name changes. */
function isArrival(event: MatrixEvent, me: string): boolean {
  if (isInvitation(event, me)) return true
  const { type, stateKey, content, raw } = event
  const before = textOf(objectOf(objectOf(raw['unsigned'])['prev_content'])['membership'])
  const isOwn = type === 'm.room.member' && stateKey === me
  return isOwn && content['membership'] === 'join' && before !== 'join' && before !== 'invite'
}

async function markRead(roomId: string, eventId: string, { api, signal }: RoomContext): Promise<void> {
  const route = path`/client/v3/rooms/${roomId}/receipt/m.read/${eventId}`
  await api.call({ method: 'POST', path: route, body: {} }, signal).catch(() => undefined)
}
