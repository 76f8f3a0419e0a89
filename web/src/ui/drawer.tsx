/** A modal drawer at the right edge; the whole screen on a phone. */
import { type ReactNode, useId } from 'react'
import { IconButton } from './button.tsx'
import { useModal } from './dialog.tsx'
import { ErrorBoundary } from './error-boundary.tsx'
import { CloseIcon } from './icons.tsx'

export interface DrawerProps {
  readonly title: ReactNode
  readonly onClose: () => void
  readonly children: ReactNode
}

export function Drawer({ title, onClose, children }: DrawerProps) {
  const titleId = useId()
  const dialog = useModal(onClose)
  return (
    <dialog
      ref={dialog}
      aria-labelledby={titleId}
      className="mr-0 ml-auto h-dvh max-h-none w-full max-w-[480px] flex-col border-line border-l bg-surface p-0 text-ink shadow-float backdrop:bg-ink/20 open:flex max-md:max-w-none dark:backdrop:bg-ground/60"
    >
      <header className="flex items-center justify-between gap-3 border-line border-b px-5 py-3">
        <h2 id={titleId} className="font-[650] text-title">
          {title}
        </h2>
        <IconButton label="Close" onClick={onClose}>
          <CloseIcon />
        </IconButton>
      </header>
      <div className="min-h-0 flex-1 overflow-y-auto">
        <ErrorBoundary what="This list">{children}</ErrorBoundary>
      </div>
    </dialog>
  )
}
