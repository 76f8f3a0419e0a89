/**
 * The place on the page, kept in the fragment: `#/` the canvas, `#/w/<id>/<tab>` a workspace, `#/w/<id>/<tab>/<item>`
 * one thing of that tab, such as a conversation, `#/w/<id>/chat/<conversation>/<message>` one message of it, `#/<view>`
 * another view. A view that opens over a workspace stands behind it (`#/w/<id>/chat?needs`), so that nothing is closed.
 * A fragment without the slash is the code of a login link.
 * An address that names no place is the canvas, with a sentence (`isUnknown`).
 */
import { useSyncExternalStore } from 'react'

export interface PagePlace {
  readonly workspaceId?: string | undefined
  readonly tab?: string | undefined
  /** One thing of the tab: a conversation. */
  readonly item?: string | undefined
  /** One thing of the item: a message, by its id or by that of its task. */
  readonly at?: string | undefined
  /** A view beside the canvas: `needs`, `new`, `list`, `map`. */
  readonly view?: PageView | undefined
  /** The address cannot be read, or names a view that is not there. */
  readonly isUnknown?: true
}

const VIEWS = ['needs', 'new', 'list', 'map'] as const
export type PageView = (typeof VIEWS)[number]

export function readPlace(hash: string): PagePlace {
  const [path = '', over] = hash.replace(/^#\/?/, '').split('?')
  const [first, ...rest] = path.split('/').map(decode)
  if (first === '') return {}
  const name = first === 'w' ? over : first
  const view = VIEWS.find((each) => each === name)
  if (view === undefined && name !== undefined) return { isUnknown: true }
  if (first !== 'w') return view === undefined ? { isUnknown: true } : { view }
  if (rest.includes(undefined)) return { isUnknown: true }
  const [workspaceId, tab, item, at] = rest
  if (!workspaceId) return {}
  return { workspaceId, ...(tab && { tab }), ...(tab && item && { item, ...(at && { at }) }), ...(view && { view }) }
}

/** `decodeURIComponent` throws for `%`, and a throw while the page renders would remove the page. */
function decode(part: string): string | undefined {
  try {
    return decodeURIComponent(part)
  } catch {
    return undefined
  }
}

export function writePlace({ workspaceId, tab, item, at, view }: PagePlace): string {
  if (workspaceId === undefined) return `#/${view ?? ''}`
  const things = [item, item === undefined ? undefined : at].filter((each) => each !== undefined)
  const path = [
    '#',
    'w',
    encodeURIComponent(workspaceId),
    ...(tab === undefined ? [] : [tab, ...things.map(encodeURIComponent)]),
  ]
  return `${path.join('/')}${view === undefined ? '' : `?${view}`}`
}

export function goTo(place: PagePlace): void {
  location.hash = writePlace(place)
}

/** Opens a view over what is open, which stays as it is. */
export const openView = (view: PageView): void => goTo({ ...readPlace(location.hash), view })

/** Back to what is open below the view. */
export function closeView(): void {
  const { view: _view, ...below } = readPlace(location.hash)
  goTo(below)
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
