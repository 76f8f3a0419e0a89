/** A small tag: the runtime of a workspace, a permission. */
import type { ReactNode } from 'react'
import { classNames } from './class-names.ts'

export interface ChipProps {
  readonly children: ReactNode
  /** Monospace, for names of programs. */
  readonly mono?: boolean
  readonly title?: string
  readonly className?: string
}

export function Chip({ children, mono = false, title, className }: ChipProps) {
  return (
    <span
      title={title}
      className={classNames(
        'inline-block max-w-full shrink-0 truncate rounded-chip border border-line bg-raised px-1.5 text-chip text-soft',
        mono && 'font-mono',
        className,
      )}
    >
      {children}
    </span>
  )
}
