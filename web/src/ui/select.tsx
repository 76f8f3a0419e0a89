/** A labelled choice from a list. */
import { useId } from 'react'

export interface SelectProps {
  readonly label: string
  readonly value: string
  readonly onChange: (value: string) => void
  readonly options: readonly { readonly id: string; readonly title: string }[]
}

export function Select({ label, value, onChange, options }: SelectProps) {
  const id = useId()
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <label htmlFor={id} className="font-[550] text-second">
        {label}
      </label>
      <select
        id={id}
        value={value}
        onChange={({ target }) => onChange(target.value)}
        className="h-9 w-full rounded-button border border-edge bg-surface px-2 text-body text-ink focus-visible:outline-offset-0 max-md:h-11 max-md:text-title"
      >
        {options.map((option) => (
          <option key={option.id} value={option.id}>
            {option.title}
          </option>
        ))}
      </select>
    </div>
  )
}
