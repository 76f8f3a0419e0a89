/** The messages that a search has found, the newest first. A click opens the conversation at the message. */
import type { MessageHitView } from '../../../../src/client/views.ts'
import { printableName } from '../../../../src/printable.ts'
import { reasonOf } from '../../api/client.ts'
import type { PagePlace } from '../../route/route.ts'
import { Button } from '../../ui/button.tsx'
import { EmptyState, Loading } from '../../ui/empty-state.tsx'
import { matchedPart } from '../../ui/text/matched-part.ts'
import { Time } from '../../ui/text/time.tsx'
import { isOfPeople } from './use-conversations.ts'
import { useMessageSearch } from './use-message-search.ts'

export interface MessageHitsProps {
  readonly workspaceId: string
  readonly search: string
  readonly onChoose: (hit: MessageHitView) => void
}

/** Where the message stands. */
export const placeOfHit = (hit: MessageHitView): PagePlace => ({
  workspaceId: hit.workspace_id,
  tab: 'chat',
  item: isOfPeople(hit) ? hit.context_id : hit.conversation_id,
  at: hit.id,
})

export function MessageHits({ workspaceId, search, onChoose }: MessageHitsProps) {
  const { hits, isReading, hasMore, error, readMore } = useMessageSearch(search, workspaceId)
  if (error) return <EmptyState title="The messages cannot be searched">{reasonOf(error)}</EmptyState>
  if (hits === undefined || (hits.length === 0 && isReading)) return <Loading />
  return (
    <>
      <ul aria-label="Found messages">
        {hits.map((hit) => (
          <li key={hit.id}>
            <Hit hit={hit} search={search} onChoose={() => onChoose(hit)} />
          </li>
        ))}
      </ul>
      {hits.length === 0 && !hasMore ? <EmptyState title={`No message has “${search}”`} /> : null}
      {hasMore ? (
        <div className="flex justify-center py-3">
          <Button variant="quiet" onClick={readMore} disabled={isReading}>
            Search on
          </Button>
        </div>
      ) : null}
    </>
  )
}

interface HitProps {
  readonly hit: MessageHitView
  readonly search: string
  readonly onChoose: () => void
}

function Hit({ hit, search, onChoose }: HitProps) {
  const [before, match, after] = matchedPart(hit.excerpt, search)
  return (
    <button
      type="button"
      onClick={onChoose}
      className="focus-inside flex w-full flex-col rounded-button px-2 py-2 text-left hover:bg-raised max-md:py-3"
    >
      <span className="flex w-full items-baseline gap-3 text-faint text-time">
        <span className="min-w-0 flex-1 truncate">
          {hit.found_in === 'answer' ? 'In the answer to ' : ''}
          {printableName(hit.sender.name)}
        </span>
        <span className="shrink-0">
          <Time at={hit.sent_at} />
        </span>
      </span>
      <span dir="auto" className="line-clamp-3 w-full break-words">
        {before}
        {match === '' ? null : <mark className="rounded-tag bg-accent-soft font-[600] text-accent">{match}</mark>}
        {after}
      </span>
    </button>
  )
}
