/** The rooms of the bot as far as syncs told of them: names, how many people are in them, and whether they are encrypted. */
import type { Author, Place } from '../chat/channel.ts'
import { countOf, listOf, type MatrixEvent, type MatrixJson, objectOf, textOf } from './matrix-json.ts'

/** Of people of one room; beyond it the oldest is forgotten, and shown by the id. */
const NAMES_MAX = 500
const NAME_CHARACTERS_MAX = 100
/** As the seam allows. */
const PLACE_CHARACTERS_MAX = 100

interface Room {
  name?: string | undefined
  alias?: string | undefined
  joined?: number
  invited?: number
  heroes: readonly unknown[]
  isEncrypted: boolean
  readonly names: Map<string, string>
}

export interface Rooms {
  /** The summary of a room in a sync. */
  summarize(roomId: string, summary: unknown): void
  /** A state event. */
  apply(roomId: string, event: MatrixEvent): void
  /** The account data `m.direct`. */
  setDirect(content: MatrixJson): void
  leave(roomId: string): void
  has(roomId: string): boolean
  isEncrypted(roomId: string): boolean
  author(roomId: string, userId: string): Author
  place(roomId: string, rootId?: string): Place
}

export function createRooms(me: () => string): Rooms {
  const rooms = new Map<string, Room>()
  let direct: ReadonlySet<unknown> = new Set()
  const room = (roomId: string): Room => {
    const known = rooms.get(roomId) ?? { heroes: [], isEncrypted: false, names: new Map<string, string>() }
    rooms.set(roomId, known)
    return known
  }
  const nameOf = (roomId: string, userId: string) => rooms.get(roomId)?.names.get(userId) ?? localpart(userId)
  const isDirect = (roomId: string) => {
    const { joined = 0, invited = 0 } = rooms.get(roomId) ?? {}
    return direct.has(roomId) || joined + invited === 2
  }
  const label = (roomId: string) => {
    const { name, alias, heroes = [] } = rooms.get(roomId) ?? {}
    const [other] = heroes.filter((hero) => typeof hero === 'string' && hero !== me())
    return name ?? alias ?? (typeof other === 'string' ? nameOf(roomId, other) : roomId)
  }
  return {
    summarize(roomId, given) {
      const summary = objectOf(given)
      const known = room(roomId)
      known.joined = countOf(summary['m.joined_member_count']) ?? known.joined ?? 0
      known.invited = countOf(summary['m.invited_member_count']) ?? known.invited ?? 0
      if (Array.isArray(summary['m.heroes'])) known.heroes = summary['m.heroes'].slice(0, 10)
    },
    apply(roomId, { type, stateKey, content }) {
      if (stateKey === undefined) return
      const known = room(roomId)
      if (type === 'm.room.encryption') known.isEncrypted = true
      if (type === 'm.room.name') known.name = shortName(content['name'])
      if (type === 'm.room.canonical_alias') known.alias = shortName(content['alias'])
      if (type === 'm.room.member') rename(known.names, stateKey, shortName(content['displayname']))
    },
    setDirect(content) {
      direct = new Set(Object.values(content).flatMap(listOf))
    },
    leave: (roomId) => void rooms.delete(roomId),
    has: (roomId) => rooms.has(roomId),
    isEncrypted: (roomId) => rooms.get(roomId)?.isEncrypted ?? false,
    author: (roomId, id) => ({ id, name: nameOf(roomId, id), isBot: false }),
    place(roomId, rootId) {
      const id = rootId === undefined ? roomId : `${roomId}/${rootId}`
      const isThread = rootId !== undefined && id.length <= PLACE_CHARACTERS_MAX
      const name = label(roomId)
      if (!isThread) return { id: roomId, isDirect: isDirect(roomId), name }
      return { id, parentId: roomId, isDirect: isDirect(roomId), name }
    },
  }
}

/** The room of a place, and the first message of its thread. Ids of events begin with `$`. */
export function targetOf(place: string): { readonly roomId: string; readonly rootId?: string } {
  const at = place.indexOf('/$')
  return at === -1 ? { roomId: place } : { roomId: place.slice(0, at), rootId: place.slice(at + 1) }
}

export const localpart = (userId: string): string => {
  const end = userId.indexOf(':')
  return shortName(userId.slice(1, end === -1 ? undefined : end)) ?? userId.slice(0, NAME_CHARACTERS_MAX)
}

function shortName(value: unknown): string | undefined {
  const name = textOf(value)?.slice(0, NAME_CHARACTERS_MAX).trim()
  return name === '' ? undefined : name
}

function rename(names: Map<string, string>, userId: string, name: string | undefined): void {
  names.delete(userId)
  if (name !== undefined) names.set(userId, name)
  if (names.size > NAMES_MAX) names.delete(names.keys().next().value ?? '')
}
