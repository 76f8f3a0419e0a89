/** A choice of one, each with a sentence. */
import { useId } from 'react'
import { classNames } from './class-names.ts'

export interface OptionCardsProps {
  readonly label: string
  readonly options: readonly { readonly id: string; readonly title: string; readonly about: string }[]
  readonly chosen: string
  readonly onChoose: (id: string) => void
  readonly oneColumn?: boolean
}

export function OptionCards({ label, options, chosen, onChoose, oneColumn = false }: OptionCardsProps) {
  const name = useId()
  return (
    <fieldset>
      <legend className="mb-1 font-[550] text-second">{label}</legend>
      <div className={classNames('grid gap-2', oneColumn ? 'grid-cols-1' : 'grid-cols-2 max-md:grid-cols-1')}>
        {options.map(({ id, title, about }) => (
          <label
            key={id}
            className={classNames(
              'flex cursor-pointer items-start gap-3 rounded-button border p-3 has-focus-visible:outline-2 has-focus-visible:outline-accent has-focus-visible:outline-offset-2',
              id === chosen ? 'border-accent bg-accent-soft' : 'border-line hover:border-edge',
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
              <span className="block text-soft text-time">{about}</span>
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  )
}
