/** All conversations of a workspace, with a search over every stored message and answer. */
import { type KeyboardEvent, useState } from 'react'
import type { ConversationView, MessageHitView } from '../../../../src/client/views.ts'
import { reasonOf } from '../../api/client.ts'
import { Button } from '../../ui/button.tsx'
import { classNames } from '../../ui/class-names.ts'
import { EmptyState, Loading } from '../../ui/empty-state.tsx'
import { Field } from '../../ui/field.tsx'
import { Time } from '../../ui/text/time.tsx'
import { countText } from '../../ui/text/times.ts'
import { MessageHits } from './message-hits.tsx'
import { isOfPeople, useConversations } from './use-conversations.ts'

const SEARCH_CHARACTERS_MAX = 200

export interface ConversationListProps {
  readonly workspaceId: string
  readonly chosen: string | undefined
  readonly onChoose: (conversation: string) => void
  readonly onHit: (hit: MessageHitView) => void
  readonly onClose: () => void
}

export function ConversationList({ workspaceId, chosen, onChoose, onHit, onClose }: ConversationListProps) {
  const [typed, setTyped] = useState('')
  const search = typed.trim()
  const closeOnEscape = (event: KeyboardEvent) => {
    if (event.key !== 'Escape') return
    // The panel would close too.
    event.preventDefault()
    onClose()
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: keys of the field and the buttons inside bubble up to here.
    <div className="flex min-h-0 flex-1 flex-col" onKeyDown={closeOnEscape}>
      <div className="px-5 py-3 max-md:px-3">
        <Field
          label="Search the conversations"
          hideLabel
          type="search"
          autoFocus
          placeholder="Search messages and answers"
          maxLength={SEARCH_CHARACTERS_MAX}
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
        />
      </div>
      <div className="min-h-0 flex-1 overflow-y-auto px-3 pb-4">
        {search === '' ? (
          <AllConversations workspaceId={workspaceId} chosen={chosen} onChoose={onChoose} />
        ) : (
          <MessageHits workspaceId={workspaceId} search={search} onChoose={onHit} />
        )}
      </div>
    </div>
  )
}

function AllConversations({
  workspaceId,
  chosen,
  onChoose,
}: Pick<ConversationListProps, 'workspaceId' | 'chosen' | 'onChoose'>) {
  const { conversations, hasMore, isReading, error, readMore } = useConversations(workspaceId)
  const groups = groupsOf(conversations ?? [])
  return (
    <>
      {error ? <EmptyState title="The conversations cannot be read">{reasonOf(error)}</EmptyState> : null}
      {conversations === undefined && error === null ? <Loading /> : null}
      {conversations?.length === 0 && !isReading && !hasMore ? (
        <EmptyState title="No conversation yet">Each conversation with this workspace is listed here.</EmptyState>
      ) : null}
      {groups.map(({ title, members }) => (
        <section key={title} aria-label={title}>
          {groups.length > 1 ? <h3 className="px-2 pt-3 pb-1 text-faint text-time">{title}</h3> : null}
          {members.map((each) => (
            <Row
              key={each.id}
              conversation={each}
              isChosen={each.id === chosen}
              onChoose={() => onChoose(isOfPeople(each) ? each.context_id : each.id)}
            />
          ))}
        </section>
      ))}
      {hasMore ? (
        <div className="flex justify-center py-3">
          <Button variant="quiet" onClick={readMore} disabled={isReading}>
            Show more
          </Button>
        </div>
      ) : null}
    </>
  )
}

/** People first. Messages of agents, schedules and programs are apart from those of people. */
function groupsOf(conversations: readonly ConversationView[]) {
  const people = conversations.filter(isOfPeople)
  const others = conversations.filter((each) => !isOfPeople(each))
  const groups = [
    { title: 'People', members: people },
    { title: 'Agents, schedules and programs', members: others },
  ]
  return groups.filter(({ members }) => members.length > 0)
}

const STATE_WORDS: Readonly<Partial<Record<ConversationView['state'], string>>> = {
  queued: 'queued',
  running: 'running',
  waiting_for_you: 'waiting for you',
  rate_limited: 'rate limited',
  parked: 'parked',
  failed: 'failed',
  stopped: 'stopped',
}

interface RowProps {
  readonly conversation: ConversationView
  readonly isChosen: boolean
  readonly onChoose: () => void
}

function Row({ conversation, isChosen, onChoose }: RowProps) {
  const { title, state, messages, sender, updated_at: at } = conversation
  const from = isOfPeople(conversation) ? undefined : sender?.name
  const needsPerson = state === 'waiting_for_you' || state === 'failed'
  return (
    <button
      type="button"
      aria-current={isChosen}
      onClick={onChoose}
      className={classNames(
        'focus-inside flex w-full flex-col rounded-button px-2 py-2 text-left hover:bg-raised max-md:py-3',
        isChosen && 'bg-accent-soft hover:bg-accent-soft',
      )}
    >
      <span className="flex w-full items-baseline gap-3">
        <span dir="auto" className="min-w-0 flex-1 truncate">
          {from === undefined ? null : <span className="font-[600]">{from}: </span>}
          {title}
        </span>
        <span className={classNames('shrink-0 text-time', isChosen ? 'text-soft' : 'text-faint')}>
          <Time at={at} />
        </span>
      </span>
      <span className={classNames('text-time', isChosen ? 'text-soft' : 'text-faint')}>
        {STATE_WORDS[state] ? (
          <>
            <span className={needsPerson ? 'text-needs' : undefined}>{STATE_WORDS[state]}</span> ·{' '}
          </>
        ) : null}
        {messages === 1 ? '1 message' : `${countText(messages)} messages`}
      </span>
    </button>
  )
}
