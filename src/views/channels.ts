/**
 * The chat channels and the people who wrote to them, as the owners of the platform see them.
 * Invariant: neither the token of a channel nor its other secrets are read.
 */
import type { ApiAnswer } from '../api/api.ts'
import type { ChannelSettings } from '../doors/chat/store/channels.ts'
import { MoleculeError } from '../errors.ts'
import { type ReadStore, sql, type Transaction } from '../store/store.ts'
import { instant } from './instant.ts'
import { publicReason } from './public-reason.ts'

type ChannelAnswer = Omit<ApiAnswer<'POST /channels'>, 'steps'>
type PairingAnswer = ApiAnswer<'GET /pairings'>['pairings'][number]

export const readChannels = (store: ReadStore): Promise<readonly ChannelAnswer[]> => store.read(channels)

/** Throws `not_found` where the channel was removed. */
export async function readChannel(store: ReadStore, name: string): Promise<ChannelAnswer> {
  const channel = (await readChannels(store)).find((each) => each.name === name)
  if (channel === undefined) throw new MoleculeError('not_found', `there is no channel ${JSON.stringify(name)}`)
  return channel
}

/** For a viewer: no lists of people, no settings, and no path in the problem. */
export async function readPublicChannels(store: ReadStore): Promise<ApiAnswer<'GET /channels'>['channels']> {
  return (await readChannels(store)).map(
    ({
      allowed_people: _people,
      allowed_places: _places,
      allowed_bots: _bots,
      settings: _settings,
      gateway: _gateway,
      stream: _stream,
      ...shown
    }) => ({
      ...shown,
      problem: shown.problem === null ? null : publicReason(shown.problem),
    }),
  )
}

interface ChannelRow {
  name: string
  kind: string
  account: string | null
  workspace_id: string | null
  problem: string | null
  settings: string
}

interface BindingRow {
  channel: string
  place: string
  workspace_id: string
}

const CHANNELS = 'select name, kind, account, workspace_id, problem, settings from channels order by name'
const BINDINGS = 'select channel, place, workspace_id from channel_bindings order by channel, place'

function* channels(): Transaction<ChannelAnswer[]> {
  const rows = yield* sql<ChannelRow>(CHANNELS)
  const bindings = yield* sql<BindingRow>(BINDINGS)
  return rows.map(({ account, settings, ...row }) => {
    const {
      allowedPeople,
      allowedPlaces,
      allowedBots,
      ofKind,
      gateway,
      stream = true,
    } = JSON.parse(settings) as ChannelSettings
    return {
      ...row,
      account: account === null ? null : (JSON.parse(account) as { name: string }).name,
      allowed_people: allowedPeople ?? [],
      allowed_places: allowedPlaces ?? null,
      allowed_bots: allowedBots ?? [],
      settings: ofKind ?? {},
      gateway: gateway === undefined ? null : { owners: [...gateway.owners] },
      stream,
      bindings: bindings
        .filter(({ channel }) => channel === row.name)
        .map(({ place, workspace_id }) => ({ place, workspace_id })),
    }
  })
}

/** At the limit, the newest pairings are not listed. */
const PAIRINGS_MAX = 1000

interface PairingRow {
  channel: string
  person: string
  name: string
  code: string
  state: PairingAnswer['state']
  role: PairingAnswer['role']
  decided_by: string | null
  created_at: number
  held: number
}

const PAIRINGS = `select p.channel, p.person, p.name, p.code, p.state, p.role, p.decided_by, p.created_at,
    (select count(*) from held_messages h where h.channel = p.channel and h.person = p.person) as held
  from pairings p`

/** The oldest first. */
export async function readPairings(store: ReadStore): Promise<ApiAnswer<'GET /pairings'>> {
  const all = `${PAIRINGS} order by p.created_at, p.person limit ${PAIRINGS_MAX}`
  return { pairings: (await store.read(() => sql<PairingRow>(all))).map(pairing) }
}

/** Throws `not_found` where this person has no pairing. */
export async function readPairing(
  store: ReadStore,
  { channel, person }: Pick<PairingAnswer, 'channel' | 'person'>,
): Promise<PairingAnswer> {
  const one = `${PAIRINGS} where p.channel = $1 and p.person = $2`
  const [row] = await store.read(() => sql<PairingRow>(one, [channel, person]))
  if (row === undefined) throw new MoleculeError('not_found', `there is no pairing of ${person} in ${channel}`)
  return pairing(row)
}

const pairing = ({ code, held, created_at, ...row }: PairingRow): PairingAnswer => ({
  ...row,
  code: row.state === 'pending' ? code : null,
  held: Number(held),
  created_at: instant(created_at),
})
