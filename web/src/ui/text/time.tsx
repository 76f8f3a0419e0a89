/** Times and costs that keep themselves current. All share one timer. */
import { useSyncExternalStore } from 'react'
import { costText, relativeTime, runningTime, tookTime } from './times.ts'

const TICK_MS = 1000
const listeners = new Set<() => void>()
let timer: ReturnType<typeof setInterval> | undefined
let nowMs = Date.now()

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  nowMs = Date.now()
  timer ??= setInterval(() => {
    nowMs = Date.now()
    for (const each of listeners) each()
  }, TICK_MS)
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    clearInterval(timer)
    timer = undefined
  }
}

/** The text is compared, so a component renders again only when what it shows has changed. */
const useTimeText = (text: (now: number) => string): string => useSyncExternalStore(subscribe, () => text(nowMs))

/** "2 min ago", "13:58", "12 Nov". */
export function Time({ at }: { readonly at: string }) {
  const text = useTimeText((now) => relativeTime(Date.parse(at), now))
  return (
    <time dateTime={at} title={new Date(at).toLocaleString()} className="whitespace-nowrap">
      {text}
    </time>
  )
}

/** How long something runs: "0:38". */
export function RunningTime({ since }: { readonly since: string }) {
  const text = useTimeText((now) => runningTime(now - Date.parse(since)))
  return <span className="shrink-0 whitespace-nowrap">{text}</span>
}

/** How long something runs, in words: "38 s", "3 min". */
export function RunningSeconds({ since }: { readonly since: string }) {
  const text = useTimeText((now) => {
    const ms = Math.max(0, now - Date.parse(since))
    return ms < 60_000 ? `${Math.floor(ms / 1000)} s` : tookTime(ms)
  })
  return <span className="whitespace-nowrap">{text}</span>
}

/** The time now, once a second. */
export const useNow = (): number => useSyncExternalStore(subscribe, () => nowMs)

/** An amount of money; unknown is in italics. */
export function Cost({ usd, hasUnknown = false }: { readonly usd: number | null; readonly hasUnknown?: boolean }) {
  return <span className={usd === null ? 'italic' : undefined}>{costText(usd, hasUnknown)}</span>
}
