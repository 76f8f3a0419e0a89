/** The state of the fake homeserver: rooms, the stream of all events, transactions, files. */
import { randomBytes } from 'node:crypto'

export const SERVER = 'fake.test'

// biome-ignore lint/suspicious/noExplicitAny: the content of many kinds of events
export type Content = Record<string, any>

export interface RoomEvent {
  readonly event_id: string
  readonly type: string
  readonly sender: string
  readonly state_key?: string
  readonly origin_server_ts: number
  content: Content
  readonly redacts?: string
  unsigned?: Content
}

type EventDraft = Omit<RoomEvent, 'event_id' | 'origin_server_ts'> & { readonly origin_server_ts?: number }

interface FakeRoom {
  readonly id: string
  readonly isDirect: boolean
  readonly state: Map<string, RoomEvent>
}

export class MatrixError extends Error {
  readonly status: number
  readonly code: string
  /** Further fields of the answer. */
  more: object = {}

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

export const badEvent = (problem: string) => new MatrixError(400, 'M_BAD_JSON', problem)

interface NewRoom {
  readonly isDirect?: boolean
  readonly isEncrypted?: boolean
  readonly members?: readonly string[]
  readonly name?: string
  readonly before?: string
}

export class MatrixWorld {
  readonly bot = `@molecule:${SERVER}`
  readonly botName = 'Molecule'
  readonly password = 'the password of the bot'
  readonly token = 'syt_bW9sZWN1bGU_fakeAccessTokenForTests_1Abc2D'
  readonly rooms = new Map<string, FakeRoom>()
  readonly stream: { readonly roomId: string; readonly event: RoomEvent }[] = []
  readonly transactions = new Map<string, { readonly id: string; readonly body: string }>()
  /** Transactions that were used again with another content: the homeserver drops that silently. */
  readonly misused: string[] = []
  readonly files = new Map<string, { readonly name: string; readonly content: Uint8Array }>()
  readonly typings: string[] = []
  readonly receipts: string[] = []
  mayUpload = true
  mayEdit = true
  /** Called after every change. */
  changed: () => void = () => undefined

  addRoom({ isDirect = false, isEncrypted = false, members = [], name, before }: NewRoom): string {
    const id = `!${randomBytes(9).toString('base64url')}:${SERVER}`
    this.rooms.set(id, { id, isDirect, state: new Map() })
    const [sender = this.bot] = members
    const state = (type: string, content: Content) => this.add(id, { type, sender, state_key: '', content })
    state('m.room.create', { room_version: '10', ...(before && { predecessor: { room_id: before } }) })
    for (const member of members) this.setMember(id, { user: member, membership: 'join' })
    if (name !== undefined) state('m.room.name', { name })
    if (isEncrypted) state('m.room.encryption', { algorithm: 'm.megolm.v1.aes-sha2' })
    return id
  }

  add(roomId: string, draft: EventDraft): RoomEvent {
    const id = `$${randomBytes(32).toString('base64url')}`
    const event: RoomEvent = { event_id: id, origin_server_ts: Date.now(), ...draft }
    if (event.state_key !== undefined) this.rooms.get(roomId)?.state.set(`${event.type} ${event.state_key}`, event)
    this.stream.push({ roomId, event })
    this.changed()
    return event
  }

  setMember(
    roomId: string,
    given: { user: string; membership: 'join' | 'invite' | 'leave'; sender?: string; name?: string },
  ): RoomEvent {
    const { user, membership, sender = user } = given
    const before = this.rooms.get(roomId)?.state.get(`m.room.member ${user}`)?.content
    const name = given.name ?? before?.['displayname'] ?? (user === this.bot ? this.botName : undefined)
    const content = { membership, ...(name !== undefined && { displayname: name }) }
    const unsigned = before === undefined ? {} : { unsigned: { prev_content: before } }
    return this.add(roomId, { type: 'm.room.member', sender, state_key: user, content, ...unsigned })
  }

  membership(roomId: string, user = this.bot): string | undefined {
    return this.rooms.get(roomId)?.state.get(`m.room.member ${user}`)?.content['membership']
  }

  members(roomId: string, membership: 'join' | 'invite'): string[] {
    const state = [...(this.rooms.get(roomId)?.state.values() ?? [])]
    return state.flatMap(({ type, state_key = '', content }) =>
      type === 'm.room.member' && content['membership'] === membership ? [state_key] : [],
    )
  }

  /** Throws as the homeserver does for a room that it does not know, or in which the bot is not. */
  requireRoom(roomId: string): void {
    if (!this.rooms.has(roomId)) throw new MatrixError(404, 'M_NOT_FOUND', 'Unknown room')
    if (this.membership(roomId) !== 'join')
      throw new MatrixError(403, 'M_FORBIDDEN', `User ${this.bot} not in room ${roomId}`)
  }

  find(roomId: string, eventId: string): RoomEvent | undefined {
    return this.stream.find((one) => one.roomId === roomId && one.event.event_id === eventId)?.event
  }

  /** Each once, also one that came twice. */
  eventsOf(roomId: string): RoomEvent[] {
    return [...new Set(this.stream.filter((one) => one.roomId === roomId).map(({ event }) => event))]
  }

  redact(roomId: string, eventId: string, sender: string): RoomEvent {
    const target = this.find(roomId, eventId)
    if (target === undefined) throw new MatrixError(404, 'M_NOT_FOUND', 'Could not find event')
    if (sender === this.bot && target.sender !== sender)
      throw new MatrixError(403, 'M_FORBIDDEN', 'The bot may redact its own events only')
    target.content = {}
    target.unsigned = { redacted_because: {} }
    return this.add(roomId, { type: 'm.room.redaction', sender, redacts: eventId, content: {} })
  }
}
