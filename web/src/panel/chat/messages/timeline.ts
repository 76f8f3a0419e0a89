/** The order of what a conversation shows: its messages, and where they fall, messages of agents and schedules. Pure. */

import { type ChatEntry, type ChatHistory, isOpen, isQuestion } from '../../../../../src/client/live-conversation.ts'
import type { ConversationView } from '../../../../../src/client/views.ts'
import type { UnsentMessage } from '../writing/outgoing.ts'

export type TimelineItem =
  | { readonly kind: 'message'; readonly key: string; readonly entry: ChatEntry }
  /** Another conversation that changed meanwhile: one quiet line. */
  | { readonly kind: 'other'; readonly key: string; readonly other: ConversationView }
  | { readonly kind: 'outgoing'; readonly key: string; readonly outgoing: UnsentMessage }

/** Lines about other conversations, the newest; the list of conversations has all. */
const OTHERS_MAX = 30

export interface TimelineInput {
  readonly history: ChatHistory
  readonly others: readonly ConversationView[]
  readonly outgoing: readonly UnsentMessage[]
}

export function timelineOf({ history, others, outgoing }: TimelineInput): readonly TimelineItem[] {
  const { entries, hasNewer } = history
  const known = new Set(entries.map((entry) => entry.sender_message_id))
  const items: TimelineItem[] = entries.map((entry) => ({ kind: 'message', key: entry.id, entry }))
  // What came before the first message on the page is not of its time, and would move when an older page comes.
  const from = entries[0]?.sent_at ?? '~'
  const to = hasNewer ? (entries.at(-1)?.sent_at ?? '') : '~'
  const shown = others.slice(0, OTHERS_MAX).filter(({ updated_at: at }) => at > from && at < to)
  for (const other of shown.toReversed()) {
    const index = items.findIndex((item) => item.kind === 'message' && item.entry.sent_at > other.updated_at)
    items.splice(index === -1 ? items.length : index, 0, { kind: 'other', key: `other-${other.id}`, other })
  }
  if (hasNewer) return items
  for (const message of outgoing) {
    if (!known.has(message.messageId)) items.push({ kind: 'outgoing', key: message.messageId, outgoing: message })
  }
  return items
}

/** The message that runs or waits for a person now. */
export const runningEntry = ({ entries }: ChatHistory): ChatEntry | undefined =>
  entries.findLast(({ state }) => state === 'running' || state === 'waiting_for_you')

/** The message whose agent asks a question. A permission is no question: it has buttons of its own. */
export const askingEntry = ({ entries }: ChatHistory): ChatEntry | undefined => entries.findLast(isQuestion)

/** Messages that were queued before this one. The one that runs is not queued. */
export function queuedBefore({ entries }: ChatHistory, { place = 0 }: ChatEntry): number {
  const head = entries.find(isOpen)
  const isRunning = head === undefined || head.state === 'running' || head.state === 'waiting_for_you'
  return Math.max(0, isRunning ? place - 1 : place)
}

const SAMPLES_MIN = 3
const SAMPLES_MAX = 10

/** About when a queued message begins, from the last answers; undefined where there are too few, or one waits. */
export function expectedWaitMs(history: ChatHistory, entry: ChatEntry, nowMs: number): number | undefined {
  const took = history.entries.filter(({ state }) => state === 'answered').flatMap(({ duration_ms: ms }) => ms ?? [])
  const samples = took.slice(-SAMPLES_MAX).toSorted((a, b) => a - b)
  const running = runningEntry(history)
  if (samples.length < SAMPLES_MIN || running?.state !== 'running') return undefined
  const usualMs = samples[Math.floor(samples.length / 2)] ?? 0
  const ranMs = running.started_at === undefined ? 0 : nowMs - Date.parse(running.started_at)
  return Math.max(0, usualMs - ranMs) + queuedBefore(history, entry) * usualMs
}

/** The id that "Run again" gives to the new message: with the same one, two clicks or two tabs send one message. */
export const againId = ({ id }: Pick<ChatEntry, 'id'>): string => `again-${id}`

/** Its message was sent again, as a new one. */
export const wasRunAgain = ({ entries }: Pick<ChatHistory, 'entries'>, entry: Pick<ChatEntry, 'id'>): boolean =>
  entries.some(({ sender_message_id: id }) => id === againId(entry))

/** The message that an address names: by its id, or by its task. A question of the task comes first. */
export function entryAt({ entries }: Pick<ChatHistory, 'entries'>, at: string): ChatEntry | undefined {
  const ofTask = entries.filter(({ task_id: taskId }) => taskId === at)
  const asking = ofTask.findLast(({ state }) => state === 'waiting_for_you')
  return asking ?? entries.find(({ id }) => id === at) ?? ofTask.at(-1)
}
