/**
 * The messages of one conversation on the page. Pure. Pages of the API and live events meet here: each message knows the
 * number of the log at which it was read, and an event with a lower number is already in it. So nothing is shown twice,
 * and a page that was reloaded shows the same as one that was open all the time.
 */
import type { ActivityView, ChatView } from '../../../../src/client/views.ts'

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

/** The message can still change by itself. */
export const isOpen = ({ state }: Pick<ChatMessageView, 'state'>): boolean => OPEN_STATES.has(state)

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

export interface AppliedEvents {
  readonly history: ChatHistory
  /** Something changed that the events do not tell completely: read the newest page again. */
  readonly isStale: boolean
  /** Tasks of messages that are not on the page: of another conversation, or new in this one. */
  readonly unknownTasks: readonly string[]
}

/** Applies events of the workspace's log. Text and tools are applied here; for all else the page is read again. */
export function applyEvents(before: ChatHistory, events: readonly ActivityView[]): AppliedEvents {
  const entries = [...before.entries]
  const unknownTasks: string[] = []
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
      if (event.type === 'status' && isUnseen(entries, event)) unknownTasks.push(taskId)
      continue
    }
    if (seq < entry.seq || (seq === entry.seq && !row.changed.has(index))) continue
    const changed = applyEvent(entry, event)
    if (changed === undefined) isStale = true
    else {
      entries[index] = { ...changed, seq }
      row.changed.add(index)
    }
  }
  return { history: { ...before, entries }, isStale: isStale || unknownTasks.length > 0, unknownTasks }
}

/** False for an event that the settled message on the page already contains. */
const isUnseen = (entries: readonly ChatEntry[], { seq, task_id }: ActivityView): boolean =>
  !entries.some((each) => each.task_id === task_id && each.seq >= seq)

/** Undefined where the page must be read again. */
function applyEvent(entry: ChatEntry, event: ActivityView): ChatEntry | undefined {
  const { reply, tools } = entry
  // An agent reports the tool for which it waits for a person, and still waits.
  const state = entry.state === 'waiting_for_you' ? entry.state : 'running'
  switch (event.type) {
    case 'text':
      return {
        ...entry,
        state,
        reply: { text: (reply?.text ?? '') + (event.text ?? ''), partial: true, artifacts: reply?.artifacts ?? [] },
      }
    case 'tool':
      return { ...entry, state, tools: withTool(tools, event) }
    // A new attempt begins: the text so far is void.
    case 'retry': {
      const { reply: _void, ...rest } = entry
      return { ...rest, tools: [] }
    }
    case 'progress':
      return entry
    case 'status':
      return begunBy(entry, event)
    default:
      return undefined
  }
}

/** A turn that begins changes nothing else. With a reason it waits again, and after an ask it goes on. */
function begunBy(entry: ChatEntry, { state, text, at }: ActivityView): ChatEntry | undefined {
  if (state !== 'TASK_STATE_WORKING' || text !== undefined || entry.state === 'waiting_for_you') return undefined
  const { place: _place, reason: _reason, next_try_at: _next, ...rest } = entry
  return { ...rest, state: 'running', started_at: at }
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

/** Joins the end of a tool with its beginning. */
function withTool(tools: readonly ChatToolView[], event: ActivityView): readonly ChatToolView[] {
  const { name = '', subject, state: given, at, diffs } = event
  const state = given === 'finished' || given === 'failed' ? given : 'started'
  const index = tools.findLastIndex(
    (tool) => tool.state === 'started' && tool.name === name && (subject ?? tool.subject) === tool.subject,
  )
  const begun = state === 'started' ? undefined : tools[index]
  if (begun === undefined)
    return [...tools, { name, ...(subject !== undefined && { subject }), state, at, ...(diffs && { diffs }) }]
  const { waited_ms: waitedMs = 0, ...rest } = begun
  const duration_ms = Math.max(0, Date.parse(at) - Date.parse(begun.at) - waitedMs)
  return tools.with(index, { ...rest, state, duration_ms, ...(diffs && { diffs }) })
}
