/**
 * The list of messages that scrolls. It follows the newest message only while the person is at the bottom; otherwise a
 * button says that there is something new. When older messages come, what the person reads stays where it is.
 */
import { type ReactNode, useCallback, useEffect, useLayoutEffect, useRef, useState } from 'react'
import { DownIcon } from '../../ui/icons.tsx'

/** So near to the bottom counts as at the bottom. */
const BOTTOM_PX = 40
/** So near to an end the next page is read. */
const LOAD_PX = 400

export interface MessageScrollerProps {
  readonly firstKey: string | undefined
  /** Grows with each new message and each answer; undefined while the page does not know the newest one. */
  readonly newest: number | undefined
  /** The last message that the person has sent: the view goes to it. */
  readonly sentKey: string | undefined
  /** The message that the address names: the view begins there. */
  readonly targetKey: string | undefined
  readonly hasOlder: boolean
  readonly hasNewer: boolean
  readonly onTop: () => Promise<void>
  readonly onBottom: () => Promise<void>
  /** The newest messages are not on the page: show them. */
  readonly onNewest: () => Promise<void>
  readonly children: ReactNode
}

export function MessageScroller(props: MessageScrollerProps) {
  const { newest, hasOlder, hasNewer, onNewest, children } = props
  const scroller = useRef<HTMLDivElement>(null)
  const content = useRef<HTMLDivElement>(null)
  const { isAtBottom, onScroll, stick } = useScrollPosition(props, scroller, content)
  const seen = useRef(newest)
  seen.current = isAtBottom && !hasNewer ? newest : (seen.current ?? newest)
  const toNewest = () => {
    stick()
    if (hasNewer) void onNewest().then(stick)
  }
  return (
    <div className="relative flex min-h-0 flex-1 flex-col">
      <section
        ref={scroller}
        aria-label="Messages"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a list that scrolls must be reachable by keyboard.
        tabIndex={0}
        onScroll={onScroll}
        className="focus-inside min-h-0 flex-1 overflow-y-auto overflow-x-hidden [overflow-anchor:none]"
      >
        <div ref={content} className="flex flex-col gap-5 px-5 py-5 max-md:px-4">
          {hasOlder ? <p className="text-center text-faint text-time">Earlier messages follow</p> : null}
          {children}
        </div>
      </section>
      {isAtBottom && !hasNewer ? null : (
        <button
          type="button"
          onClick={toNewest}
          className="absolute bottom-3 left-1/2 inline-flex h-8 -translate-x-1/2 items-center gap-1.5 rounded-full border border-line bg-surface px-3 font-[550] text-second shadow-float hover:border-edge max-md:h-11"
        >
          <DownIcon />
          {isAbove(newest, seen.current) ? 'New messages' : 'Newest'}
        </button>
      )}
    </div>
  )
}

const isAbove = (newest: number | undefined, seen: number | undefined): boolean =>
  newest !== undefined && seen !== undefined && newest > seen

type ElementRef = { readonly current: HTMLDivElement | null }

function useScrollPosition(
  { firstKey, sentKey, targetKey, hasOlder, hasNewer, onTop, onBottom }: MessageScrollerProps,
  scroller: ElementRef,
  content: ElementRef,
) {
  const [isAtBottom, setAtBottom] = useState(true)
  const sticks = useRef(true)
  const lastTop = useRef(0)
  /** The message at the top of the view, and its distance from there. */
  const anchor = useRef<{ readonly element: Element; readonly top: number }>(undefined)
  const stick = useCallback(() => {
    sticks.current = true
    scroller.current?.scrollTo({ top: scroller.current.scrollHeight })
  }, [scroller])
  const onScroll = () => {
    const view = scroller.current
    if (view === null) return
    const below = belowOf(view)
    // The event comes late: the content may have grown since. Only a person scrolls up.
    const isUp = view.scrollTop < lastTop.current
    lastTop.current = view.scrollTop
    // The end of a page that is not the last must not pull a reader through all pages that follow.
    sticks.current = (below < BOTTOM_PX && !hasNewer) || (sticks.current && !isUp)
    setAtBottom(sticks.current)
    anchor.current = sticks.current ? undefined : findAnchor(view, content.current)
    if (hasOlder && view.scrollTop < LOAD_PX) onTop().catch(() => undefined)
    if (hasNewer && below < LOAD_PX) onBottom().catch(() => undefined)
  }
  // Content that grows, also by a picture that loads or code that gets its colours, keeps the bottom in view.
  useEffect(() => {
    const element = content.current
    if (element === null) return
    const observer = new ResizeObserver(() => {
      if (sticks.current) stick()
    })
    observer.observe(element)
    return () => observer.disconnect()
  }, [content, stick])
  // biome-ignore lint/correctness/useExhaustiveDependencies: older messages have come when the first key changes.
  useLayoutEffect(() => {
    const view = scroller.current
    if (view === null || sticks.current || anchor.current === undefined) return
    const { element, top } = anchor.current
    if (element.isConnected) view.scrollTop += element.getBoundingClientRect().top - top
  }, [firstKey])
  // What a person sends is seen at once.
  const sent = useRef(sentKey)
  useEffect(() => {
    if (sentKey !== undefined && sentKey !== sent.current) stick()
    sent.current = sentKey
  }, [sentKey, stick])
  useLayoutEffect(() => {
    const target = targetKey === undefined ? null : findByKey(content.current, targetKey)
    if (target === null) return
    target.scrollIntoView({ block: 'center' })
    sticks.current = belowOf(scroller.current) < BOTTOM_PX
    setAtBottom(sticks.current)
  }, [scroller, content, targetKey])
  return { isAtBottom, onScroll, stick }
}

/** How much stands below what is seen. */
const belowOf = (view: Element | null): number =>
  view === null ? 0 : view.scrollHeight - view.scrollTop - view.clientHeight

const findByKey = (content: Element | null, key: string): Element | null =>
  content?.querySelector(`:scope > [data-key="${CSS.escape(key)}"]`) ?? null

function findAnchor(view: Element, content: Element | null) {
  const edge = view.getBoundingClientRect().top
  for (const element of content?.children ?? []) {
    const { top, bottom } = element.getBoundingClientRect()
    if (bottom > edge && element.tagName !== 'P') return { element, top }
  }
  return undefined
}
