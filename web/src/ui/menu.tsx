/**
 * A menu that opens from a button. Arrow keys move, Escape closes, and the focus returns to the button. The list is in the
 * top layer of the browser, so that neither a card nor a dialog cuts it off.
 */
import { type KeyboardEvent, type ReactNode, useEffect, useId, useLayoutEffect, useRef, useState } from 'react'
import { createPortal } from 'react-dom'
import { IconButton } from './button.tsx'
import { MoreIcon } from './icons.tsx'

export interface MenuItem {
  readonly title: string
  readonly onChoose: () => void
}

export interface MenuProps {
  /** What the menu is about: "Actions for Ada". */
  readonly label: string
  readonly items: readonly MenuItem[]
  readonly icon?: ReactNode
  readonly className?: string
  /** False where only the menu of one of many things is reached with Tab. */
  readonly isTabStop?: boolean
}

export function Menu({ label, items, icon, className, isTabStop = true }: MenuProps) {
  const [isOpen, setOpen] = useState(false)
  const id = useId()
  const button = useRef<HTMLSpanElement>(null)
  if (items.length === 0) return null
  const close = () => {
    setOpen(false)
    button.current?.querySelector('button')?.focus()
  }
  return (
    <span ref={button} className={className}>
      <IconButton
        label={label}
        aria-haspopup="menu"
        tabIndex={isTabStop ? 0 : -1}
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        className="rounded-[inherit]"
        onClick={() => setOpen(!isOpen)}
      >
        {icon ?? <MoreIcon />}
      </IconButton>
      {isOpen
        ? createPortal(<MenuList id={id} label={label} items={items} button={button} onClose={close} />, document.body)
        : null}
    </span>
  )
}

interface MenuListProps {
  readonly id: string
  readonly label: string
  readonly items: readonly MenuItem[]
  readonly button: { readonly current: HTMLElement | null }
  readonly onClose: () => void
}

const STEPS: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 }

function MenuList({ id, label, items, button, onClose }: MenuListProps) {
  const list = useRef<HTMLDivElement>(null)
  useMenuPlace(list, button)
  useOutsideClose(list, button, onClose)
  const onKeyDown = (event: KeyboardEvent) => {
    event.stopPropagation()
    if (event.key === 'Escape' || event.key === 'Tab') {
      event.preventDefault()
      return onClose()
    }
    const step = STEPS[event.key]
    if (step === undefined) return
    event.preventDefault()
    const all = [...(list.current?.querySelectorAll<HTMLElement>('[role=menuitem]') ?? [])]
    all.at((all.indexOf(document.activeElement as HTMLElement) + step) % all.length)?.focus()
  }
  return (
    <div
      ref={list}
      id={id}
      role="menu"
      tabIndex={-1}
      aria-label={label}
      popover="manual"
      onKeyDown={onKeyDown}
      className="fixed m-0 min-w-44 rounded-box border border-line bg-surface p-1 text-ink shadow-float"
    >
      {items.map(({ title, onChoose }) => (
        <button
          key={title}
          type="button"
          role="menuitem"
          tabIndex={-1}
          onClick={() => {
            onClose()
            onChoose()
          }}
          className="focus-inside block h-8 w-full rounded-button px-3 text-left text-second hover:bg-raised focus:bg-raised max-md:h-11"
        >
          {title}
        </button>
      ))}
    </div>
  )
}

/** Below the button and flush with its right edge; above it where there is no room below. */
function useMenuPlace(list: MenuListProps['button'], button: MenuListProps['button']): void {
  useLayoutEffect(() => {
    const [menu, anchor] = [list.current, button.current?.getBoundingClientRect()]
    if (menu === null || anchor === undefined) return
    menu.showPopover()
    const { offsetWidth: width, offsetHeight: height } = menu
    const top = anchor.bottom + height + 8 > innerHeight ? anchor.top - height - 4 : anchor.bottom + 4
    menu.style.top = `${Math.max(8, top)}px`
    menu.style.left = `${Math.max(8, Math.min(anchor.right - width, innerWidth - width - 8))}px`
    menu.querySelector<HTMLElement>('[role=menuitem]')?.focus()
  }, [list, button])
}

function useOutsideClose(list: MenuListProps['button'], button: MenuListProps['button'], onClose: () => void): void {
  const close = useRef(onClose)
  close.current = onClose
  useEffect(() => {
    const onPointer = ({ target }: PointerEvent) => {
      if (list.current?.contains(target as Node) || button.current?.contains(target as Node)) return
      close.current()
    }
    document.addEventListener('pointerdown', onPointer, true)
    return () => document.removeEventListener('pointerdown', onPointer, true)
  }, [list, button])
}
