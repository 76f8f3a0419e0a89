/**
 * Login in the browser: the exchange of a single-use code for a session cookie. The code is in the fragment of the link,
 * which browsers do not send, and is exchanged by POST; so it is in no log and no Referer. The cookie is HttpOnly and the
 * page (`page.ts`) allows no inline script, so no script can steal the session.
 */
import type { Context } from 'hono'
import { z } from 'zod'
import { MoleculeError } from '../../../errors.ts'
import { LOGIN_CODE_MS, PERSON_ROLES } from '../../../workspaces/tokens.ts'
import { type HttpEnv, route } from './route.ts'
import { tokenNameSchema } from './tokens.ts'

const LINK_SPENT =
  'this login link was already used or has expired; "molecule open" makes a new one, on the machine of the platform'
const CODE_CHARACTERS_MAX = 256

const loginSchema = z.strictObject({ code: z.string().min(1).max(CODE_CHARACTERS_MAX) })

const loginLinkSchema = z.strictObject({
  role: z.enum(PERSON_ROLES).default('admin'),
  name: tokenNameSchema.default('browser'),
})

export const loginRoutes = [
  route({
    method: 'post',
    path: '/login',
    access: 'open',
    body: { schema: loginSchema, name: 'a login' },
    summary: 'Exchange a single-use code for a session cookie',
    success: [204, 'The cookie'],
    async handle({ context, body }, { tokens, auth, addresses }) {
      const { incoming } = context.env
      // Prevents that another page logs a browser in. A program sends no Origin; a browser always does.
      if (incoming.headers.origin !== undefined) auth.requireSameOrigin(incoming)
      const session = await tokens.exchangeLoginCode(body.code)
      if (session === undefined) throw new MoleculeError('unauthenticated', LINK_SPENT)
      const cookie = `${auth.cookieName}=${session.secret}; Max-Age=${session.maxAgeSeconds}`
      return withCookie(context, addresses.isHttps(incoming) ? `${cookie}; Secure` : cookie)
    },
  }),
  route({
    method: 'post',
    path: '/login-links',
    access: 'token.handle',
    body: { schema: loginLinkSchema, name: 'a login link', optional: true },
    summary: 'Make a link that logs one browser in, once; "role" is admin, member or viewer',
    success: [201, 'The link, and how many seconds it works'],
    handle({ context, body }, { tokens, addresses }) {
      const url = `${addresses.baseUrl(context.env.incoming)}/#${tokens.issueLoginCode(body)}`
      return context.json({ url, expires_in: LOGIN_CODE_MS / 1000 }, 201)
    },
  }),
  route({
    method: 'post',
    path: '/logout',
    access: 'open',
    summary: 'End the session of the cookie',
    success: [204, 'The cookie is cleared'],
    async handle({ context }, { tokens, auth }) {
      const secret = auth.sessionSecret(context.env.incoming)
      if (secret !== undefined) {
        auth.requireSameOrigin(context.env.incoming)
        await tokens.revokeBrowserSession(secret)
      }
      return withCookie(context, `${auth.cookieName}=; Max-Age=0`)
    },
  }),
]

/** `Secure` only over https: loopback has no TLS, and browsers would not keep such a cookie. */
function withCookie(context: Context<HttpEnv>, cookie: string): Response {
  context.header('Set-Cookie', `${cookie}; Path=/; HttpOnly; SameSite=Strict`)
  return context.body(null, 204)
}
