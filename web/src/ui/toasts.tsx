/** A line at the bottom after an action, with the way back where there is one. It leaves by itself. */
import { useSyncExternalStore } from 'react'

const SHOWN_MS = 8000
const TOASTS_MAX = 3

interface Toast {
  readonly id: number
  readonly text: string
  readonly action?: { readonly title: string; readonly onChoose: () => void }
}

const listeners = new Set<() => void>()
let toasts: readonly Toast[] = []
let lastId = 0

function setToasts(next: readonly Toast[]): void {
  toasts = next
  for (const listener of listeners) listener()
}

/** Shows a sentence, and a button such as Undo. Returns how to remove it earlier. */
export function showToast(text: string, action?: Toast['action']): () => void {
  const id = ++lastId
  setToasts([...toasts, { id, text, action }].slice(-TOASTS_MAX))
  setTimeout(() => dismiss(id), SHOWN_MS)
  return () => dismiss(id)
}

const dismiss = (id: number): void => setToasts(toasts.filter((toast) => toast.id !== id))

export function Toasts() {
  const shown = useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => toasts,
  )
  return (
    <div
      role="status"
      className="pointer-events-none fixed inset-x-0 bottom-4 z-40 flex flex-col items-center gap-2 px-4 max-md:bottom-20"
    >
      {shown.map(({ id, text, action }) => (
        <div
          key={id}
          className="pointer-events-auto flex max-w-full items-center gap-6 rounded-box bg-ink px-4 py-2.5 text-on-ink text-second shadow-float"
        >
          <span className="min-w-0">{text}</span>
          {action ? (
            <button
              type="button"
              className="shrink-0 font-[600] underline underline-offset-2 max-md:min-h-10"
              onClick={() => {
                dismiss(id)
                action.onChoose()
              }}
            >
              {action.title}
            </button>
          ) : null}
        </div>
      ))}
    </div>
  )
}
