/**
 * The browser's way in: a small page, and the exchange of a single-use code for a session cookie. The code is the
 * link's fragment, which browsers send to nobody, and is traded by POST; so it is in no log and no Referer. The cookie
 * is HttpOnly and the page's content policy allows nothing inline, so no script can carry the session away.
 */
import { readFileSync } from 'node:fs'
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { MoleculeError } from '../../../errors.ts'
import { safeParse } from '../../../protocol/schemas.ts'
import type { Tokens } from '../../../workspaces/tokens.ts'
import { type HttpAuth, requireSameOrigin } from '../server/auth.ts'
import { BODY_BYTES_MAX, readJson } from '../server/body.ts'
import type { HttpEnv } from '../server/guard.ts'

export function loginRoutes(tokens: Tokens, auth: HttpAuth): Hono<HttpEnv> {
  const routes = new Hono<HttpEnv>()
  for (const file of PAGE_FILES) {
    const body = readFileSync(file.source)
    routes.get(file.path, (context) => context.body(body, 200, { ...PAGE_HEADERS, 'Content-Type': file.type }))
  }
  routes.post('/login', async (context) => {
    const { incoming } = context.env
    // A program that logs in by hand sends no Origin; a page of somebody else always does.
    if (incoming.headers.origin !== undefined) requireSameOrigin(incoming)
    const code = readCode(await readJson(incoming, BODY_BYTES_MAX))
    const session = await tokens.exchangeLoginCode(code)
    if (session === undefined) throw new MoleculeError('unauthenticated', LINK_SPENT)
    return withCookie(context, `${auth.cookieName}=${session.secret}; Max-Age=${session.maxAgeSeconds}`)
  })
  routes.post('/logout', async (context) => {
    const secret = auth.sessionSecret(context.env.incoming)
    if (secret !== undefined) {
      requireSameOrigin(context.env.incoming)
      await tokens.revokeBrowserSession(secret)
    }
    return withCookie(context, `${auth.cookieName}=; Max-Age=0`)
  })
  return routes
}

const PAGE_FILES = [
  { path: '/', source: new URL('../page/index.html', import.meta.url), type: 'text/html; charset=utf-8' },
  { path: '/page.js', source: new URL('../page/page.js', import.meta.url), type: 'text/javascript; charset=utf-8' },
  { path: '/page.css', source: new URL('../page/page.css', import.meta.url), type: 'text/css; charset=utf-8' },
  { path: '/icon.svg', source: new URL('../page/icon.svg', import.meta.url), type: 'image/svg+xml' },
]

const PAGE_HEADERS = {
  'Content-Security-Policy': "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cache-Control': 'no-cache',
}

const LINK_SPENT = 'this login link was used already or is too old'
const CODE_CHARACTERS_MAX = 256

export const loginSchema = z.strictObject({ code: z.string().min(1).max(CODE_CHARACTERS_MAX) })

function readCode(body: unknown): string {
  const result = safeParse(loginSchema, body)
  if (result.success) return result.data.code
  throw new MoleculeError('invalid_request', 'the body must be {"code": "..."}', { cause: result.error })
}

/** The cookie is not `Secure`: on loopback there is no TLS, and browsers would refuse to keep it. */
function withCookie(context: Context<HttpEnv>, cookie: string): Response {
  context.header('Set-Cookie', `${cookie}; Path=/; HttpOnly; SameSite=Strict`)
  return context.body(null, 204)
}
