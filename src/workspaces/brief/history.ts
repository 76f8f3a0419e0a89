/**
 * Adds the history of a conversation to the brief, for backends that keep no session of their own. Other backends cost
 * no query. It is what is stored, and what the client sent with this or an earlier message and is not stored: the
 * conversation began elsewhere.
 */
import {
  EARLIER_CHARACTERS_MAX,
  EARLIER_MESSAGES_MAX,
  type EarlierMessage,
  readAnswered,
  readUnansweredHistories,
} from '../../inbox/brief-reads.ts'
import type { Message, Part, Role } from '../../protocol/a2a.ts'
import { partsWithOrigin } from '../../protocol/chat/from-chat.ts'
import { type Envelope, restoreEnvelope } from '../../protocol/envelope.ts'
import { isJsonObject } from '../../protocol/json.ts'
import { readPart } from '../../protocol/part.ts'
import type { Sender } from '../../protocol/request.ts'
import { readReplyIfWhole } from '../../protocol/stored-reply.ts'
import type { Store, Transaction } from '../../store/store.ts'
import { type ClaimingTurn, joinHistory } from './claimed-history.ts'
import type { BriefStep } from './make-brief.ts'

/** A message and its reply are two. */
const MESSAGES_MAX = 2 * EARLIER_MESSAGES_MAX

/** The fields of a lease that the history depends on. */
export interface HistoryKey {
  readonly conversationId: string
  readonly messageId: string
  readonly envelope: Envelope
}

export interface HistoryOptions {
  readonly store: Store
  readonly usesHistory: (runtime: string) => boolean
}

/** Adds the history where the backend needs it. */
export function historyStep({ store, usesHistory }: HistoryOptions): BriefStep<HistoryKey> {
  return async (brief, key) => {
    if (!usesHistory(brief.runtime)) return brief
    const turns = await store.read(() => storedTurns(key))
    const current = { exchange: [], claimed: claimedHistory(key.envelope) }
    const history = joinHistory([...turns, current]).slice(-MESSAGES_MAX)
    return history.length > 0 ? { ...brief, history: newestWithinLimit(history) } : brief
  }
}

/**
 * The earlier messages of this conversation with their replies, the oldest first: those that were answered, and those
 * whose turn was cancelled. Of a message that failed only the history that came with it counts: each later turn would
 * fail at the message again.
 */
function* storedTurns(key: HistoryKey): Transaction<ClaimingTurn[]> {
  const answered = yield* readAnswered(key)
  const turns = answered.map((row) => ({ exchange: exchangeOf(row), claimed: claimedIn(row.envelope) }))
  if (answered.length >= EARLIER_MESSAGES_MAX) return turns
  const unanswered = yield* readUnansweredHistories(key)
  return [...unanswered.map((envelope) => ({ exchange: [], claimed: claimedIn(envelope) })), ...turns]
}

const claimedIn = (envelope: string): Message[] => claimedHistory(restoreEnvelope(envelope))

/** In the place of a reply: some models refuse a history in which two messages of the user follow each other. */
const MISSING_REPLIES: Readonly<Record<string, string>> = {
  canceled: '(The user cancelled this turn before its end.)',
  dead: '(This turn failed without an answer.)',
}

/** The message and its reply. */
export function exchangeOf({
  id,
  state,
  envelope,
  sender,
  reply,
}: Omit<EarlierMessage, 'session_retried'>): readonly [Message, Message] {
  const { message } = restoreEnvelope(envelope)
  const said = { ...message, parts: partsWithOrigin(message, JSON.parse(sender) as Sender) }
  const parts = reply === null ? [{ text: MISSING_REPLIES[state] ?? '' }] : writtenParts(reply, { id, state })
  return [said, { messageId: `${id}.reply`, role: 'ROLE_AGENT', parts }]
}

/** After what a cancelled turn had written stands that it is not whole. */
function writtenParts(reply: string, { id, state }: { id: string; state: string }): readonly Part[] {
  const parts = replyParts(reply, id)
  return state === 'canceled' ? [...parts, { text: `\n\n${MISSING_REPLIES['canceled']}` }] : parts
}

function replyParts(text: string, messageId: string): readonly Part[] {
  const reply = readReplyIfWhole(text, messageId)
  if (reply === undefined) return [{ text: '(The stored answer of this turn is damaged.)' }]
  return [...reply.artifacts.flatMap((artifact) => artifact.parts), ...reply.parts]
}

/** `params.metadata.history` of the client's request. Entries that are not valid are skipped. */
export function claimedHistory({ raw }: Envelope): Message[] {
  const params = isJsonObject(raw) ? raw['params'] : undefined
  const metadata = isJsonObject(params) ? params['metadata'] : undefined
  const claimed = isJsonObject(metadata) ? metadata['history'] : undefined
  if (!Array.isArray(claimed)) return []
  return claimed.slice(-MESSAGES_MAX).flatMap((value: unknown, index) => claimedMessage(value, index) ?? [])
}

const ROLES: ReadonlyMap<unknown, Role> = new Map<unknown, Role>([
  ['user', 'ROLE_USER'],
  ['ROLE_USER', 'ROLE_USER'],
  ['agent', 'ROLE_AGENT'],
  ['assistant', 'ROLE_AGENT'],
  ['ROLE_AGENT', 'ROLE_AGENT'],
])

function claimedMessage(value: unknown, index: number): Message | undefined {
  if (!isJsonObject(value)) return undefined
  const role = ROLES.get(value['role'])
  const parts = claimedParts(value)
  return role === undefined || parts.length === 0 ? undefined : { messageId: `history-${index}`, role, parts }
}

function claimedParts({ parts, content, text }: Record<string, unknown>): Part[] {
  const plain = content ?? text
  if (typeof plain === 'string') return plain === '' ? [] : [{ text: plain }]
  if (!Array.isArray(parts)) return []
  try {
    return parts.map((part: unknown, index) => readPart(part, `history.parts[${index}]`))
  } catch {
    return []
  }
}

/** The newest messages that together stay below the limit. */
function newestWithinLimit(history: readonly Message[]): Message[] {
  const kept: Message[] = []
  let characters = 0
  for (const message of history.toReversed()) {
    characters += JSON.stringify(message.parts).length
    if (characters > EARLIER_CHARACTERS_MAX) break
    kept.unshift(message)
  }
  return kept
}
