/**
 * Home chats: the chat in which a person of a channel wants what the platform says by itself. Invariant: there is one for a
 * person and channel, and the home of a person who was denied is not used.
 */
import { type Row, type Store, sql, type Transaction } from '../../../store/store.ts'
import type { PlaceKey } from './chat-log.ts'
import type { PersonKey } from './pairings.ts'

export interface HomeChat extends PersonKey, PlaceKey {
  /** Of the person. */
  readonly name: string
  readonly quiet?: QuietHours
}

/** From a minute of the day until another one, which may be on the next day. */
export interface QuietHours {
  readonly fromMinute: number
  readonly untilMinute: number
  readonly timeZone: string
}

/** One text reaches at most so many homes. */
const OWNERS_MAX = 20

export interface HomeChats {
  /** Replaces the home that the person had. */
  set(home: HomeChat): Promise<void>
  /** False where there was none. */
  remove(key: PersonKey): Promise<boolean>
  find(key: PersonKey): Promise<HomeChat | undefined>
  /** Whose home a chat is. */
  at(key: PlaceKey): Promise<readonly HomeChat[]>
  /** Of the owners of the bots that the workspace answers for; where these have none, of all owners. */
  ofOwners(workspaceId: string): Promise<readonly HomeChat[]>
  /** Of the owners of one bot. */
  ofOwnersOf(channel: string): Promise<readonly HomeChat[]>
}

export function createHomeChats(store: Store): HomeChats {
  return {
    async set({ channel, person, name, place, quiet }) {
      await store.write(() =>
        sql(
          `insert into channel_homes (channel, person, name, place, quiet, set_at) values ($1, $2, $3, $4, $5, now_ms())
           on conflict (channel, person) do update set name = excluded.name, place = excluded.place,
             quiet = excluded.quiet, set_at = excluded.set_at`,
          [channel, person, name, place, quiet === undefined ? null : JSON.stringify(quiet)],
        ),
      )
    },
    async remove({ channel, person }) {
      const text = 'delete from channel_homes where channel = $1 and person = $2 returning person'
      return (await store.write(() => sql(text, [channel, person]))).length > 0
    },
    async find({ channel, person }) {
      const [home] = await store.read(() => listHomes('h.channel = $1 and h.person = $2', [channel, person]))
      return home
    },
    at: ({ channel, place }) => store.read(() => listHomes('h.channel = $1 and h.place = $2', [channel, place])),
    ofOwners: (workspaceId) => store.read(() => listOwners(workspaceId)),
    ofOwnersOf: (channel) => store.read(() => listHomes(`${IS_OWNER} and h.channel = $1`, [channel])),
  }
}

const pairedAs = (what: string): string =>
  `exists (select 1 from pairings p where p.channel = h.channel and p.person = h.person and ${what})`
const IS_OWNER = pairedAs(`p.state = 'approved' and p.role = 'owner'`)
const IS_DENIED = pairedAs(`p.state = 'denied'`)

function* listHomes(where: string, values: readonly string[]): Transaction<HomeChat[]> {
  const rows = yield* sql(
    `select h.channel, h.person, h.name, h.place, h.quiet from channel_homes h where ${where} and not ${IS_DENIED}
     order by h.channel, h.person limit ${OWNERS_MAX}`,
    values,
  )
  return rows.map(toHome)
}

function* listOwners(workspaceId: string): Transaction<HomeChat[]> {
  const own = yield* listHomes(
    `${IS_OWNER} and (h.channel in (select c.name from channels c where c.workspace_id = $1)
       or h.channel in (select b.channel from channel_bindings b where b.workspace_id = $1))`,
    [workspaceId],
  )
  return own.length > 0 ? own : yield* listHomes(IS_OWNER, [])
}

function toHome(row: Row): HomeChat {
  const { quiet } = row
  return {
    channel: String(row['channel']),
    person: String(row['person']),
    name: String(row['name']),
    place: String(row['place']),
    ...(typeof quiet === 'string' && { quiet: JSON.parse(quiet) as QuietHours }),
  }
}
