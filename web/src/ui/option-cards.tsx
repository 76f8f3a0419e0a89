/** A choice of one, each with a sentence. */
import { useId } from 'react'
import { classNames } from './class-names.ts'

export interface CardOption {
  readonly id: string
  readonly title: string
  readonly about: string
}

export interface OptionCardsProps {
  readonly label: string
  readonly options: readonly CardOption[]
  readonly chosen: string
  readonly onChoose: (id: string) => void
}

export function OptionCards({ label, options, ...choice }: OptionCardsProps) {
  const name = useId()
  return (
    <fieldset>
      <legend className="mb-1 font-[550] text-second">{label}</legend>
      <div className="grid gap-2">
        {options.map((option) => (
          <OptionCard key={option.id} option={option} name={name} {...choice} />
        ))}
      </div>
    </fieldset>
  )
}

export interface OptionCardProps extends Pick<OptionCardsProps, 'chosen' | 'onChoose'> {
  readonly option: CardOption
  /** All cards of one choice have the same name. */
  readonly name: string
  readonly className?: string
}

export function OptionCard({ option: { id, title, about }, name, chosen, onChoose, className }: OptionCardProps) {
  return (
    <label
      className={classNames(
        'flex cursor-pointer items-start gap-3 rounded-button border p-3 has-focus-visible:outline-2 has-focus-visible:outline-accent has-focus-visible:outline-offset-2',
        id === chosen ? 'border-accent bg-accent-soft' : 'border-line hover:border-edge',
        className,
      )}
    >
      <input
        type="radio"
        name={name}
        value={id}
        checked={id === chosen}
        onChange={() => onChoose(id)}
        className="mt-0.5 size-4 shrink-0 accent-accent outline-none"
      />
      <span className="min-w-0">
        <span className="block font-[550] text-second">{title}</span>
        <span title={about} className="line-clamp-2 break-words text-soft text-time">
          {about}
        </span>
      </span>
    </label>
  )
}
