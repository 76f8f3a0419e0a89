/**
 * An answer replaces the live message of its task. The id of that message is stored with the part before it is edited: an edit
 * may be done twice, so the text is there exactly once after a crash, too. A message that can no longer be edited is left, and
 * the text is sent anew.
 */
import type { Delivery, DeliveryPart } from '../../../inbox/delivery.ts'
import type { SendResult } from '../channel.ts'
import type { SessionContext } from '../chat-context.ts'

/**
 * One message of a delivery: a text with files of the answer by the indexes of their parts, or the whole answer as a file.
 * `edits`: the live message that the text replaces; its files come in a message below it. `file`: a file alone, in rows of
 * earlier versions. `prompt`: what the body of the delivery says.
 */
export type PartContent =
  | { readonly text: string; readonly files?: readonly number[]; readonly edits?: string }
  | { readonly file: number }
  | { readonly wholeAnswer: string; readonly note?: string }
  | { readonly prompt: true }

export interface OnePart {
  readonly delivery: Delivery
  readonly part: DeliveryPart
}

/** The part is nothing but an edit. */
export const isEdit = ({ content }: Pick<DeliveryPart, 'content'>): boolean => {
  const given = JSON.parse(content) as PartContent
  return 'text' in given && given.edits !== undefined && given.files === undefined
}

/** `part`: as it is stored now. Without a result there is no live message for it. */
export async function editLive(
  { delivery, part }: OnePart,
  { channel, channelSignal, deliveries, inPlace, live }: SessionContext,
): Promise<{ readonly part: DeliveryPart; readonly result?: SendResult }> {
  const content = JSON.parse(part.content) as PartContent
  const { id, channel: place, taskId } = delivery
  if (part.n !== 0 || taskId === undefined || !('text' in content)) return { part }
  const taken = await live.take(place, taskId)
  const { edits: messageId = taken, ...plain } = content
  if (messageId === undefined || plain.text === '') return { part: { ...part, content: JSON.stringify(plain) } }
  const edited = { ...part, content: JSON.stringify({ ...plain, edits: messageId }) }
  await deliveries.beginPart(id, part.n, edited.content)
  await live.release(place, taskId)
  const { text } = plain
  const result = await inPlace(place, 'answer', () => channel.edit({ place, messageId, text }, channelSignal))
  // An edit may be done twice, so one without an answer is done again.
  if (result.type === 'unknown') return { part: edited, result: { type: 'failed', error: result.error } }
  const isRefused = result.type === 'failed' && result.final === true
  return isRefused ? { part: { ...part, content: JSON.stringify(plain) } } : { part: edited, result }
}
