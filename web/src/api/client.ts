/** The page's client of the platform: the same one as the commands use, with the browser's cookie instead of a token. */
import { createPlatformClient, type PlatformClient } from '../../../src/client/platform-client.ts'
import { MoleculeError } from '../../../src/errors.ts'
import { forgetKept } from './kept-for.ts'
import { asSentence } from './sentence.ts'

export const client: PlatformClient = createPlatformClient({ url: location.origin, token: undefined })

/** Its calls are refused when the browser has another session by now. */
export const clientOfSession = (session: string): Pick<PlatformClient, 'sendMessage'> =>
  createPlatformClient({
    url: location.origin,
    token: undefined,
    fetch: (input, init) => fetch(input, { ...init, headers: { ...init?.headers, 'Molecule-Session': session } }),
  })

export const isLoggedOut = (thrown: unknown): boolean =>
  thrown instanceof MoleculeError && thrown.code === 'unauthenticated'

/** One sentence for the user. */
export function reasonOf(thrown: unknown): string {
  return asSentence(thrown instanceof Error ? thrown.message : String(thrown))
}

/** Exchanges the code of a login link for a session cookie. Returns the reason when the link does not work. */
export async function exchangeLoginCode(code: string): Promise<string | undefined> {
  try {
    const answer = await fetch('/login', { method: 'POST', body: JSON.stringify({ code }) })
    if (answer.ok) return undefined
    const { error } = (await answer.json()) as { error: { message: string } }
    return reasonOf(new Error(error.message))
  } catch {
    return 'The platform cannot be reached.'
  }
}

/** Ends the session, and removes what the page has kept in this browser: drafts and unsent messages. */
export async function logOut(): Promise<void> {
  await fetch('/logout', { method: 'POST' })
  forgetKept()
}
