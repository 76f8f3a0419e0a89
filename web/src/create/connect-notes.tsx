/** What a person must know to run the command of `connect-command.ts` on another machine. */
import { isLoopback } from './connect-command.ts'

export function ConnectNotes({ url }: { readonly url: string }) {
  return (
    <>
      <p className="text-soft text-time">
        It runs in a clone of Molecule on that machine: clone the repository that this platform runs from, go to that
        folder, and run <code className="whitespace-nowrap font-mono text-ink">npm install</code> once, with Node 18 or
        newer. FOLDER is the folder that the agent works in.
      </p>
      {isLoopback(url) ? (
        <p className="text-soft text-time">
          {new URL(url).hostname} is this machine itself. For another machine, start the platform with{' '}
          <code className="whitespace-nowrap font-mono text-ink">--public-url</code> and a name that the other machine
          reaches, or open this page under that name.
        </p>
      ) : null}
    </>
  )
}
