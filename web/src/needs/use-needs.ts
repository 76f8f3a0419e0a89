/** What waits for a person: one query for the button, the drawer, the title of the tab and notifications. */
import { useQuery } from '@tanstack/react-query'
import { useEffect, useRef } from 'react'
import { type NeedsView, readNeeds } from '../../../src/client/needs.ts'
import { printable } from '../../../src/printable.ts'
import { client } from '../api/client.ts'
import { keys, useMay } from '../api/queries.ts'
import { needTitle } from './need-text.ts'
import { notify } from './notify.ts'

/** Undefined until the first answer, and for a session that may not see it. */
export function useNeeds(): NeedsView | undefined {
  const may = useMay()
  return useQuery({ queryKey: keys.needs, queryFn: () => readNeeds(client), enabled: may('pending.read') }).data
}

const TITLE = document.title

/** The count stands in the title of the tab. */
export function useTabTitle(count: number): void {
  useEffect(() => {
    document.title = count === 0 ? TITLE : `(${count}) ${TITLE}`
    return () => {
      document.title = TITLE
    }
  }, [count])
}

/** Notifies of needs that came while the page was open in another tab, where the person allowed it. */
export function useNotifications(view: NeedsView | undefined): void {
  const known = useRef<ReadonlySet<string>>(undefined)
  useEffect(() => {
    if (view === undefined) return
    const before = known.current
    known.current = new Set(view.needs.map(({ id }) => id))
    if (before === undefined || !document.hidden) return
    for (const need of view.needs) {
      if (!before.has(need.id)) notify(needTitle(need), { body: printable(need.reason), tag: need.id })
    }
  }, [view])
}
