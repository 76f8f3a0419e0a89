/** The agent of a chat, and what its people may read about it. */
import { publicReason } from '../../../views/public-reason.ts'
import type { Place } from '../channel.ts'
import { answeringWorkspace, type SessionContext } from '../chat-context.ts'
import type { CommandInput } from './command.ts'

export const NO_AGENT = 'No agent answers in this chat.'

export async function findAgent(place: Place, context: SessionContext) {
  const id = await answeringWorkspace(place, context)
  return id === undefined ? undefined : await context.workspaces.get(id)
}

/** Paths describe the disk of the platform: only an owner sees them, and only in a direct chat. */
export const sayTo = ({ place, standing }: Pick<CommandInput, 'place' | 'standing'>, text: string): string =>
  standing === 'owner' && place.isDirect ? text : publicReason(text)
