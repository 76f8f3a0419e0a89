/** Who may talk to a bot: people on its allow list, and people whose pairing was approved. */
import { type Action, type ChatRole, chatRolesOf } from '../../api/who-may.ts'
import { toMoleculeError } from '../../errors.ts'
import type { Author } from './channel.ts'
import type { SessionContext } from './chat-context.ts'

/** `unknown`: not decided yet. */
export type Standing = 'owner' | 'user' | 'unknown' | 'denied'

export async function judgePerson({ stored, pairings }: SessionContext, { id }: Pick<Author, 'id'>): Promise<Standing> {
  const pairing = await pairings.find({ channel: stored.name, person: id })
  if (pairing?.state === 'denied') return 'denied'
  if (pairing?.state === 'approved') return pairing.role
  return stored.settings.allowedPeople?.includes(id) ? 'user' : 'unknown'
}

export const chatRoleOf = (standing: Standing): ChatRole =>
  standing === 'owner' || standing === 'user' ? standing : 'stranger'

export const mayInChat = (standing: Standing, action: Action): boolean =>
  chatRolesOf(action).includes(chatRoleOf(standing))

/** What becomes of an invitation. A person who is not known gets a pairing, so that the owner can decide. Never rejects. */
export async function judgeInvitation(person: Author, context: SessionContext): Promise<'join' | 'wait' | 'leave'> {
  const { pairings, stored, log } = context
  try {
    const standing = await judgePerson(context, person)
    if (standing === 'denied') return 'leave'
    if (standing !== 'unknown') return 'join'
    await pairings.request({ channel: stored.name, person: person.id, name: person.name })
  } catch (error) {
    log.warn({ err: toMoleculeError(error), channel: stored.name }, 'an invitation to a chat could not be judged')
  }
  return 'wait'
}
