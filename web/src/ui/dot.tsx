/** The state of a workspace as shape and colour. A word always stands near it, so screen readers skip it. */
import { classNames } from './class-names.ts'

export type DotState = 'online' | 'working' | 'needs' | 'paused' | 'offline'

export function Dot({ state, className }: { readonly state: DotState; readonly className?: string }) {
  const place = classNames('inline-flex size-2 shrink-0 items-center justify-center', className)
  if (state === 'paused') {
    return (
      <span aria-hidden="true" className={classNames(place, 'gap-0.5')}>
        <span className="h-2 w-[3px] bg-edge" />
        <span className="h-2 w-[3px] bg-edge" />
      </span>
    )
  }
  return (
    <span aria-hidden="true" className={place}>
      <span className={classNames('size-2 rounded-full', LOOKS[state])} />
    </span>
  )
}

const LOOKS = {
  online: 'bg-ok',
  working: 'bg-working-dot ring-4 ring-working-soft',
  needs: 'bg-needs',
  offline: 'border-2 border-edge',
}
