/** One conversation: its messages with their answers, what waits for a person, and the composer. */
import { useEffect, useRef } from 'react'
import { type ChatEntry, type ChatHistory, isOpen } from '../../../../src/client/live-conversation.ts'
import type { ConversationView, WorkspaceSummary } from '../../../../src/client/views.ts'
import { reasonOf } from '../../api/client.ts'
import { useLiveState } from '../../api/live.ts'
import { useMay } from '../../api/queries.ts'
import { PERMISSION_SENTENCES, permissionOf } from '../../create/permission-sentences.ts'
import { EmptyState, Loading } from '../../ui/empty-state.tsx'
import { ErrorBoundary } from '../../ui/error-boundary.tsx'
import { Time } from '../../ui/text/time.tsx'
import type { TabProps } from '../tab.ts'
import { MessageScroller } from './message-scroller.tsx'
import { ChatEntryView } from './messages/chat-entry.tsx'
import { FolderPath } from './messages/folder-path.tsx'
import { OutgoingBubble } from './messages/outgoing-bubble.tsx'
import { senderWords } from './messages/sender-words.ts'
import { shownFolder } from './messages/shown-folder.ts'
import { askingEntry, entryAt, runningEntry, type TimelineItem, timelineOf } from './messages/timeline.ts'
import { type ConversationChat, useConversation } from './use-conversation.ts'
import { isOfPeople, noteConversation, summaryOf } from './use-conversations.ts'
import { Composer } from './writing/composer.tsx'
import { dropOutgoing, hurryOutgoing, useOutgoing } from './writing/outgoing.ts'

export interface ConversationProps extends TabProps {
  /** The id of the conversation, or the context id of one of people. */
  readonly conversation: string
  /** A message or a task: the conversation opens there. */
  readonly at: string | undefined
  readonly others: readonly ConversationView[]
  readonly onOpen: (conversation: string) => void
}

export function Conversation({ workspace, conversation, at, others, onOpen }: ConversationProps) {
  const chat = useConversation({ workspaceId: workspace.id, conversation, at })
  const { history, error } = chat
  const may = useMay()
  // A link may name the conversation by its id.
  const contextId = history?.contextId ?? conversation
  const outgoing = useOutgoing(workspace.id).filter((message) => message.contextId === contextId)
  useFreshness(workspace, chat, outgoing.filter(isSent).length)
  useConfirmed(history, outgoing)
  if (history === undefined) {
    if (error === null) return <Loading />
    return <EmptyState title="The conversation cannot be read">{reasonOf(error)}</EmptyState>
  }
  const isOwn = history.principal === undefined || history.principal === 'people'
  const items = timelineOf({ history, outgoing, others: isOwn ? others.filter((each) => !isOfPeople(each)) : [] })
  const running = runningEntry(history)
  const target = at === undefined ? undefined : entryAt(history, at)
  // The answer on its way has answered it.
  const asking = askingEntry(history)
  const isAnswered = outgoing.some(({ taskId }) => taskId !== undefined && taskId === asking?.task_id)
  const isEmpty = history.entries.length === 0 && outgoing.length === 0
  return (
    <>
      {isEmpty ? (
        <Greeting workspace={workspace} />
      ) : (
        <MessageScroller
          firstKey={items[0]?.key}
          newest={newestMark(history, others)}
          sentKey={outgoing.at(-1)?.messageId}
          targetKey={target?.id}
          hasOlder={history.hasOlder}
          hasNewer={history.hasNewer}
          onTop={chat.loadOlder}
          onBottom={chat.loadNewer}
          onNewest={chat.showNewest}
        >
          {items.map((item) => (
            <div key={item.key} data-key={item.key} className={item.key === target?.id ? TARGET : 'min-w-0'}>
              <ErrorBoundary what="This message" text={plainTextOf(item)}>
                <Item item={item} workspace={workspace} history={history} onOpen={onOpen} />
              </ErrorBoundary>
            </div>
          ))}
        </MessageScroller>
      )}
      <Announcement name={workspace.name} history={history} />
      {isOwn && may('message.send') ? (
        <Composer
          workspace={workspace}
          contextId={contextId}
          running={running}
          asking={isAnswered ? undefined : asking}
        />
      ) : (
        <p className="shrink-0 border-line border-t px-5 py-3 text-faint text-second">
          {isOwn ? 'You read along. To write, log in as a member.' : 'This conversation belongs to another sender.'}
        </p>
      )}
    </>
  )
}

const isSent = ({ state }: { readonly state: string }): boolean => state === 'sent'

/** The message that the address names. */
const TARGET = '-mx-3 min-w-0 rounded-box bg-accent-soft px-3 py-3 outline-1 outline-accent'

/** Grows with each new message and each answer, also with those that are not on the page. */
function newestMark({ id, entries, hasNewer }: ChatHistory, others: readonly ConversationView[]): number | undefined {
  const last = entries.at(-1)
  const markOf = (count: number, state: ChatEntry['state']) => 2 * count + (isOpen({ state }) ? 0 : 1)
  if (!hasNewer) return last === undefined ? 0 : markOf(last.n, last.state)
  const listed = others.find((each) => each.id === id)
  return listed && markOf(listed.messages, listed.state)
}

/** The platform tells of a message that it has taken; without an event of it the page reads again after this time. */
const CONFIRMED_MS = 3000

/** Reads again what no event of this conversation tells: the state of the workspace, and the first message. */
function useFreshness({ id, status }: WorkspaceSummary, chat: ConversationChat, sent: number): void {
  const { refresh, history } = chat
  const isOnline = useLiveState().kind === 'online'
  useEffect(() => {
    if (isOnline) hurryOutgoing()
  }, [isOnline])
  const isFollowed = history?.seq !== undefined
  useEffect(() => {
    if (sent === 0) return
    const timer = setTimeout(refresh, isFollowed ? CONFIRMED_MS : 0)
    return () => clearTimeout(timer)
  }, [refresh, sent, isFollowed])
  const seen = useRef(status)
  useEffect(() => {
    if (seen.current !== status) refresh()
    seen.current = status
  }, [refresh, status])
  // The list shows this conversation as the page does.
  const summary = history && summaryOf(history)
  const mark = JSON.stringify(summary)
  // biome-ignore lint/correctness/useExhaustiveDependencies: the mark is the summary.
  useEffect(() => {
    if (summary !== undefined) noteConversation(id, summary)
  }, [id, mark])
}

/** Removes outgoing messages that the history shows. */
function useConfirmed(history: ChatHistory | undefined, outgoing: readonly { readonly messageId: string }[]): void {
  useEffect(() => {
    const known = new Set(history?.entries.map((entry) => entry.sender_message_id))
    const shown = outgoing.map(({ messageId }) => messageId).filter((id) => known.has(id))
    if (shown.length > 0) dropOutgoing(shown)
  }, [history, outgoing])
}

interface ItemProps extends TabProps {
  readonly item: TimelineItem
  readonly history: ChatHistory
  readonly onOpen: (conversation: string) => void
}

function Item({ item, workspace, history, onOpen }: ItemProps) {
  if (item.kind === 'other') return <OtherLine other={item.other} onOpen={() => onOpen(item.other.id)} />
  if (item.kind === 'outgoing') return <OutgoingBubble outgoing={item.outgoing} />
  return <ChatEntryView entry={item.entry} history={history} workspace={workspace} />
}

/** The words of a message that could not be shown, whatever they are made of. */
function plainTextOf(item: TimelineItem): string {
  if (item.kind === 'other') return String(item.other.title)
  if (item.kind === 'outgoing') return String(item.outgoing.text)
  const { text, reply } = item.entry
  return [text, reply?.text].filter((each) => each !== undefined).join('\n\n')
}

/** A message of an agent, a schedule or a program, apart from those of people: one quiet line that opens it. */
function OtherLine({ other, onOpen }: { readonly other: ConversationView; readonly onOpen: () => void }) {
  const { sender, title, updated_at: at } = other
  const { name, verb } = senderWords(sender)
  return (
    <button
      type="button"
      onClick={onOpen}
      className="flex w-full items-baseline gap-3 border-line border-l-2 pl-3 text-left text-second text-soft hover:text-ink max-md:min-h-10"
    >
      <span className="line-clamp-2 min-w-0 flex-1 break-words">
        <span className="font-[600] text-ink">{name}</span> {verb}: <bdi>{title}</bdi>
      </span>
      <span className="shrink-0 text-faint text-time">
        <Time at={at} />
      </span>
    </button>
  )
}

function Greeting({ workspace }: TabProps) {
  const { name } = workspace
  const folder = shownFolder(workspace)
  const permission = permissionOf(workspace)
  return (
    <div className="flex min-h-0 flex-1 flex-col justify-center">
      <EmptyState title={`Say hello to ${name}`}>
        {folder === undefined ? null : (
          <>
            {name} works in <FolderPath path={folder} />
            {permission === undefined ? '' : ` and ${PERMISSION_SENTENCES[permission][0]}`}.
          </>
        )}
      </EmptyState>
    </div>
  )
}

/** Screen readers hear the state; the answer itself is a live region of its message. */
function Announcement({ name, history }: { readonly name: string; readonly history: ChatHistory }) {
  const last = history.entries.findLast(({ state }) => state !== 'queued')
  const text = {
    queued: '',
    running: `${name} is working`,
    waiting_for_you: `${name} waits for you`,
    rate_limited: `${name} is rate limited`,
    parked: `${name} tries again later`,
    answered: `${name} has answered`,
    failed: 'The message failed',
    stopped: 'The message is stopped',
  }[last?.state ?? 'queued']
  return (
    <p role="status" className="sr-only">
      {text}
    </p>
  )
}
