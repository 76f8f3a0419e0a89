/** "New workspace": an agent on the platform's machine, or one that connects from elsewhere. */
import { useState } from 'react'
import { classNames } from '../ui/class-names.ts'
import { Dialog } from '../ui/dialog.tsx'
import { ConnectForm, hasConnectDraft } from './connect-form.tsx'
import { LocalForm } from './local-form.tsx'

const WAYS = [
  { id: 'here', title: 'On this machine' },
  { id: 'elsewhere', title: 'Connect one that runs elsewhere' },
] as const

export function CreateDialog({ onClose }: { readonly onClose: () => void }) {
  // A name that was typed for another machine is shown again.
  const [way, setWay] = useState<(typeof WAYS)[number]['id']>(() => (hasConnectDraft() ? 'elsewhere' : 'here'))
  return (
    <Dialog title="New workspace" onClose={onClose} wide>
      <fieldset className="mb-5 flex gap-1 rounded-box border border-line bg-raised p-1 max-md:flex-col">
        <legend className="sr-only">Where does it run?</legend>
        {WAYS.map(({ id, title }) => (
          <button
            key={id}
            type="button"
            aria-pressed={way === id}
            onClick={() => setWay(id)}
            className={classNames(
              'h-8 flex-1 rounded-button border px-3 font-[550] text-second max-md:h-11 max-md:flex-none',
              way === id ? 'border-line bg-surface text-ink' : 'border-transparent text-soft hover:text-ink',
            )}
          >
            {title}
          </button>
        ))}
      </fieldset>
      {way === 'here' ? <LocalForm onClose={onClose} /> : <ConnectForm onClose={onClose} />}
    </Dialog>
  )
}
