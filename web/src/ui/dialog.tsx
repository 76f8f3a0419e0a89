/** A modal dialog on the browser's own `dialog` element, which keeps the focus inside and closes with Escape. */
import { type ReactNode, useId, useLayoutEffect, useRef } from 'react'
import { IconButton } from './button.tsx'
import { classNames } from './class-names.ts'
import { ErrorBoundary } from './error-boundary.tsx'
import { CloseIcon } from './icons.tsx'

export interface DialogProps {
  readonly title: string
  readonly onClose: () => void
  readonly children: ReactNode
  /** Buttons at the end, the safe common choice last. */
  readonly actions?: ReactNode
  readonly wide?: boolean
}

export function Dialog({ title, onClose, children, actions, wide = false }: DialogProps) {
  const titleId = useId()
  const dialog = useModal(onClose)
  return (
    <dialog
      ref={dialog}
      aria-labelledby={titleId}
      className={classNames(
        'm-auto max-h-[min(90dvh,760px)] w-[calc(100%-32px)] flex-col rounded-card border border-line bg-surface p-0 text-ink',
        'shadow-float backdrop:bg-ink/30 open:flex dark:backdrop:bg-ground/70',
        wide ? 'max-w-[720px]' : 'max-w-[480px]',
      )}
    >
      <header className="flex items-center justify-between gap-3 px-5 pt-4 pb-2">
        <h2 id={titleId} className="font-[650] text-dialog">
          {title}
        </h2>
        <IconButton label="Close" onClick={onClose}>
          <CloseIcon />
        </IconButton>
      </header>
      <div className="min-h-0 flex-1 scroll-pb-20 overflow-y-auto px-5 pb-5">
        <ErrorBoundary what="This dialog">{children}</ErrorBoundary>
      </div>
      {actions ? <footer className="flex justify-end gap-2 border-line border-t px-5 py-3">{actions}</footer> : null}
    </dialog>
  )
}

interface FormFooterProps {
  readonly note: string
  readonly children: ReactNode
}

/** The buttons of a long form in a dialog: always in view, at the lower edge, over the padding of the dialog. */
export const FormFooter = ({ note, children }: FormFooterProps) => (
  <footer className="sticky -bottom-5 -mx-5 -mb-5 flex items-center justify-end gap-2 border-line border-t bg-surface px-5 py-3">
    <p className="mr-auto text-faint text-time max-md:hidden">{note}</p>
    {children}
  </footer>
)

/**
 * Opens a `dialog` element as modal while it is mounted. Escape and a click beside it call `onClose`. The focus then
 * returns to where it was.
 */
export function useModal(onClose: () => void) {
  const dialog = useRef<HTMLDialogElement>(null)
  const close = useRef(onClose)
  close.current = onClose
  // A layout effect: its cleanup runs while the element is still there. The browser returns no focus from a removed one.
  useLayoutEffect(() => {
    const element = dialog.current
    if (element === null) return
    const before = document.activeElement
    const onCancel = (event: Event) => {
      event.preventDefault()
      close.current()
    }
    const onClick = (event: MouseEvent) => {
      if (event.target === element) close.current()
    }
    element.addEventListener('cancel', onCancel)
    element.addEventListener('click', onClick)
    if (!element.open) element.showModal()
    // Without it the focus is on the first button, which closes the dialog.
    element.querySelector<HTMLElement>('[data-autofocus]')?.focus()
    return () => {
      element.removeEventListener('cancel', onCancel)
      element.removeEventListener('click', onClick)
      element.close()
      if (before instanceof HTMLElement && before !== document.body) before.focus({ preventScroll: true })
    }
  }, [])
  return dialog
}
