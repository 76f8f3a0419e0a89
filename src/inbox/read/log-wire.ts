/**
 * Converts the rows of a task's log to A2A events, in log order, for one reader. A reply is one artifact: its first chunk
 * begins it (`append: false`), the others append, and the last one only adds what is missing and closes it. Clients drop
 * an append to an artifact that they do not know, and some add a repeated text to what they have. So the last chunk
 * replaces the text only where it must: after a retry, or where the reply is not what was streamed.
 */
import { createHash, hash } from 'node:crypto'
import type { MessageContent, Part, StreamResponse } from '../../protocol/a2a.ts'
import { isBareText } from '../../protocol/merge-artifact.ts'
import type { StoredReply } from '../../protocol/stored-reply.ts'
import type { Transaction } from '../../store/store.ts'
import type { LogEntry } from '../reception.ts'
import type { LogItem } from '../rows/log.ts'
import { type TaskIds, toAgentMessage } from '../rows/status-message.ts'
import type { TurnEvent } from '../worker.ts'
import { DAMAGED_REPLY, readItems, type TaskLogRow } from './event-log.ts'

export interface LogWire {
  /** The messages of these rows whose earlier events decide what the rows become, and that it has not seen. */
  unknownMessages(rows: readonly TaskLogRow[]): string[]
  /** What the reader has of a reply from before its first row. */
  learn(messageId: string, streamed: StreamedReply): void
  /** Call it once for each row, in order. */
  toEntry(task: TaskIds, row: TaskLogRow): LogEntry
}

export function createLogWire(): LogWire {
  const streamedReplies = new Map<string, StreamedReply>()
  const streamedOf = (messageId: string) => {
    const known = streamedReplies.get(messageId)
    if (known !== undefined) return known
    const streamed = createStreamedReply()
    streamedReplies.set(messageId, streamed)
    return streamed
  }
  return {
    unknownMessages(rows) {
      const showing = rows.filter(({ messageId, items }) => !streamedReplies.has(messageId) && items.some(isOfReply))
      return [...new Set(showing.map(({ messageId }) => messageId))]
    },
    learn: (messageId, streamed) => void streamedReplies.set(messageId, streamed),
    toEntry(task, row) {
      const streamed = row.items.some(isOfReply) ? streamedOf(row.messageId) : undefined
      const wire = row.items.flatMap((item, index) => itemEvents(task, row, { item, index, streamed }))
      return { seq: row.seq, atMs: row.atMs, wire }
    },
  }
}

/** For webhooks: each reply is one event, the whole reply. Chunks are pruned after an hour, so nothing depends on them. */
export function toWholeReplies(task: TaskIds, row: TaskLogRow): LogEntry {
  const items = row.items.map((item) => (isText(item) || item.t === 'reset' ? undefined : item))
  const wire = items.flatMap((item, index) =>
    item === undefined ? [] : itemEvents(task, row, { item, index, streamed: undefined }),
  )
  return { seq: row.seq, atMs: row.atMs, wire }
}

/** What a reader has of a reply after this row of the log. */
export function* readStreamedReply(of: {
  taskId: string
  messageId: string
  throughSeq: number
}): Transaction<StreamedReply> {
  const streamed = createStreamedReply()
  yield* readItems(of, (item) => {
    if (isText(item)) streamed.add(item.event.delta)
    else if (item.t === 'reset') streamed.reset()
  })
  return streamed
}

export interface StreamedReply {
  /** The reader has text of this attempt. A snapshot has no artifact that was only reset. */
  readonly isBegun: boolean
  add(delta: string): void
  /** A new attempt: the text so far is void. */
  reset(): void
  /** The end of this text that the reader does not have; undefined where the reader must replace what it has. */
  restOf(text: string): string | undefined
}

/** Keeps a checksum and not the text: a reply can have megabytes, and a thousand readers may follow it. */
function createStreamedReply(): StreamedReply {
  let isReplaced = false
  let characters = 0
  let sum = createHash('sha256')
  return {
    get isBegun() {
      return characters > 0
    },
    add(delta) {
      characters += delta.length
      // Two deltas can share a surrogate pair, which UTF-8 cannot represent in halves.
      sum.update(delta, 'utf16le')
    },
    reset() {
      isReplaced ||= characters > 0
      characters = 0
      sum = createHash('sha256')
    },
    restOf(text) {
      if (isReplaced || characters === 0 || text.length < characters) return undefined
      const begin = hash('sha256', Buffer.from(text.slice(0, characters), 'utf16le'), 'hex')
      return sum.copy().digest('hex') === begin ? text.slice(characters) : undefined
    },
  }
}

type TextItem = LogItem & { readonly t: 'turn'; readonly event: { readonly type: 'text' } }

const isText = (item: LogItem): item is TextItem => item.t === 'turn' && item.event.type === 'text'

const isOfReply = (item: LogItem): boolean => item.t === 'reply' || item.t === 'reset' || isText(item)

interface ItemPlace<Item> {
  readonly item: Item
  /** Its place in the row. */
  readonly index: number
  /** Undefined: the reader has nothing of the reply. */
  readonly streamed: StreamedReply | undefined
}

function itemEvents(task: TaskIds, row: TaskLogRow, place: ItemPlace<LogItem>): StreamResponse[] {
  const { item, index, streamed } = place
  if (item.t === 'status') return [statusUpdate(task, row, { item, index })]
  if (item.t === 'reply') return lastChunk(task, row, streamed)
  if (item.t === 'reset') {
    streamed?.reset()
    return [replyUpdate(task, row, { parts: [], append: false, lastChunk: false })]
  }
  if (item.t !== 'turn') return []
  if (item.event.type !== 'text') return turnUpdate(task, row, { event: item.event, index })
  const chunk = { parts: [{ text: item.event.delta }], append: streamed?.isBegun === true, lastChunk: false }
  streamed?.add(item.event.delta)
  return [replyUpdate(task, row, chunk)]
}

function statusUpdate(
  task: TaskIds,
  row: TaskLogRow,
  at: { item: LogItem & { t: 'status' }; index: number },
): StreamResponse {
  const { t: _kind, state, parts, ...content } = at.item
  const messageId = `${task.id}.${row.seq}.${at.index}`
  const message =
    parts === undefined ? {} : { message: toAgentMessage(task, { messageId, status: { ...content, parts } }) }
  const status = { state, ...message, timestamp: new Date(row.atMs).toISOString() }
  return { statusUpdate: { taskId: task.id, contextId: task.contextId, status } }
}

/** All attempts at a message write one artifact, so that a retry replaces text and never doubles it. */
export const replyArtifactId = (messageId: string): string => `reply-${messageId}`

function lastChunk(task: TaskIds, row: TaskLogRow, streamed: StreamedReply | undefined): StreamResponse[] {
  const { parts, metadata } = row.reply ?? NO_REPLY
  if (parts.length === 0 && row.reply !== DAMAGED_REPLY) return []
  const rest = streamed && restOfParts(parts, streamed)
  const chunk = { parts: rest ?? parts, append: rest !== undefined, lastChunk: true, ...(metadata && { metadata }) }
  return [replyUpdate(task, row, chunk)]
}

const NO_REPLY: StoredReply = { parts: [], artifacts: [] }

/** The parts that the reader does not have, and at least one: A2A has no artifact without parts. */
function restOfParts([first, ...others]: readonly Part[], streamed: StreamedReply): readonly Part[] | undefined {
  if (!isBareText(first)) return undefined
  const text = streamed.restOf(first.text)
  if (text === undefined) return undefined
  return text === '' && others.length > 0 ? others : [{ text }, ...others]
}

function replyUpdate(
  task: TaskIds,
  row: TaskLogRow,
  { append, lastChunk: isLast, ...content }: MessageContent & { append: boolean; lastChunk: boolean },
): StreamResponse {
  const artifact = { artifactId: replyArtifactId(row.messageId), ...content }
  return { artifactUpdate: { taskId: task.id, contextId: task.contextId, artifact, append, lastChunk: isLast } }
}

function turnUpdate(task: TaskIds, row: TaskLogRow, at: { event: TurnEvent; index: number }): StreamResponse[] {
  const { event, index } = at
  if (event.type === 'status' && event.said !== undefined) {
    const item = { t: 'status', state: 'TASK_STATE_WORKING', ...event.said } as const
    return [statusUpdate(task, row, { item, index })]
  }
  if (event.type !== 'artifact') return []
  const { artifact, append, lastChunk: isLast } = event
  return [{ artifactUpdate: { taskId: task.id, contextId: task.contextId, artifact, append, lastChunk: isLast } }]
}
