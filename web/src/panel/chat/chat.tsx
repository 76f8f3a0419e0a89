/** The tab Chat: the conversations of a workspace, one of them open, and the composer. */
import { useState } from 'react'
import type { ConversationView } from '../../../../src/client/canvas-calls.ts'
import { reasonOf } from '../../api/client.ts'
import { useMay } from '../../api/queries.ts'
import { goTo, usePlace } from '../../app/route.ts'
import { IconButton } from '../../ui/button.tsx'
import { EmptyState, Loading } from '../../ui/empty-state.tsx'
import { ChevronIcon, PlusIcon } from '../../ui/icons.tsx'
import type { TabProps } from '../tab.ts'
import { Conversation } from './conversation.tsx'
import { ConversationList } from './conversation-list.tsx'
import { firstConversation, newId } from './new-id.ts'
import { isOfPeople, nameOf, useConversations } from './use-conversations.ts'

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
  const { item } = usePlace()
  const may = useMay()
  const [isListOpen, setListOpen] = useState(false)
  // Chosen once: a message in another conversation must not exchange what a person reads.
  const [first] = useState(() => conversations.find(isOfPeople)?.context_id ?? firstConversation(workspace.id))
  const chosen = item ?? first
  const summary = conversations.find(({ id, context_id: contextId }) => chosen === id || chosen === contextId)
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
          onClose={() => setListOpen(false)}
        />
      ) : (
        <Conversation key={chosen} workspace={workspace} conversation={chosen} others={conversations} onOpen={open} />
      )}
    </div>
  )
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
        <span className="truncate">{isOpen ? 'Conversations' : title}</span>
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
