/** The tab Chat: the conversations of a workspace, one of them open, and the composer. */
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import type { ChatHistory } from '../../../../src/client/live-conversation.ts'
import type { ConversationView } from '../../../../src/client/views.ts'
import { reasonOf } from '../../api/client.ts'
import { keys, useMay } from '../../api/queries.ts'
import { goTo, usePlace, writePlace } from '../../route/route.ts'
import { IconButton } from '../../ui/button.tsx'
import { EmptyState, Loading } from '../../ui/empty-state.tsx'
import { ChevronIcon, PlusIcon } from '../../ui/icons.tsx'
import type { TabProps } from '../tab.ts'
import { Conversation } from './conversation.tsx'
import { ConversationList } from './conversation-list.tsx'
import { placeOfHit } from './message-hits.tsx'
import { isOfPeople, nameOf, summaryOf, useConversations } from './use-conversations.ts'
import { firstConversation, newId } from './writing/new-id.ts'

export function Chat({ workspace }: TabProps) {
  const { conversations, error } = useConversations(workspace.id)
  if (conversations !== undefined) return <OpenChat workspace={workspace} conversations={conversations} />
  if (error === null) return <Loading />
  return <EmptyState title="The conversations cannot be read">{reasonOf(error)}</EmptyState>
}

interface OpenChatProps extends TabProps {
  readonly conversations: readonly ConversationView[]
}

function OpenChat({ workspace, conversations }: OpenChatProps) {
  const { item, at } = usePlace()
  const may = useMay()
  const [isListOpen, setListOpen] = useState(false)
  // Chosen once: a message in another conversation must not exchange what a person reads.
  const [first] = useState(() => conversations.find(isOfPeople)?.context_id ?? firstConversation(workspace.id))
  const chosen = item ?? first
  const opened = useOpened(workspace.id, chosen)
  const listed = conversations.find(({ id, context_id: contextId }) => chosen === id || chosen === contextId)
  // An old conversation may be beyond the first page of the list.
  const summary = listed ?? opened
  useOwnAddress(workspace.id, opened)
  const open = (conversation: string) => {
    setListOpen(false)
    goTo({ workspaceId: workspace.id, tab: 'chat', item: conversation })
  }
  const isEmpty = summary === undefined && !isListOpen
  return (
    <div className="flex min-h-0 flex-1 flex-col">
      {conversations.length === 0 ? null : (
        <ConversationBar
          title={summary === undefined ? 'New conversation' : nameOf(summary)}
          isOpen={isListOpen}
          onToggle={() => setListOpen(!isListOpen)}
          {...(may('message.send') && !isEmpty && { onNew: () => open(newId()) })}
        />
      )}
      {isListOpen ? (
        <ConversationList
          workspaceId={workspace.id}
          chosen={summary?.id}
          onChoose={open}
          onHit={(hit) => {
            setListOpen(false)
            goTo(placeOfHit(hit))
          }}
          onClose={() => setListOpen(false)}
        />
      ) : (
        <Conversation
          key={chosen}
          workspace={workspace}
          conversation={chosen}
          at={at}
          others={conversations}
          onOpen={open}
        />
      )}
    </div>
  )
}

/** The open conversation, from what is read of it. */
function useOpened(workspaceId: string, conversation: string): ConversationView | undefined {
  const { data } = useQuery<ChatHistory>({
    queryKey: keys.workspace(workspaceId, 'chat', conversation),
    enabled: false,
  })
  return data && summaryOf({ ...data, hasNewer: false })
}

/** A link may name a conversation by one of its messages. The address then becomes that of the conversation. */
function useOwnAddress(workspaceId: string, opened: ConversationView | undefined): void {
  const { item, at, view } = usePlace()
  useEffect(() => {
    if (item === undefined || opened === undefined || item === opened.id || item === opened.context_id) return
    const own = isOfPeople(opened) ? opened.context_id : opened.id
    location.replace(writePlace({ workspaceId, tab: 'chat', item: own, at: at ?? item, view }))
  }, [workspaceId, item, at, view, opened])
}

interface ConversationBarProps {
  readonly title: string
  readonly isOpen: boolean
  readonly onToggle: () => void
  readonly onNew?: () => void
}

function ConversationBar({ title, isOpen, onToggle, onNew }: ConversationBarProps) {
  return (
    <div className="flex shrink-0 items-center gap-2 border-line border-b px-3 py-1">
      <button
        type="button"
        aria-expanded={isOpen}
        onClick={onToggle}
        className="flex h-8 min-w-0 flex-1 items-center gap-1.5 rounded-button px-2 text-left text-second text-soft hover:text-ink max-md:h-11"
      >
        <span className="sr-only">Conversation: </span>
        <span dir="auto" className="truncate">
          {isOpen ? 'Conversations' : title}
        </span>
        <ChevronIcon className={isOpen ? 'shrink-0 rotate-180' : 'shrink-0'} />
      </button>
      {onNew ? (
        <IconButton label="New conversation" onClick={onNew}>
          <PlusIcon />
        </IconButton>
      ) : null}
    </div>
  )
}
