/**
 * The web page, and the login of a browser. The policy of the page allows no inline script and no request to another host.
 * The name of each asset contains a hash of its content, so browsers keep assets for ever; `index.html` is never kept. A
 * login exchanges a single-use code for a log-in cookie. The code is in the fragment of the link, which browsers do not
 * send, and is exchanged by POST, so it is in no log and no Referer. The cookie is HttpOnly: no script can steal it.
 */
import type { Context } from 'hono'
import { createLoginLink, logIn, logOut, readAsset, readIcon, readPage } from '../../../api/browser.ts'
import { MoleculeError } from '../../../errors.ts'
import { LOGIN_CODE_MS } from '../../../workspaces/tokens.ts'
import { createPageFiles, PAGE_FOLDER, type PageFile } from '../server/page-files.ts'
import { type HttpEnv, serve } from './route.ts'

const PAGE_HEADERS = {
  'Content-Security-Policy':
    "default-src 'self'; img-src 'self' blob: data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
}

const LINK_SPENT =
  'this login link was already used or has expired; "molecule open" makes a new one, on the machine of the platform'

const files = createPageFiles(PAGE_FOLDER)

export const browserRoutes = [
  serve(readPage, ({ context }) => answerFile(context, files.index(), 'no-store')),
  serve(readAsset, ({ context, params }) => {
    const file = files.find(`assets/${params.file}`)
    if (file === undefined) throw new MoleculeError('not_found', `the page has no file ${JSON.stringify(params.file)}`)
    return answerFile(context, file, 'public, max-age=31536000, immutable')
  }),
  serve(readIcon, ({ context }) => {
    const file = files.find('icon.svg')
    if (file === undefined) throw new MoleculeError('not_found', 'the page is not built')
    return answerFile(context, file, 'no-cache')
  }),
  serve(logIn, async ({ context, body }, { tokens, auth, addresses }) => {
    const { incoming } = context.env
    // Prevents that another page logs a browser in. A program sends no Origin; a browser always does.
    if (incoming.headers.origin !== undefined) auth.requireSameOrigin(incoming)
    const login = await tokens.exchangeLoginCode(body.code)
    if (login === undefined) throw new MoleculeError('unauthenticated', LINK_SPENT)
    const cookie = `${auth.cookieName}=${login.secret}; Max-Age=${login.maxAgeSeconds}`
    setCookie(context, addresses.isHttps(incoming) ? `${cookie}; Secure` : cookie)
  }),
  serve(createLoginLink, ({ context, body }, { tokens, addresses }) => ({
    url: `${addresses.baseUrl(context.env.incoming)}/#${tokens.issueLoginCode(body)}`,
    expires_in: LOGIN_CODE_MS / 1000,
  })),
  serve(logOut, async ({ context }, { tokens, auth }) => {
    const secret = auth.loginSecret(context.env.incoming)
    if (secret !== undefined) {
      auth.requireSameOrigin(context.env.incoming)
      await tokens.revokeBrowserLogin(secret)
    }
    setCookie(context, `${auth.cookieName}=; Max-Age=0`)
  }),
]

function answerFile(context: Context<HttpEnv>, { type, bytes, encoded }: PageFile, cacheControl: string): Response {
  const accepted = context.req.header('Accept-Encoding') ?? ''
  const headers = { ...PAGE_HEADERS, 'Content-Type': type, 'Cache-Control': cacheControl, Vary: 'Accept-Encoding' }
  for (const [encoding, content] of encoded) {
    if (new RegExp(`\\b${encoding}\\b(?!\\s*;\\s*q=0(?:\\.0*)?\\s*(?:,|$))`).test(accepted)) {
      return context.body(content, 200, { ...headers, 'Content-Encoding': encoding })
    }
  }
  return context.body(bytes, 200, headers)
}

/** `Secure` only over https: loopback has no TLS, and browsers would not keep such a cookie. */
function setCookie(context: Context<HttpEnv>, cookie: string): void {
  context.header('Set-Cookie', `${cookie}; Path=/; HttpOnly; SameSite=Strict`)
}
