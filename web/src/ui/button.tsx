/** A button. `ink` is the one safe common choice of a group; `plain` has a border; `quiet` is text. */
import type { ButtonHTMLAttributes } from 'react'
import { classNames } from './class-names.ts'

export interface ButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly variant?: 'ink' | 'plain' | 'quiet'
}

const LOOKS = {
  ink: 'bg-ink text-on-ink hover:opacity-90 border-transparent',
  plain: 'bg-surface text-ink border-line hover:border-edge',
  quiet: 'bg-transparent text-soft hover:text-ink border-transparent',
}

export function Button({ variant = 'plain', className, type = 'button', ...rest }: ButtonProps) {
  return (
    <button
      type={type}
      className={classNames(
        'inline-flex h-8 shrink-0 items-center justify-center gap-2 whitespace-nowrap rounded-button border px-3 font-[550]',
        'text-second disabled:cursor-default disabled:opacity-50 max-md:h-11 max-md:px-4',
        LOOKS[variant],
        className,
      )}
      {...rest}
    />
  )
}

export interface IconButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  /** What the button does, for screen readers and as a title. */
  readonly label: string
}

/** A square button with an icon. */
export function IconButton({ label, className, type = 'button', ...rest }: IconButtonProps) {
  return (
    <button
      type={type}
      aria-label={label}
      title={label}
      className={classNames(
        'inline-flex size-8 shrink-0 items-center justify-center rounded-button text-soft hover:bg-raised hover:text-ink',
        'disabled:opacity-50 max-md:size-11',
        className,
      )}
      {...rest}
    />
  )
}
