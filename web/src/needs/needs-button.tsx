/** The button "needs you" in the bar. Nothing needs the person: it is quiet. */
import { openView } from '../route/route.ts'
import { classNames } from '../ui/class-names.ts'
import { countText } from '../ui/text/times.ts'
import { useNeeds, useNotifications, useTabTitle } from './use-needs.ts'

export function NeedsButton() {
  const view = useNeeds()
  const count = view?.count ?? 0
  useTabTitle(count)
  useNotifications(view)
  if (view === undefined) return null
  return (
    <button
      type="button"
      onClick={() => openView('needs')}
      className={classNames(
        'h-8 whitespace-nowrap rounded-full px-3 font-[550] text-second max-md:h-11',
        count === 0 ? 'text-soft hover:text-ink' : 'bg-needs-soft text-needs',
      )}
    >
      {count === 0 ? 'Nothing needs you' : `${countText(count)} ${count === 1 ? 'needs' : 'need'} you`}
    </button>
  )
}
