/** An empty place: it says what will appear there, and may offer the way to it. */
import type { ReactNode } from 'react'

export interface EmptyStateProps {
  readonly title: string
  readonly children?: ReactNode
  readonly action?: ReactNode
}

export function EmptyState({ title, children, action }: EmptyStateProps) {
  return (
    <div className="mx-auto flex max-w-[360px] flex-col items-center gap-1 px-5 py-8 text-center">
      <p className="font-[600] text-second">{title}</p>
      {children ? <div className="text-second text-soft">{children}</div> : null}
      {action ? <div className="mt-2">{action}</div> : null}
    </div>
  )
}

/** Grey lines in place of text that is being read. */
export function Loading() {
  return (
    <div role="status" aria-label="Loading" className="flex flex-col gap-2 p-5">
      <span className="h-2 w-2/5 rounded-tag bg-line" />
      <span className="h-2 w-full rounded-tag bg-line" />
      <span className="h-2 w-3/4 rounded-tag bg-line" />
    </div>
  )
}
