/**
 * The place on the page, kept in the fragment: `#/` the canvas, `#/w/<id>/<tab>` a workspace, `#/w/<id>/<tab>/<item>`
 * one thing of that tab, such as a conversation, `#/<view>` another view.
 * A fragment without the slash is the code of a login link.
 * An address that names no place is the canvas, with a sentence (`isUnknown`).
 */
import { useSyncExternalStore } from 'react'

export interface PagePlace {
  readonly workspaceId?: string
  readonly tab?: string
  /** One thing of the tab: a conversation. */
  readonly item?: string
  /** A view beside the canvas: `needs`, `new`, `list`, `map`. */
  readonly view?: PageView
  /** The address cannot be read, or names a view that is not there. */
  readonly isUnknown?: true
}

const VIEWS = ['needs', 'new', 'list', 'map'] as const
export type PageView = (typeof VIEWS)[number]

export function readPlace(hash: string): PagePlace {
  const [first, ...rest] = hash.replace(/^#\/?/, '').split('/').map(decode)
  if (first === '') return {}
  if (first !== 'w') {
    const view = VIEWS.find((each) => each === first)
    return view === undefined ? { isUnknown: true } : { view }
  }
  if (rest.includes(undefined)) return { isUnknown: true }
  const [workspaceId, tab, item] = rest
  if (!workspaceId) return {}
  return { workspaceId, ...(tab && { tab }), ...(tab && item && { item }) }
}

/** `decodeURIComponent` throws for `%`, and a throw while the page renders would remove the page. */
function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}

export function writePlace({ workspaceId, tab, item, view }: PagePlace): string {
  if (workspaceId === undefined) return `#/${view ?? ''}`
  const workspace = `#/w/${encodeURIComponent(workspaceId)}`
  if (tab === undefined) return workspace
  return item === undefined ? `${workspace}/${tab}` : `${workspace}/${tab}/${encodeURIComponent(item)}`
}

export function goTo(place: PagePlace): void {
  location.hash = writePlace(place)
}

export function usePlace(): PagePlace {
  const hash = useSyncExternalStore(
    (listener) => {
      addEventListener('hashchange', listener)
      return () => removeEventListener('hashchange', listener)
    },
    () => location.hash,
  )
  return readPlace(hash)
}
