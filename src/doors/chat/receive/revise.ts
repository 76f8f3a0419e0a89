/**
 * An edit or a deletion of a message counts until its turn begins, wherever it waits: in the line of its place, held for its
 * author's pairing, or in the queue of its workspace. Afterwards it changes nothing: the agent may have read the message.
 */
import type { IncomingMessage, MessageKey } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'
import type { OpenMessage, Revision } from '../store/arrivals.ts'
import type { WaitingChatMessage } from './waiting-message.ts'

/** The key under which a message of a chat is admitted. */
export const admissionKey = (channel: string, place: string, id: string): string => `${channel}-${place}-${id}`

export async function reviseMessage(message: MessageKey, revision: Revision, context: SessionContext): Promise<void> {
  const { arrivals, stored } = context
  const open = await arrivals.revise({ channel: stored.name, ...message }, revision)
  if ('isWithdrawn' in revision) context.signs.forget(message)
  if (open !== undefined) await reviseOpen(open, { place: message.place, revision }, context)
}

interface CaughtRevision {
  /** As it was admitted. */
  readonly message: IncomingMessage
  readonly taskId: string
  /** As it was stored when it was recorded; undefined for one that did not wait. */
  readonly stored: string | undefined
}

/** What changed while the message was on its way from its line to the inbox. */
export async function catchRevision(
  { message, taskId, stored }: CaughtRevision,
  context: SessionContext,
): Promise<void> {
  if (stored === undefined) return
  const now = JSON.parse(stored) as WaitingChatMessage
  const open = { id: message.id, taskId }
  const place = message.place.id
  if (now.isWithdrawn) await reviseOpen(open, { place, revision: { isWithdrawn: true } }, context)
  else if (now.text !== message.text) await reviseOpen(open, { place, revision: { text: now.text } }, context)
}

async function reviseOpen(
  { id, taskId }: OpenMessage,
  { place, revision }: { readonly place: string; readonly revision: Revision },
  { reception, stored }: SessionContext,
): Promise<void> {
  const waiting = { taskId, key: admissionKey(stored.name, place, id) }
  if ('text' in revision) await reception.amend(waiting, revision.text)
  else await reception.withdraw(waiting)
}
