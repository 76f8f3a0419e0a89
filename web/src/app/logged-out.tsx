/** The page without a session: how to log in, and no data. */
import { Button } from '../ui/button.tsx'
import { Logo } from '../ui/icons.tsx'

export function LoggedOut({
  problem,
  onRetry,
}: {
  readonly problem: string | undefined
  readonly onRetry: () => void
}) {
  return (
    <main className="flex min-h-full items-center justify-center p-4">
      <div className="flex w-full max-w-[440px] flex-col gap-4 rounded-card border border-line bg-surface p-6 shadow-card">
        <p className="flex items-center gap-2 font-[650]">
          <Logo /> Molecule
        </p>
        <h1 className="font-[650] text-greeting">Not logged in</h1>
        {problem === undefined ? null : (
          <p role="alert" className="rounded-button bg-needs-soft px-3 py-2 text-needs text-second">
            {problem}
          </p>
        )}
        <p className="text-soft">
          To log in, run <Command text="molecule open" /> on the machine of the platform; in a clone it is{' '}
          <Command text="bin/molecule open" />. It makes a new link at any time. A link works once, within ten minutes.
        </p>
        <div>
          <Button onClick={onRetry}>Check again</Button>
        </div>
      </div>
    </main>
  )
}

const Command = ({ text }: { readonly text: string }) => (
  <code className="whitespace-nowrap rounded-tag bg-raised px-1 font-mono text-second text-ink">{text}</code>
)
