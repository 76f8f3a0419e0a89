/**
 * One conversation, live: the newest page of its history, older pages on demand, and the events of the workspace's log
 * from the number of that page on. Events with text and tools are applied at once; after any other event of this
 * conversation the newest page is read again, at most a few times a second.
 */
import { useQuery } from '@tanstack/react-query'
import { useEffect, useMemo, useRef } from 'react'
import { applyEvents, type ChatHistory, isOf } from '../../../../src/client/live-conversation.ts'
import type { ActivityView } from '../../../../src/client/views.ts'
import { useLiveState, useWorkspaceEvents } from '../../api/live.ts'
import { type ConversationPages, conversationPages } from './conversation-pages.ts'
import { entryAt } from './messages/timeline.ts'
import { refreshConversations } from './use-conversations.ts'

/** Events within this time become one update of the page. */
const BATCH_MS = 40
const REFRESH_MS_MIN = 200
/** Events that are kept to be applied to a page that was read before them. */
const RECENT_EVENTS_MAX = 5000

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
  const others = createThrottled(REFRESH_MS_MIN, async () => onOthers())
  /** The last events of the conversation, and those of them that are not applied yet. */
  let recent: readonly ActivityView[] = []
  let fresh: readonly ActivityView[] = []
  let batch: ReturnType<typeof setTimeout> | undefined
  let isLoading = false

  const applied = (history: ChatHistory, events: readonly ActivityView[]): ChatHistory => {
    const { entries, isStale } = applyEvents(history, events)
    if (isStale) reading.soon()
    return { ...history, entries }
  }
  /** Applies events that a page does not contain, because it was read before them. */
  const withRecent = (history: ChatHistory): ChatHistory => applied(history, recent)
  const reading = createThrottled(REFRESH_MS_MIN, async () => {
    try {
      // Far up in the history the newest messages are not on the page.
      if (pages.get()?.hasNewer) return others.soon()
      pages.set(withRecent(await pages.readNewest()))
    } catch {
      // The platform is away. The page reads again when it is back.
    }
  })
  const flush = (): void => {
    batch = undefined
    const before = pages.get()
    const taken = fresh
    fresh = []
    if (before !== undefined && taken.length > 0) pages.set(applied(before, taken))
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
      const history = pages.get()
      const own = history === undefined ? [] : more.filter((event) => isOf(history, event))
      recent = [...recent, ...own].slice(-RECENT_EVENTS_MAX)
      fresh = [...fresh, ...own]
      // A short turn of another conversation is over before the state of the workspace shows it.
      if (more.some((event) => event.type === 'status' && !own.includes(event))) others.soon()
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
