/**
 * Pairings: people who wrote to a bot and whom the owner lets in or not. Their messages until then are held: stored and
 * not run. Invariant: a person without an approved pairing runs nothing.
 */
import { randomInt } from 'node:crypto'
import { MoleculeError } from '../../../errors.ts'
import { type Row, type Store, sql, type Transaction } from '../../../store/store.ts'

export interface PersonKey {
  readonly channel: string
  /** The id of the person on the service. */
  readonly person: string
}

/** `owner`: may also answer permissions and bind chats. */
export type PairingRole = 'user' | 'owner'
export type PairingState = 'pending' | 'approved' | 'denied'

export interface Pairing extends PersonKey {
  readonly name: string
  readonly code: string
  readonly state: PairingState
  readonly role: PairingRole
  readonly decidedBy?: string
  readonly createdAtMs: number
}

export interface HeldChatMessage {
  readonly place: string
  readonly id: string
  /** The message of the channel, as JSON. */
  readonly message: string
}

export interface WaitingPairing extends PersonKey {
  readonly name: string
  readonly code: string
  /** Where the person wrote first. */
  readonly place: string
}

export interface ChannelOwner {
  readonly person: string
  readonly name: string
  /** The direct chat with the bot. */
  readonly place?: string
}

/** More people of one channel cannot wait at once; further people get no code until some are decided. */
const PENDING_PAIRINGS_MAX = 200
/** Of one person; further messages are not kept. */
const HELD_MESSAGES_MAX = 5
/** A pairing without a decision is removed after this time, with its held messages. */
const PENDING_MS_MAX = 7 * 24 * 3600_000

export interface Pairings {
  find(key: PersonKey): Promise<Pairing | undefined>
  /** The pairing of this person, made with a new code where there is none; undefined when too many people wait. */
  request(key: PersonKey & { readonly name: string }): Promise<{ pairing: Pairing; isNew: boolean } | undefined>
  /**
   * `first`: the person has no other held message. `full`: the person has too many. The same message again changes nothing.
   */
  hold(key: PersonKey, message: HeldChatMessage): Promise<'first' | 'later' | 'full'>
  /** Held messages of people who are let in by now, the oldest first. */
  released(channel: string): Promise<readonly (HeldChatMessage & PersonKey)[]>
  /** The message was handled. */
  dropHeld(channel: string, message: Pick<HeldChatMessage, 'place' | 'id'>): Promise<void>
  /** People of a channel who wait for a decision and wrote something, the oldest first. */
  waiting(channel: string): Promise<readonly WaitingPairing[]>
  /** The approved owners of a channel, each with the direct chat in which the person wrote last. */
  owners(channel: string): Promise<readonly ChannelOwner[]>
  /** True when an owner wrote in the place lately. */
  hasOwner(channel: string, place: string): Promise<boolean>
  /**
   * By the code, or by `<channel>/<person>` for a person who was let in before or never wrote. Throws `not_found` for an
   * unknown code.
   */
  decide(id: string, decision: PairingDecision): Promise<Pairing>
}

export interface PairingDecision {
  readonly state: 'approved' | 'denied'
  /** The pairing was decided before: `decide` throws `not_found`. */
  readonly isFirst?: boolean
  readonly role: PairingRole
  readonly by: string
  /** Absent: the decision may neither make an owner nor change one; `decide` throws `forbidden`. */
  readonly mayChangeOwners?: boolean
}

export function createPairings(store: Store, drawCode: () => string = newCode): Pairings {
  return {
    find: (key) => store.read(() => findPairing(key)),
    async request(key) {
      const known = await store.read(() => findPairing(key))
      if (known !== undefined) return { pairing: known, isNew: false }
      return await store.write(() => insertPairing(key, drawCode()))
    },
    hold: (key, message) => store.write(() => holdMessage(key, message)),
    released: (channel) => store.read(() => listReleased(channel)),
    async dropHeld(channel, { place, id }) {
      await store.write(() =>
        sql('delete from held_messages where channel = $1 and place = $2 and id = $3', [channel, place, id]),
      )
    },
    waiting: (channel) => store.read(() => listWaiting(channel)),
    owners: (channel) => store.read(() => listOwners(channel)),
    hasOwner: (channel, place) => store.read(() => hasOwner(channel, place)),
    decide: (id, decision) => store.write(() => decide(id, decision, drawCode())),
  }
}

/** Without letters and digits that look alike. */
const CODE_ALPHABET = 'ABCDEFGHJKMNPQRSTUVWXYZ23456789'
const CODE_CHARACTERS = 8

const newCode = (): string =>
  Array.from({ length: CODE_CHARACTERS }, () => CODE_ALPHABET[randomInt(CODE_ALPHABET.length)]).join('')

const COLUMNS = 'p.channel, p.person, p.name, p.code, p.state, p.role, p.decided_by, p.created_at'

function* findPairing({ channel, person }: PersonKey): Transaction<Pairing | undefined> {
  const [row] = yield* sql(`select ${COLUMNS} from pairings p where p.channel = $1 and p.person = $2`, [
    channel,
    person,
  ])
  return row && toPairing(row)
}

function* insertPairing(
  key: PersonKey & { readonly name: string },
  code: string,
): Transaction<{ pairing: Pairing; isNew: boolean } | undefined> {
  const { channel, person, name } = key
  yield* removeOld(channel)
  const [count] = yield* sql<{ pending: number }>(
    `select count(*) as pending from pairings where channel = $1 and state = 'pending'`,
    [channel],
  )
  if (Number(count?.pending) >= PENDING_PAIRINGS_MAX) return undefined
  const made = yield* sql(
    `insert into pairings (channel, person, name, code, state, role, created_at)
     values ($1, $2, $3, $4, 'pending', 'user', now_ms()) on conflict (channel, person) do nothing returning person`,
    [channel, person, name, code],
  )
  const pairing = yield* findPairing(key)
  return pairing && { pairing, isNew: made.length > 0 }
}

function* removeOld(channel: string): Transaction<void> {
  const old = `select person from pairings where channel = $1 and state = 'pending' and created_at < now_ms() - ${PENDING_MS_MAX}`
  yield* sql(`delete from held_messages where channel = $1 and person in (${old})`, [channel])
  yield* sql(`delete from pairings where channel = $1 and person in (${old})`, [channel])
}

function* holdMessage(
  { channel, person }: PersonKey,
  { place, id, message }: HeldChatMessage,
): Transaction<'first' | 'later' | 'full'> {
  const held = yield* sql<{ id: string }>('select id from held_messages where channel = $1 and person = $2', [
    channel,
    person,
  ])
  const isKnown = held.some((one) => one.id === id)
  if (held.length >= HELD_MESSAGES_MAX && !isKnown) return 'full'
  yield* sql(
    `insert into held_messages (channel, person, place, id, message, held_at) values ($1, $2, $3, $4, $5, now_ms())
     on conflict (channel, place, id) do nothing`,
    [channel, person, place, id, message],
  )
  return held.length === (isKnown ? 1 : 0) ? 'first' : 'later'
}

function* listReleased(channel: string): Transaction<(HeldChatMessage & PersonKey)[]> {
  const rows = yield* sql<{ person: string; place: string; id: string; message: string }>(
    `select h.person, h.place, h.id, h.message from held_messages h
     join pairings p on p.channel = h.channel and p.person = h.person
     where h.channel = $1 and p.state = 'approved' order by h.held_at, h.id limit 100`,
    [channel],
  )
  return rows.map((row) => ({ channel, ...row }))
}

/** Owners of one channel that are asked. */
const OWNERS_MAX = 100

function* listWaiting(channel: string): Transaction<WaitingPairing[]> {
  const rows = yield* sql<{ person: string; name: string; code: string; place: string }>(
    `select * from (select p.person, p.name, p.code, p.created_at, (select h.place from held_messages h
         where h.channel = p.channel and h.person = p.person order by h.held_at, h.id, h.place limit 1) as place
       from pairings p where p.channel = $1 and p.state = 'pending') as waiting
     where place is not null order by created_at, person limit ${PENDING_PAIRINGS_MAX}`,
    [channel],
  )
  return rows.map(({ person, name, code, place }) => ({ channel, person, name, code, place }))
}

const IS_OWNER = `p.state = 'approved' and p.role = 'owner'`

function* listOwners(channel: string): Transaction<ChannelOwner[]> {
  const rows = yield* sql<{ person: string; name: string; place: string | null }>(
    `select p.person, p.name, (select c.place from chat_places c
         where c.channel = p.channel and c.person = p.person order by c.seen_at desc, c.place limit 1) as place
     from pairings p where p.channel = $1 and ${IS_OWNER} order by p.person limit ${OWNERS_MAX}`,
    [channel],
  )
  return rows.map(({ person, name, place }) => ({ person, name, ...(place !== null && { place }) }))
}

function* hasOwner(channel: string, place: string): Transaction<boolean> {
  const rows = yield* sql(
    `select m.id from chat_messages m join pairings p on p.channel = m.channel and p.person = m.person and ${IS_OWNER}
     where m.channel = $1 and m.place = $2 limit 1`,
    [channel, place],
  )
  return rows.length > 0
}

function* decide(id: string, decision: PairingDecision, newPersonCode: string): Transaction<Pairing> {
  const key = (yield* findByCode(id)) ?? (yield* personOf(id))
  if (key === undefined) throw new MoleculeError('not_found', `there is no pairing ${JSON.stringify(id.slice(0, 100))}`)
  const { channel, person } = key
  const known = yield* findPairing(key)
  if (decision.isFirst === true && known?.state !== 'pending')
    throw new MoleculeError('not_found', 'it was decided elsewhere')
  const isAboutOwner = decision.role === 'owner' || (known?.role === 'owner' && known.state === 'approved')
  // Prevents that a member makes itself an owner, who may change workspaces from a chat, or removes one.
  if (isAboutOwner && decision.mayChangeOwners !== true)
    throw new MoleculeError('forbidden', 'only an admin makes an owner of a bot, or changes one')
  yield* sql(
    `insert into pairings (channel, person, name, code, state, role, decided_by, created_at, decided_at)
     values ($1, $2, $2, $3, $4, $5, $6, now_ms(), now_ms())
     on conflict (channel, person) do update set state = excluded.state, role = excluded.role,
       decided_by = excluded.decided_by, decided_at = now_ms()`,
    [channel, person, newPersonCode, decision.state, decision.role, decision.by],
  )
  if (decision.state === 'denied')
    yield* sql('delete from held_messages where channel = $1 and person = $2', [channel, person])
  return (yield* findPairing(key)) as Pairing
}

function* findByCode(code: string): Transaction<PersonKey | undefined> {
  const [row] = yield* sql<{ channel: string; person: string }>(
    'select channel, person from pairings where code = $1',
    [code.trim().toUpperCase()],
  )
  return row
}

/** Of `<channel>/<person>`. */
function* personOf(id: string): Transaction<PersonKey | undefined> {
  const [, channel, person] = /^([^/]{1,100})\/(.{1,100})$/s.exec(id) ?? []
  if (channel === undefined || person === undefined) return undefined
  const known = yield* sql('select name from channels where name = $1', [channel])
  return known.length === 0 ? undefined : { channel, person }
}

function toPairing(row: Row): Pairing {
  const text = (name: string) => String(row[name])
  const decidedBy = row['decided_by']
  return {
    channel: text('channel'),
    person: text('person'),
    name: text('name'),
    code: text('code'),
    state: text('state') as PairingState,
    role: text('role') as PairingRole,
    ...(typeof decidedBy === 'string' && { decidedBy }),
    createdAtMs: Number(row['created_at']),
  }
}
