/**
 * The stored conversation for a new session. An agent that keeps its own sessions has none for a conversation that is
 * already stored here when the session was lost, when the first turn was cancelled, or when another host or backend
 * takes over. Its prompt then begins with the last stored messages. Only such a turn costs a query.
 */
import { type EarlierMessage, readBegun } from '../../inbox/brief-reads.ts'
import type { Message } from '../../protocol/a2a.ts'
import { describePart } from '../../protocol/part.ts'
import type { Store, Transaction } from '../../store/store.ts'
import { hasSession } from '../sessions.ts'
import { exchangeOf, type HistoryKey } from './history.ts'
import type { BriefStep } from './make-brief.ts'

/** The whole text in the prompt. Older messages beyond the limit are left out: they would crowd out the new work. */
const TEXT_BYTES_MAX = 64 * 1024
/** One message in the prompt. A longer one is cut. */
const MESSAGE_CHARACTERS_MAX = 8 * 1024

export interface EarlierConversationOptions {
  readonly store: Store
  /** True for a backend whose agent remembers a conversation in a session of its own. */
  readonly keepsSessions: (runtime: string) => boolean
}

interface EarlierKey extends HistoryKey {
  readonly epoch: number
  readonly sessionRetried: boolean
}

/** Adds the stored conversation where a new session continues one. */
export function earlierConversationStep({ store, keepsSessions }: EarlierConversationOptions): BriefStep<EarlierKey> {
  return async (brief, key) => {
    // Epoch 1 is the first turn of the conversation.
    if (brief.sessionToken !== undefined || key.epoch === 1 || !keepsSessions(brief.runtime)) return brief
    const { rows, hasOtherSession } = await store.read(() => readEarlier(key))
    const lines = newestLines(rows)
    const isLost = key.sessionRetried || hasOtherSession || lostSinceLastAnswer(rows)
    if (lines.length === 0 && !isLost) return brief
    return {
      ...brief,
      earlierConversation: {
        ...(lines.length > 0 && { text: wrapLines(lines, isLost) }),
        ...(isLost && { notice: noticeText(lines.length) }),
      },
    }
  }
}

/** The earlier messages, and whether a session of another host or backend is stored. */
function* readEarlier(key: HistoryKey): Transaction<{ rows: EarlierMessage[]; hasOtherSession: boolean }> {
  return { rows: yield* readBegun(key), hasOtherSession: yield* hasSession(key.conversationId) }
}

/** A turn that lost its session and was not answered could not say so; the next answer does. */
function lostSinceLastAnswer(rows: readonly EarlierMessage[]): boolean {
  const answered = rows.findLastIndex(({ state }) => state === 'done')
  return rows.slice(answered + 1).some((row) => row.session_retried === 1)
}

/** One line for each message, the newest that fit. */
function newestLines(rows: readonly EarlierMessage[]): string[] {
  const lines = rows.flatMap(exchangeOf).map(toLine)
  const kept: string[] = []
  let bytes = 0
  for (const line of lines.toReversed()) {
    bytes += Buffer.byteLength(line) + 1
    if (bytes > TEXT_BYTES_MAX) break
    kept.unshift(line)
  }
  return kept
}

function toLine({ role, parts }: Message): string {
  const whole = parts.map((part) => part.text ?? describePart(part)).join('\n')
  const cut = whole.length > MESSAGE_CHARACTERS_MAX
  const text = cut ? `${whole.slice(0, MESSAGE_CHARACTERS_MAX).toWellFormed()} [cut]` : whole
  const speaker = role === 'ROLE_AGENT' ? 'You' : 'User'
  // Without this a message could end the block and speak in the name of the platform.
  return `${speaker}: ${text.replaceAll(`</${TAG}`, `< /${TAG}`)}`
}

const TAG = 'earlier_conversation'

function wrapLines(lines: readonly string[], isLost: boolean): string {
  const why = isLost ? 'Your own memory of this conversation was lost.' : 'You have no memory of this conversation yet.'
  const note = `${why} These are its last messages as the platform stored them, the oldest first. Do not answer them again.`
  return [`<${TAG}>`, note, '', ...lines, `</${TAG}>`].join('\n')
}

function noticeText(messages: number): string {
  const lost = "The agent's own memory of this conversation was lost."
  if (messages === 0) return `${lost} No earlier message of it is stored here.`
  return `${lost} It got the last ${messages === 1 ? 'message' : `${messages} messages`} that the platform has stored.`
}
