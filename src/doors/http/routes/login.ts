/**
 * Login in the browser: the exchange of a single-use code for a session cookie. The code is in the fragment of the link,
 * which browsers do not send, and is exchanged by POST; so it is in no log and no Referer. The cookie is HttpOnly and the
 * page (`page.ts`) allows no inline script, so no script can steal the session.
 */
import type { Context } from 'hono'
import { createLoginLink, logIn, logOut } from '../../../api/browser.ts'
import { MoleculeError } from '../../../errors.ts'
import { LOGIN_CODE_MS } from '../../../workspaces/tokens.ts'
import { type HttpEnv, serve } from './route.ts'

const LINK_SPENT =
  'this login link was already used or has expired; "molecule open" makes a new one, on the machine of the platform'
export const loginRoutes = [
  serve(logIn, async ({ context, body }, { tokens, auth, addresses }) => {
    const { incoming } = context.env
    // Prevents that another page logs a browser in. A program sends no Origin; a browser always does.
    if (incoming.headers.origin !== undefined) auth.requireSameOrigin(incoming)
    const session = await tokens.exchangeLoginCode(body.code)
    if (session === undefined) throw new MoleculeError('unauthenticated', LINK_SPENT)
    const cookie = `${auth.cookieName}=${session.secret}; Max-Age=${session.maxAgeSeconds}`
    setCookie(context, addresses.isHttps(incoming) ? `${cookie}; Secure` : cookie)
  }),
  serve(createLoginLink, ({ context, body }, { tokens, addresses }) => ({
    url: `${addresses.baseUrl(context.env.incoming)}/#${tokens.issueLoginCode(body)}`,
    expires_in: LOGIN_CODE_MS / 1000,
  })),
  serve(logOut, async ({ context }, { tokens, auth }) => {
    const secret = auth.sessionSecret(context.env.incoming)
    if (secret !== undefined) {
      auth.requireSameOrigin(context.env.incoming)
      await tokens.revokeBrowserSession(secret)
    }
    setCookie(context, `${auth.cookieName}=; Max-Age=0`)
  }),
]

/** `Secure` only over https: loopback has no TLS, and browsers would not keep such a cookie. */
function setCookie(context: Context<HttpEnv>, cookie: string): void {
  context.header('Set-Cookie', `${cookie}; Path=/; HttpOnly; SameSite=Strict`)
}
