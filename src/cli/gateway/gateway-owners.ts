/**
 * The owners of the gateway's bots. `OWNER` is the whole truth about the owners that it made: they are made at each start, and
 * a person whom it no longer names is an owner no more. Without it the terminal offers the people who wrote to a bot.
 */
import type { ApiAnswer } from '../../api/api.ts'
import type { PlatformClient } from '../../client/platform-client.ts'
import { systemClock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { printableName } from '../../printable.ts'
import { sleep } from '../../wait.ts'
import { askLine } from '../terminal/ask-line.ts'
import type { Terminal } from '../terminal/terminal.ts'

export interface OwnerKinds {
  /** All kinds of channels. */
  readonly known: readonly string[]
  /** Those whose token is set. */
  readonly set: readonly string[]
  readonly warn: (sentence: string) => void
}

/** The ids of `OWNER` by kind: `discord:123`, or `123` where one bot is set. */
export function readOwners(
  named: readonly string[],
  { known, set, warn }: OwnerKinds,
): ReadonlyMap<string, readonly string[]> {
  const owners = new Map<string, string[]>()
  for (const name of named) {
    const colon = name.indexOf(':')
    const prefix = colon < 0 ? '' : name.slice(0, colon)
    const hasKind = known.includes(prefix)
    const [only, ...others] = set
    if (!hasKind && /^[a-z]+$/.test(prefix))
      throw wrongOwner(name, `there is no kind of channel "${prefix}"; the kinds are ${known.join(', ')}`)
    if (!hasKind && others.length > 0)
      throw wrongOwner(name, `several bots are set, so write of which one, as ${only}:${name}`)
    const kind = hasKind ? prefix : (only ?? '')
    const id = hasKind ? name.slice(colon + 1).trim() : name
    if (id === '') throw wrongOwner(name, `write the id of the person, as ${kind}:123`)
    if (set.includes(kind)) owners.set(kind, [...(owners.get(kind) ?? []), id])
    else warn(`OWNER names ${name}, and no ${kind} bot is set; it is ignored`)
  }
  return owners
}

const wrongOwner = (name: string, problem: string) =>
  new MoleculeError('bad_config', `OWNER cannot have ${JSON.stringify(name)}: ${problem}`)

type PersonView = ApiAnswer<'GET /pairings'>['pairings'][number]

/** A bot of the gateway, with the owners of the environment now and at the last start. */
export interface OwnedChannel {
  readonly name: string
  readonly owners: readonly string[]
  readonly before: readonly string[]
}

/** Takes back what the environment no longer says. Call it before the new owners are stored. */
export async function revokeOwners(
  platform: PlatformClient,
  { name, owners, before }: OwnedChannel,
  warn: (sentence: string) => void,
): Promise<void> {
  const gone = before.filter((id) => !owners.includes(id))
  if (gone.length === 0) return
  for (const person of await ownersOf(platform, name)) {
    if (!gone.includes(person.person)) continue
    await approve(platform, person, 'user')
    warn(
      `OWNER no longer names ${printableName(person.name)} (${printableName(person.person)}), who is no owner of ${name} any more and may still talk to it`,
    )
  }
}

export async function makeOwners(platform: PlatformClient, { name, owners }: OwnedChannel): Promise<void> {
  const known = (await ownersOf(platform, name)).map(({ person }) => person)
  for (const person of owners) if (!known.includes(person)) await approve(platform, { channel: name, person }, 'owner')
}

/** The bots without an owner: in their chats no person can answer what the agent asks. */
async function withoutOwner(platform: PlatformClient, names: readonly string[]): Promise<string[]> {
  const { pairings } = await platform.call('GET /pairings')
  return names.filter((name) => !pairings.some((person) => person.channel === name && isOwner(person)))
}

/** How a bot without an owner gets one. */
export async function ownerText(
  platform: PlatformClient,
  names: readonly string[],
  options: { readonly terminal: Pick<Terminal, 'keyboard'>; readonly approve: string },
): Promise<string> {
  const open = await withoutOwner(platform, names)
  if (open.length === 0) return ''
  const way =
    options.terminal.keyboard === undefined
      ? `set OWNER=${open[0]}:<id of a person>, or ${options.approve} --owner`
      : 'the people who write to it are offered here'
  return `No person owns ${open.join(', ')} yet and may answer what the agent asks: ${way}\n`
}

/** How often the gateway looks for a person who wrote to a bot without an owner. */
const LOOK_MS = 2000
/** Further people are not offered: strangers must not keep the terminal busy. */
const OFFERED_MAX = 10

export interface OwnerOffer {
  readonly platform: PlatformClient
  readonly names: readonly string[]
  readonly terminal: Pick<Terminal, 'keyboard' | 'err'>
}

/** Asks at the terminal about each person who writes to a bot without an owner, until each bot has one. */
export async function offerOwners({ platform, names, terminal }: OwnerOffer, signal: AbortSignal): Promise<void> {
  const offered = new Set<string>()
  while (!signal.aborted && offered.size < OFFERED_MAX) {
    const found = await findOffer({ platform, names, offered }).catch(() => 'none_yet' as const)
    if (found === 'all_owned') return
    if (found === 'none_yet') {
      await sleep(systemClock, LOOK_MS, signal)
      continue
    }
    offered.add(keyOf(found))
    const who = `${printableName(found.name)} (${printableName(found.person)})`
    const question = `${who} wrote to the bot ${found.channel}. Make ${printableName(found.name)} the owner, who may approve what the agent asks? [y/N] `
    if (!/^y(es)?$/i.test(await askLine(terminal, question, signal))) continue
    await approve(platform, found, 'owner')
    terminal.err(`${who} is the owner of ${found.channel}.\n`)
  }
}

async function findOffer({
  platform,
  names,
  offered,
}: {
  readonly platform: PlatformClient
  readonly names: readonly string[]
  readonly offered: ReadonlySet<string>
}): Promise<PersonView | 'all_owned' | 'none_yet'> {
  const open = await withoutOwner(platform, names)
  if (open.length === 0) return 'all_owned'
  const { pairings } = await platform.call('GET /pairings')
  const isOffered = (person: PersonView) => person.state === 'denied' || offered.has(keyOf(person))
  return pairings.find((person) => open.includes(person.channel) && !isOffered(person)) ?? 'none_yet'
}

const keyOf = ({ channel, person }: Pick<PersonView, 'channel' | 'person'>): string => `${channel}/${person}`

const isOwner = ({ state, role }: PersonView): boolean => state === 'approved' && role === 'owner'

async function ownersOf(platform: PlatformClient, name: string): Promise<PersonView[]> {
  const { pairings } = await platform.call('GET /pairings')
  return pairings.filter((person) => person.channel === name && isOwner(person))
}

const approve = (
  platform: PlatformClient,
  person: Pick<PersonView, 'channel' | 'person'>,
  role: PersonView['role'],
): Promise<unknown> => platform.call('POST /pairings/{pairing}/approve', { pairing: keyOf(person), body: { role } })
