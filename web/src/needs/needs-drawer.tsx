/** Everything that waits for a person, each with its reason and its ways out. */
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import type { NeedView } from '../../../src/client/needs.ts'
import { reasonOf } from '../api/client.ts'
import { keys, queryClient, useMay } from '../api/queries.ts'
import { type PagePlace, writePlace } from '../route/route.ts'
import { Button } from '../ui/button.tsx'
import { Dot } from '../ui/dot.tsx'
import { Drawer } from '../ui/drawer.tsx'
import { EmptyState, Loading } from '../ui/empty-state.tsx'
import { ErrorBoundary } from '../ui/error-boundary.tsx'
import { Time } from '../ui/text/time.tsx'
import { NeedActions } from './need-actions.tsx'
import { NeedDetail } from './need-detail.tsx'
import { needTitle, permissionNote } from './need-text.ts'
import { askToNotify, notificationPermission, notify } from './notify.ts'
import { useNeeds } from './use-needs.ts'

export function NeedsDrawer({ onClose }: { readonly onClose: () => void }) {
  const view = useNeeds()
  return (
    <Drawer
      onClose={onClose}
      title={
        <>Needs you {view ? <span className="ml-1 font-[400] text-faint text-second">{view.count}</span> : null}</>
      }
    >
      {view === undefined ? <Loading /> : null}
      {view?.needs.length === 0 ? (
        <EmptyState title="Nothing needs you">Permissions, questions and failures will show here.</EmptyState>
      ) : null}
      <ul>
        {view?.needs.map((need) => (
          <ErrorBoundary key={`${need.kind} ${need.id}`} what="Something that needs you">
            <NeedItem need={need} />
          </ErrorBoundary>
        ))}
      </ul>
      <NotifyMe />
    </Drawer>
  )
}

function NeedItem({ need }: { readonly need: NeedView }) {
  const may = useMay()
  const act = useMutation({
    mutationFn: (run: () => Promise<unknown>) => run(),
    onSettled: () => queryClient.invalidateQueries({ queryKey: keys.needs }),
  })
  return (
    <li className="flex gap-3 border-line border-b px-5 py-4">
      <span className="flex h-5 items-center">
        <Dot state="needs" />
      </span>
      <article className="flex min-w-0 flex-1 flex-col gap-2" aria-label={needTitle(need)}>
        <header className="flex items-baseline gap-3">
          <h3 className="min-w-0 flex-1 break-words font-[600]">
            {need.workspace_name === null ? (
              needTitle(need)
            ) : (
              <a href={writePlace(placeOf(need))} className="hover:underline">
                {needTitle(need)}
              </a>
            )}
          </h3>
          <span className="text-faint text-time">{need.since === null ? null : <Time at={need.since} />}</span>
        </header>
        <NeedDetail need={need} />
        {act.error === null ? null : (
          <p role="alert" className="text-needs text-second">
            {reasonOf(act.error)}
          </p>
        )}
        {may('pending.answer') ? (
          <NeedActions need={need} isBusy={act.isPending || act.isSuccess} onAct={(run) => act.mutate(run)} />
        ) : null}
        <p className="text-faint text-time empty:hidden">{permissionNote(need, Date.now())}</p>
      </article>
    </li>
  )
}

/** Its own message, where it has one. */
function placeOf({ workspace_id: workspaceId, kind, id, task_id: taskId }: NeedView): PagePlace {
  const message = kind === 'dead_letter' || kind === 'damaged_reply' ? id : taskId
  return { workspaceId, tab: 'chat', item: message, at: message }
}

/** A browser asks only after a click. The first notification shows that they work here. */
function NotifyMe() {
  const [permission, setPermission] = useState(notificationPermission)
  const [works, setWorks] = useState<boolean>()
  const ask = async () => {
    const answer = await askToNotify()
    setPermission(answer)
    if (answer === 'granted') setWorks(notify('Molecule tells you here when something needs you.', { tag: 'first' }))
  }
  if (permission !== 'default' && works === undefined) return null
  return (
    <div role="status" className="flex items-center justify-between gap-3 px-5 py-4 text-faint text-time">
      {works === undefined ? 'This browser can tell you when something needs you.' : null}
      {works === true ? 'This browser tells you when something needs you, while this page is open.' : null}
      {works === false ? 'This browser does not let a page notify you. Its tab shows the number instead.' : null}
      {permission === 'default' ? <Button onClick={ask}>Notify me</Button> : null}
    </div>
  )
}
