/** A thin line under the bar while the platform does not answer. It leaves by itself. */
import { useEffect, useState } from 'react'
import { useLiveState } from '../api/live.ts'

/** A reconnect that succeeds within this time is not shown. */
const SHOWN_AFTER_MS = 700

export function ReconnectLine() {
  const state = useLiveState()
  const isOffline = state.kind === 'offline'
  const [isShown, setShown] = useState(false)
  const [nowMs, setNowMs] = useState(Date.now())
  useEffect(() => {
    if (!isOffline) return setShown(false)
    const show = setTimeout(() => setShown(true), SHOWN_AFTER_MS)
    const tick = setInterval(() => setNowMs(Date.now()), 1000)
    return () => {
      clearTimeout(show)
      clearInterval(tick)
    }
  }, [isOffline])
  if (!isShown || state.kind !== 'offline') return <div role="status" />
  const seconds = Math.max(1, Math.ceil((state.retryMs - nowMs) / 1000))
  return (
    <div role="status" className="relative shrink-0 overflow-hidden border-line border-b bg-raised">
      <span className="absolute inset-x-0 top-0 block h-0.5 overflow-hidden">
        <span className="sliding block h-full w-1/3 bg-accent" />
      </span>
      <p className="flex items-baseline gap-3 px-4 py-1.5 text-second text-soft">
        <strong className="font-[650] text-ink">Reconnecting…</strong>
        <span className="min-w-0 flex-1 truncate">
          The platform does not answer. You see the state of {new Date(state.sinceMs).toLocaleTimeString('en-GB')}; the
          page catches up by itself.
        </span>
        <span aria-hidden="true" className="shrink-0">
          next try in {seconds} s
        </span>
      </p>
    </div>
  )
}
