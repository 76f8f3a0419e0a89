/**
 * Login in the browser: a small page, and the exchange of a single-use code for a session cookie. The code is in the
 * fragment of the link, which browsers do not send, and is exchanged by POST; so it is in no log and no Referer. The
 * cookie is HttpOnly and the page allows no inline script, so no script can steal the session.
 */
import { readFileSync } from 'node:fs'
import type { Context } from 'hono'
import { z } from 'zod'
import { MoleculeError } from '../../../errors.ts'
import { requireSameOrigin } from '../server/auth.ts'
import { type HttpEnv, route } from './route.ts'

const LINK_SPENT = 'this login link was already used or has expired'
const CODE_CHARACTERS_MAX = 256

const loginSchema = z.strictObject({ code: z.string().min(1).max(CODE_CHARACTERS_MAX) })

export const loginRoutes = [
  pageRoute('/', { file: 'index.html', type: 'text/html; charset=utf-8', summary: 'The canvas' }),
  pageRoute('/page.js', { file: 'page.js', type: 'text/javascript; charset=utf-8', summary: 'The script of the page' }),
  pageRoute('/page.css', { file: 'page.css', type: 'text/css; charset=utf-8', summary: 'The style of the page' }),
  pageRoute('/icon.svg', { file: 'icon.svg', type: 'image/svg+xml', summary: 'The icon of the page' }),
  route({
    method: 'post',
    path: '/login',
    access: 'open',
    body: { schema: loginSchema, name: 'a login' },
    summary: 'Exchange a single-use code for a session cookie',
    success: [204, 'The cookie'],
    async handle({ context, body }, { tokens, auth }) {
      const { incoming } = context.env
      // Prevents that another page logs a browser in. A program sends no Origin; a browser always does.
      if (incoming.headers.origin !== undefined) requireSameOrigin(incoming)
      const session = await tokens.exchangeLoginCode(body.code)
      if (session === undefined) throw new MoleculeError('unauthenticated', LINK_SPENT)
      return withCookie(context, `${auth.cookieName}=${session.secret}; Max-Age=${session.maxAgeSeconds}`)
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
        requireSameOrigin(context.env.incoming)
        await tokens.revokeBrowserSession(secret)
      }
      return withCookie(context, `${auth.cookieName}=; Max-Age=0`)
    },
  }),
]

function pageRoute(path: string, { file, type, summary }: { file: string; type: string; summary: string }) {
  const content = readFileSync(new URL(`../page/${file}`, import.meta.url))
  return route({
    method: 'get',
    path,
    access: 'open',
    summary,
    success: [200, summary],
    handle: ({ context }) => context.body(content, 200, { ...PAGE_HEADERS, 'Content-Type': type }),
  })
}

const PAGE_HEADERS = {
  'Content-Security-Policy': "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-cache',
}

/** The cookie is not `Secure`: loopback has no TLS, and browsers would not keep it. */
function withCookie(context: Context<HttpEnv>, cookie: string): Response {
  context.header('Set-Cookie', `${cookie}; Path=/; HttpOnly; SameSite=Strict`)
  return context.body(null, 204)
}
