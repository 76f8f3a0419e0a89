/** Parts of a panel: a titled section, a list of rows with their actions, a choice of a few words, a failed read. */
import type { ReactNode } from 'react'
import { reasonOf } from '../api/client.ts'
import { Button } from './button.tsx'
import { classNames } from './class-names.ts'
import { Loading } from './empty-state.tsx'

export interface SectionProps {
  readonly title: string
  readonly count?: number | undefined
  readonly action?: ReactNode
  readonly children: ReactNode
}

export function Section({ title, count, action, children }: SectionProps) {
  return (
    <section aria-label={title} className="flex min-w-0 flex-col gap-2">
      <div className="flex min-h-8 items-center justify-between gap-3">
        <h3 className="min-w-0 font-[650]">
          {title}
          {count === undefined ? null : <span className="ml-2 font-[400] text-faint">{count}</span>}
        </h3>
        {action}
      </div>
      {children}
    </section>
  )
}

export function Rows({ children }: { readonly children: ReactNode }) {
  return <ul className="divide-y divide-line rounded-box border border-line bg-surface">{children}</ul>
}

export interface RowProps {
  readonly children: ReactNode
  readonly actions?: ReactNode
}

/** The actions move below the text where there is no room beside it. */
export function Row({ children, actions }: RowProps) {
  return (
    <li className="flex flex-wrap items-center justify-end gap-x-3 gap-y-2 py-2.5 pr-2 pl-4">
      <div className="min-w-0 grow basis-56 break-words">{children}</div>
      {actions ? <div className="flex shrink-0 items-center gap-1">{actions}</div> : null}
    </li>
  )
}

export interface ChoiceProps<Id extends string> {
  readonly label: string
  readonly options: readonly { readonly id: Id; readonly title: string }[]
  readonly chosen: Id
  readonly onChoose: (id: Id) => void
}

/** One of a few words, always one of them. */
export function Choice<Id extends string>({ label, options, chosen, onChoose }: ChoiceProps<Id>) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset has a border and a legend of its own.
    <div
      role="group"
      aria-label={label}
      className="inline-flex shrink-0 rounded-button border border-line bg-raised p-0.5"
    >
      {options.map(({ id, title }) => (
        <button
          key={id}
          type="button"
          aria-pressed={id === chosen}
          onClick={() => onChoose(id)}
          className={classNames(
            'h-7 rounded-chip px-3 text-second max-md:h-10',
            id === chosen ? 'bg-surface font-[600] text-ink shadow-card' : 'text-soft hover:text-ink',
          )}
        >
          {title}
        </button>
      ))}
    </div>
  )
}

export interface LoadedProps<Data> {
  readonly query: { readonly data: Data | undefined; readonly error: unknown; readonly refetch: () => unknown }
  readonly children: (data: Data) => ReactNode
}

/** What a query has read; grey lines until then; the reason where it failed. */
export function Loaded<Data>({ query, children }: LoadedProps<Data>) {
  if (query.data !== undefined) return children(query.data)
  return query.error ? <ReadFailure error={query.error} onRetry={query.refetch} /> : <Loading />
}

export function ReadFailure({ error, onRetry }: { readonly error: unknown; readonly onRetry: () => unknown }) {
  return (
    <div role="alert" className="flex flex-col items-start gap-2 p-5 text-second">
      <p>{reasonOf(error)}</p>
      <Button onClick={onRetry}>Try again</Button>
    </div>
  )
}
