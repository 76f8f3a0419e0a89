/**
 * Sends one post: a text and its files, each an event. Every event has the nonce of the post in its transaction, so a homeserver
 * takes it once, however often it is sent. Files are uploaded before the first event: a refusal leaves nothing behind.
 */
import type { ChatPost, SendResult } from '../chat/channel.ts'
import type { MatrixApi } from './matrix-api.ts'
import { type Pace, sendEvent } from './matrix-calls.ts'
import { type Choice, choicesOf, fileContent, textContent } from './matrix-content.ts'
import { ENCRYPTED_PROBLEM, matrixOutcome } from './matrix-errors.ts'
import { type Rooms, targetOf } from './matrix-rooms.ts'

/** Posts whose next try goes on where the last one ended. */
const BEGUN_MAX = 100

export interface SenderOptions {
  readonly api: MatrixApi
  readonly rooms: Rooms
  readonly pace: Pace
  /** Puts the reactions of the choices below a prompt; not awaited. */
  readonly offer: (roomId: string, messageId: string, choices: readonly Choice[]) => Promise<void>
}

/** What has arrived of a post: the files at the homeserver, and the events. */
interface BegunPost {
  readonly addresses: string[]
  readonly eventIds: Map<string, string>
}

export type SendPost = (post: ChatPost, signal: AbortSignal) => Promise<SendResult>

export function createSender(options: SenderOptions): SendPost {
  const begun = new Map<string, BegunPost>()
  return async (post, signal) => {
    const { roomId } = targetOf(post.place)
    if (options.rooms.isEncrypted(roomId)) return { type: 'failed', error: ENCRYPTED_PROBLEM, final: true }
    const progress = begun.get(post.nonce) ?? { addresses: [], eventIds: new Map() }
    begun.set(post.nonce, progress)
    if (begun.size > BEGUN_MAX) begun.delete(begun.keys().next().value ?? '')
    try {
      const messageId = await sendAll(post, { ...options, progress }, signal)
      begun.delete(post.nonce)
      if (post.buttons !== undefined && post.buttons.length > 0)
        void options.offer(roomId, messageId, choicesOf(post.buttons)).catch(() => undefined)
      return { type: 'sent', messageId }
    } catch (error) {
      const outcome = matrixOutcome(error)
      if (outcome.type === 'failed' && outcome.retryAfterMs !== undefined) options.pace.limited()
      // To send the text again without its files would double it.
      const isHalf = progress.eventIds.size > 0 && outcome.type === 'failed' && outcome.final === true
      return isHalf ? { type: 'unknown', error: `Only a part arrived: ${outcome.error}` } : outcome
    }
  }
}

/** The id of the text, else of the first file. */
async function sendAll(
  post: ChatPost,
  { api, progress }: { readonly api: MatrixApi; readonly progress: BegunPost },
  signal: AbortSignal,
): Promise<string> {
  const { place, text, nonce, files = [], buttons = [] } = post
  const { addresses, eventIds } = progress
  const { roomId, rootId } = targetOf(place)
  for (const file of files.slice(addresses.length)) addresses.push(await api.upload(file, signal))
  const texts = text === '' ? [] : [{ transaction: nonce, content: textContent(post, rootId) }]
  const attached = files.map((file, index) => ({
    transaction: `${nonce}-${index}`,
    content: fileContent(file, { address: addresses[index] ?? '', nonce, rootId }),
  }))
  // The choices stand last, so what is decided about comes before them.
  const events = buttons.length > 0 ? [...attached, ...texts] : [...texts, ...attached]
  for (const { transaction, content } of events) {
    if (eventIds.has(transaction)) continue
    eventIds.set(transaction, await sendEvent(api, { roomId, type: 'm.room.message', transaction, content }, signal))
  }
  const id = eventIds.get(nonce) ?? eventIds.get(`${nonce}-0`)
  if (id === undefined) throw new Error('a post without a text and a file')
  return id
}
