/**
 * Where owners are asked: in the chat of an owner's own message, else in the direct chats of the owners, else in a group in
 * which an owner writes. Invariant: buttons are shown only where an owner can press them.
 */
import { printableName } from '../../../printable.ts'
import { judgePerson } from '../access.ts'
import type { Place } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'

/** Who asks for something, and where. */
export interface Asker {
  readonly person: string
  readonly place: string
}

/** The ids of the places; none where no owner can be asked in a chat yet. */
export async function placesToAsk({ person, place }: Asker, context: SessionContext): Promise<readonly string[]> {
  const { pairings, stored } = context
  if ((await judgePerson(context, { id: person })) === 'owner') return [place]
  const direct = (await pairings.owners(stored.name)).flatMap((owner) => owner.place ?? [])
  if (direct.length > 0) return direct
  return (await pairings.hasOwner(stored.name, place)) ? [place] : []
}

/** `Eve` in `#general`: for an owner who reads it elsewhere. */
export async function nameAsker({ person, place }: Asker, context: SessionContext): Promise<string> {
  const { chatLog, pairings, stored } = context
  const pairing = await pairings.find({ channel: stored.name, person })
  return `${quoted(pairing?.name ?? person)} ${await nameWhere(place, { chatLog, stored })}`
}

/** `in #general`, or `in a direct chat`. */
export async function nameWhere(
  place: string,
  { chatLog, stored }: Pick<SessionContext, 'chatLog' | 'stored'>,
): Promise<string> {
  const known = await chatLog.find({ channel: stored.name, place })
  const { isDirect, name } = JSON.parse(known?.description ?? '{}') as Partial<Place>
  return isDirect ? 'in a direct chat' : `in ${quoted(name ?? place)}`
}

/** A name is text from outside: as code it makes no link and no other format. */
export const quoted = (name: string): string => `\`${printableName(name).replaceAll('`', "'")}\``
