/**
 * One conversation, live: the newest page of its history, older pages on demand, and the events of the workspace's log
 * from the number of that page on. Events with text and tools are applied at once; after any other event of this
 * conversation the newest page is read again, at most a few times a second.
 */
import { useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useRef } from 'react'
import type { ActivityView } from '../../../../src/client/views.ts'
import { useLiveState, useWorkspaceEvents } from '../../api/live.ts'
import { applyEvents, type ChatHistory, entryAt } from './chat-history.ts'
import { type ConversationPages, conversationPages } from './conversation-pages.ts'
import { refreshConversations } from './use-conversations.ts'

/** Events within this time become one update of the page. */
const BATCH_MS = 40
const REFRESH_MS_MIN = 200
/** Events that are kept to be applied to a page that was read before them. */
const RECENT_EVENTS_MAX = 5000
/** Beyond it the known tasks of other conversations are forgotten, and looked for once more. */
const FOREIGN_TASKS_MAX = 5000

export interface ConversationChat {
  readonly history: ChatHistory | undefined
  readonly error: Error | null
  loadOlder(): Promise<void>
  loadNewer(): Promise<void>
  /** Drops what is on the page and shows the newest messages. */
  showNewest(): Promise<void>
  refresh(): void
}

export interface ConversationPlace {
  readonly workspaceId: string
  readonly conversation: string
  /** Open it there: a message or a task. */
  readonly at: string | undefined
}

export function useConversation({ workspaceId, conversation, at }: ConversationPlace): ConversationChat {
  const follower = useMemo(
    () => createFollower(conversationPages(workspaceId, conversation), () => refreshConversations(workspaceId)),
    [workspaceId, conversation],
  )
  const {
    data: history,
    error,
    refetch,
  } = useQuery({
    queryKey: follower.key,
    queryFn: () => follower.readFirst(at),
    staleTime: Infinity,
    refetchOnMount: 'always',
    gcTime: 60_000,
  })
  useEffect(() => follower.stop, [follower])
  // Another message of the conversation that is open already.
  useEffect(() => {
    if (at !== undefined) follower.showAt(at).catch(() => undefined)
  }, [follower, at])
  useWorkspaceEvents({
    workspaceId,
    since: history?.seq,
    onEvents: follower.take,
    onGap: () => void refetch(),
  })
  // While the page was offline the queue may have moved.
  const isOnline = useLiveState().kind === 'online'
  const wasOnline = useRef(isOnline)
  useEffect(() => {
    if (isOnline && !wasOnline.current) follower.refresh()
    wasOnline.current = isOnline
  }, [isOnline, follower])
  return { history, error, ...follower }
}

/** `onOthers` is called after changes of other conversations of the workspace. */
function createFollower(pages: ConversationPages, onOthers: () => void) {
  const events = createEventLog()
  const others = createThrottled(REFRESH_MS_MIN, async () => onOthers())
  let batch: ReturnType<typeof setTimeout> | undefined
  let isLoading = false

  /** Applies events that a page does not contain, because it was read before them. */
  const withRecent = (history: ChatHistory): ChatHistory => {
    const { history: applied, isStale } = applyEvents(history, events.recent())
    if (isStale) reading.soon()
    return applied
  }
  const reading = createThrottled(REFRESH_MS_MIN, async () => {
    const seen = events.recent()
    try {
      // Far up in the history the newest messages are not on the page.
      if (pages.get()?.hasNewer) return others.soon()
      pages.set(withRecent(await pages.readNewest()))
      if (events.forgetOthers(seen, new Set(pages.get()?.entries.map((entry) => entry.task_id)))) others.soon()
    } catch {
      // The platform is away. The page reads again when it is back.
    }
  })
  const flush = (): void => {
    batch = undefined
    const before = pages.get()
    const taken = events.takeBatch()
    if (before === undefined || taken.length === 0) return
    const { history, isStale } = applyEvents(before, taken)
    pages.set(history)
    if (isStale) reading.soon()
  }
  const loadOnce = async (read: (before: ChatHistory) => Promise<ChatHistory>): Promise<void> => {
    const before = pages.get()
    if (isLoading || before === undefined) return
    isLoading = true
    try {
      pages.set(withRecent(await read(before)))
    } finally {
      isLoading = false
    }
  }
  return {
    key: pages.key,
    /** The newest page, unless the address names a message that is not on the page. */
    async readFirst(at: string | undefined) {
      const known = pages.get()
      const isThere = at === undefined || (known !== undefined && entryAt(known, at) !== undefined)
      return withRecent(await (isThere ? pages.readNewest() : pages.readAround(at)))
    },
    async showAt(at: string) {
      const known = pages.get()
      if (known !== undefined && entryAt(known, at) === undefined) await loadOnce(() => pages.readAround(at))
    },
    refresh: reading.soon,
    take(more: readonly ActivityView[]) {
      // A short turn of another conversation is over before the state of the workspace shows it.
      if (events.add(more)) others.soon()
      batch ??= setTimeout(flush, BATCH_MS)
    },
    loadOlder: () => loadOnce(pages.readOlder),
    loadNewer: () => loadOnce(pages.readNewer),
    showNewest: () => loadOnce(pages.readAnew),
    stop() {
      clearTimeout(batch)
      batch = undefined
      reading.stop()
      others.stop()
    },
  }
}

/** Does the work soon, one at a time and with a pause between two beginnings. */
function createThrottled(pauseMs: number, work: () => Promise<void>) {
  let timer: ReturnType<typeof setTimeout> | undefined
  let begunMs = 0
  let isWorking = false
  let isWanted = false
  const run = async () => {
    timer = undefined
    isWorking = true
    begunMs = Date.now()
    await work()
    isWorking = false
    if (isWanted) soon()
  }
  const soon = (): void => {
    isWanted = isWorking
    if (!isWorking) timer ??= setTimeout(() => void run(), Math.max(0, begunMs + pauseMs - Date.now()))
  }
  return {
    soon,
    stop() {
      clearTimeout(timer)
      timer = undefined
    },
  }
}

/** The events that came, without those of tasks that are known to belong to other conversations. */
function createEventLog() {
  const foreign = new Set<string>()
  const isOwn = ({ task_id: taskId }: ActivityView) => taskId !== undefined && !foreign.has(taskId)
  let all: readonly ActivityView[] = []
  let batch: readonly ActivityView[] = []
  return {
    /** True when the state of a message of another conversation has changed. */
    add(more: readonly ActivityView[]): boolean {
      const own = more.filter(isOwn)
      all = [...all, ...own].slice(-RECENT_EVENTS_MAX)
      batch = [...batch, ...own]
      return more.some((event) => event.type === 'status' && !isOwn(event))
    },
    takeBatch() {
      const taken = batch
      batch = []
      return taken
    },
    recent: () => all,
    /**
     * Tasks of these events that are not on the page, which was read after them, are of other conversations. True when
     * there is one that was not known.
     */
    forgetOthers(seen: readonly ActivityView[], own: ReadonlySet<string>): boolean {
      if (foreign.size > FOREIGN_TASKS_MAX) foreign.clear()
      const before = foreign.size
      for (const { task_id: taskId } of seen) if (taskId !== undefined && !own.has(taskId)) foreign.add(taskId)
      all = all.filter(isOwn)
      return foreign.size > before
    },
  }
}
