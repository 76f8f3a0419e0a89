/** Decides what the page is: logged out, or the shell. A login link is exchanged first. */
import { useEffect, useState } from 'react'
import { exchangeLoginCode } from '../api/client.ts'
import { keys, preloadWorkspaces, queryClient, SessionContext, useMe } from '../api/queries.ts'
import { LoggedOut } from './logged-out.tsx'
import { Shell } from './shell.tsx'

/** Taken once when the page loads: the code must not stay in the address bar and the history, whether or not it works. */
const loginCode = takeLoginCode()
const exchanged = loginCode === undefined ? undefined : exchangeLoginCode(loginCode)
if (exchanged === undefined) void preloadWorkspaces()

function takeLoginCode(): string | undefined {
  const code = location.hash.slice(1)
  if (code === '' || code.startsWith('/')) return undefined
  history.replaceState(null, '', location.pathname)
  return code
}

export function App() {
  const [login, setLogin] = useState<{ readonly done: boolean; readonly problem?: string }>({ done: !exchanged })
  useEffect(() => {
    exchanged?.then(
      (problem) => setLogin({ done: true, problem }),
      () => undefined,
    )
  }, [])
  return login.done ? <Page problem={login.problem} /> : null
}

/** A used link is no problem in a browser that is already logged in. */
function Page({ problem }: { readonly problem: string | undefined }) {
  const me = useMe()
  if (me === undefined) return null
  if (me === null)
    return <LoggedOut problem={problem} onRetry={() => queryClient.invalidateQueries({ queryKey: keys.me })} />
  return (
    <SessionContext value={me}>
      <Shell />
    </SessionContext>
  )
}
