/**
 * One conversation as it happens, for the page and the chat of the terminal. Pure. Pages of the API and events of the log
 * meet here: each message knows the number of the log at which it was read, and an event with a lower number is already in
 * it. So nothing is shown twice, and a page that was reloaded shows the same as one that was open all the time.
 */
import type { ActivityView, ChatView } from './views.ts'

export type ChatMessageView = ChatView['messages'][number]
export type ChatToolView = ChatMessageView['tools'][number]

/** A message, and the number of the log at which it was read. */
export type ChatEntry = ChatMessageView & { readonly seq: number }

export interface ChatHistory {
  /** Absent for one that has no message yet. */
  readonly id?: string
  /** Whose conversation it is: `people`, a workspace, a schedule. Absent for one that has no message yet. */
  readonly principal?: string
  readonly contextId?: string
  /** The oldest first. */
  readonly entries: readonly ChatEntry[]
  /** There are messages before the first entry. */
  readonly hasOlder: boolean
  /** There are messages after the last entry: a person has scrolled far up. */
  readonly hasNewer: boolean
  /** Follow the log from here; absent for a conversation that has no message yet. */
  readonly seq?: number
}

/** Entries that are kept on the page. Beyond it the other end is dropped, and read again when it is needed. */
export const ENTRIES_MAX = 150

export const EMPTY_HISTORY: ChatHistory = { entries: [], hasOlder: false, hasNewer: false }

const OPEN_STATES: ReadonlySet<ChatMessageView['state']> = new Set([
  'queued',
  'running',
  'waiting_for_you',
  'rate_limited',
  'parked',
])

/** The message can still change by itself, or by an answer. */
export const isOpen = ({ state }: Pick<ChatMessageView, 'state'>): boolean => OPEN_STATES.has(state)

/** It waits for a message of a person. A permission takes a yes or no while its turn runs. */
export const isQuestion = ({ state, ask }: Pick<ChatMessageView, 'state' | 'ask'>): boolean =>
  state === 'waiting_for_you' && ask === undefined

const entriesOf = (page: ChatView): ChatEntry[] => page.messages.map((message) => ({ ...message, seq: page.seq }))

/** Puts the newest page into the history: read at the beginning, and again whenever something has changed. */
export function withNewest(before: ChatHistory | undefined, page: ChatView): ChatHistory {
  const fresh = entriesOf(page)
  const first = fresh[0]?.n ?? 0
  const last = before?.entries.at(-1)?.n ?? 0
  const { id, principal, context_id: contextId, seq } = page
  // More new messages than a page has: the entries before would leave a gap.
  if (before === undefined || before.hasNewer || last < first - 1) {
    const hasOlder = page.before !== undefined
    return { id, principal, contextId, entries: fresh, hasOlder, hasNewer: page.has_newer, seq }
  }
  const kept = before.entries.filter(({ n }) => n < first)
  const entries = [...kept, ...fresh]
  const hasOlder = kept.length === 0 ? page.before !== undefined : before.hasOlder
  return trimStart({ id, principal, contextId, entries, hasOlder, hasNewer: false, seq })
}

/** Replaces entries with what the page says of them; messages that are not on the page yet are left out. */
export function withRefreshed(before: ChatHistory, page: ChatView): ChatHistory {
  const fresh = new Map(entriesOf(page).map((entry) => [entry.id, entry]))
  return { ...before, entries: before.entries.map((entry) => fresh.get(entry.id) ?? entry) }
}

export function withOlder(before: ChatHistory, page: ChatView): ChatHistory {
  const first = before.entries[0]?.n ?? Number.POSITIVE_INFINITY
  const older = entriesOf(page).filter(({ n }) => n < first)
  const entries = [...older, ...before.entries]
  const dropped = entries.length > ENTRIES_MAX
  return {
    ...before,
    entries: dropped ? entries.slice(0, ENTRIES_MAX) : entries,
    hasOlder: page.before !== undefined,
    hasNewer: before.hasNewer || dropped,
  }
}

/** The page after the last entry: `isLast` when the newest message is in it. */
export function withNewer(before: ChatHistory, page: ChatView, isLast: boolean): ChatHistory {
  const last = before.entries.at(-1)?.n ?? 0
  const newer = entriesOf(page).filter(({ n }) => n > last)
  return trimStart({ ...before, entries: [...before.entries, ...newer], hasNewer: !isLast })
}

function trimStart(history: ChatHistory): ChatHistory {
  if (history.entries.length <= ENTRIES_MAX) return history
  return { ...history, entries: history.entries.slice(-ENTRIES_MAX), hasOlder: true }
}

/** What the reducer needs of a message. A reader that follows one turn has no more of it. */
export type LiveEntry = Pick<ChatMessageView, 'task_id' | 'state' | 'reply' | 'tools'> & { readonly seq: number }

/** What an event says of its message. */
export type LiveChange =
  | { readonly type: 'text'; readonly delta: string }
  | { readonly type: 'tool'; readonly tool: ChatToolView }
  /** A new attempt begins: the text so far is void. */
  | { readonly type: 'again' }
  | { readonly type: 'progress'; readonly text: string }
  /** The turn begins. */
  | { readonly type: 'begun'; readonly at: string }
  /** The event does not tell all: the stored message does. `state` is that of the task, where it changed. */
  | { readonly type: 'stale'; readonly state?: string; readonly text: string }

export interface AppliedEvents<Entry extends LiveEntry> {
  readonly entries: readonly Entry[]
  /** What changed in the messages that are known, in order. */
  readonly changes: readonly LiveChange[]
  /** Something changed that the events do not tell completely: read the newest page again. */
  readonly isStale: boolean
}

/** Applies events of the workspace's log. Text and tools are applied here; for all else the page is read again. */
export function applyEvents<Entry extends LiveEntry>(
  before: Pick<ChatHistory, 'id' | 'seq'> & { readonly entries: readonly Entry[] },
  events: readonly ActivityView[],
): AppliedEvents<Entry> {
  const entries = [...before.entries]
  const changes: LiveChange[] = []
  let isStale = false
  // Entries that the row of this number has changed. A row may hold several pieces of a reply under one number.
  let row = { seq: -1, changed: new Set<number>() }
  for (const event of events) {
    const { seq, task_id: taskId } = event
    if (taskId === undefined) continue
    if (seq !== row.seq) row = { seq, changed: new Set() }
    const index = entries.findLastIndex((each) => each.task_id === taskId && isOpen(each))
    const entry = entries[index]
    if (entry === undefined) {
      // Pieces of a reply follow the status of their message.
      if (event.type === 'status' && isOf(before, event) && isUnseen(before, event)) isStale = true
      continue
    }
    if (seq < entry.seq || (seq === entry.seq && !row.changed.has(index))) continue
    const change = changeOf(event, entry)
    changes.push(change)
    const changed = withChange(entry, change)
    if (changed === undefined) isStale = true
    else {
      entries[index] = { ...changed, seq }
      row.changed.add(index)
    }
  }
  return { entries, changes, isStale }
}

/** The event is of a message of this conversation. */
export const isOf = ({ id }: Pick<ChatHistory, 'id'>, { conversation_id: other }: ActivityView): boolean =>
  id !== undefined && id === other

/** False for an event that the newest page, or the settled message on the page, already contains. */
function isUnseen(
  { seq: readAt = 0, entries }: Pick<ChatHistory, 'seq'> & { readonly entries: readonly LiveEntry[] },
  { seq, task_id }: ActivityView,
): boolean {
  return seq > readAt && !entries.some((each) => each.task_id === task_id && each.seq >= seq)
}

function changeOf(event: ActivityView, entry: LiveEntry): LiveChange {
  const { type, text = '', state, at } = event
  switch (type) {
    case 'text':
      return { type, delta: text }
    case 'tool':
      return { type, tool: toolOf(event) }
    case 'retry':
      return { type: 'again' }
    case 'progress':
      return { type, text }
    case 'status':
      // With a reason it waits again, and after an ask it goes on.
      if (state === 'TASK_STATE_WORKING' && event.text === undefined && entry.state !== 'waiting_for_you')
        return { type: 'begun', at }
      return { type: 'stale', state, text }
    default:
      return { type: 'stale', text: '' }
  }
}

/** Undefined where the page must be read again. */
function withChange<Entry extends LiveEntry>(entry: Entry, change: LiveChange): Entry | undefined {
  const { reply, tools } = entry
  // An agent reports the tool for which it waits for a person, and still waits.
  const state = entry.state === 'waiting_for_you' ? entry.state : 'running'
  switch (change.type) {
    case 'text':
      return {
        ...entry,
        state,
        reply: { text: (reply?.text ?? '') + change.delta, partial: true, artifacts: reply?.artifacts ?? [] },
      }
    case 'tool':
      return { ...entry, state, tools: withTool(tools, change.tool) }
    case 'again':
      return { ...entry, reply: undefined, tools: [] }
    case 'progress':
      return entry
    case 'begun':
      return {
        ...entry,
        state: 'running',
        started_at: change.at,
        place: undefined,
        workspace_is: undefined,
        reason: undefined,
        next_try_at: undefined,
      }
    case 'stale':
      return undefined
  }
}

function toolOf({ name = '', subject, state: given, at, diffs }: ActivityView): ChatToolView {
  const state = given === 'finished' || given === 'failed' ? given : 'started'
  return { name, subject, state, at, diffs }
}

/** Joins the end of a tool with its beginning. */
function withTool(tools: readonly ChatToolView[], tool: ChatToolView): readonly ChatToolView[] {
  const { name, subject, state, at, diffs } = tool
  const index = tools.findLastIndex(
    (each) => each.state === 'started' && each.name === name && (subject ?? each.subject) === each.subject,
  )
  const begun = state === 'started' ? undefined : tools[index]
  if (begun === undefined) return [...tools, tool]
  const { waited_ms: waitedMs = 0, ...rest } = begun
  const duration_ms = Math.max(0, Date.parse(at) - Date.parse(begun.at) - waitedMs)
  return tools.with(index, { ...rest, state, duration_ms, ...(diffs && { diffs }) })
}
