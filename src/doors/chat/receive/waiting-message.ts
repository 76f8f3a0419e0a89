/** Reads a message whose turn in the line of its place has come: as its author changed it meanwhile, and an album as one. */
import { sleep } from '../../../wait.ts'
import type { IncomingMessage } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'
import type { ArrivalKey } from '../store/arrivals.ts'

/** The parts of an album arrive together. Only its own place waits for them; a later part is a message of its own. */
const ALBUM_MS = 1000

/** `isWithdrawn`: its author deleted it. */
export type WaitingChatMessage = IncomingMessage & { readonly isWithdrawn?: true }

/** Undefined: it waits no longer, it is a part of an album that was read before, or the session ends. */
export async function readWaiting(
  key: ArrivalKey,
  { arrivals, clock, signal }: Pick<SessionContext, 'arrivals' | 'clock' | 'signal'>,
): Promise<WaitingChatMessage | undefined> {
  const stored = await arrivals.read(key)
  if (stored === undefined) return undefined
  const message = JSON.parse(stored) as WaitingChatMessage
  if (message.groupId === undefined) return message
  await sleep(clock, ALBUM_MS, signal)
  const whole = signal.aborted ? undefined : await arrivals.join(key)
  return whole === undefined ? undefined : (JSON.parse(whole) as WaitingChatMessage)
}
