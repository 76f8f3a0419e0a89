/** The web page and the log-in of a browser. */
import { z } from 'zod'
import { PERSON_ROLES } from '../workspaces/tokens.ts'
import { contentOf, endpoint, nothing } from './endpoint.ts'
import { tokenNameSchema } from './tokens.ts'

const CODE_CHARACTERS_MAX = 256

export const readPage = endpoint('GET /', {
  access: 'open',
  summary: 'The canvas',
  success: [200, 'The page'],
  answer: contentOf('text/html'),
})

export const readAsset = endpoint('GET /assets/{file}', {
  access: 'open',
  summary: 'A script, a style or a font of the page',
  success: [200, 'The file'],
  answer: contentOf('*/*'),
})

export const readIcon = endpoint('GET /icon.svg', {
  access: 'open',
  summary: 'The icon of the page',
  success: [200, 'The icon'],
  answer: contentOf('image/svg+xml'),
})

export const logIn = endpoint('POST /login', {
  access: 'open',
  body: { schema: z.strictObject({ code: z.string().min(1).max(CODE_CHARACTERS_MAX) }), name: 'a login' },
  summary: 'Exchange a single-use code for a session cookie',
  success: [204, 'The cookie'],
  answer: nothing,
})

export const createLoginLink = endpoint('POST /login-links', {
  access: 'token.handle',
  body: {
    schema: z.strictObject({
      role: z.enum(PERSON_ROLES).default('admin'),
      name: tokenNameSchema.default('browser'),
    }),
    name: 'a login link',
    optional: true,
  },
  summary: 'Make a link that logs one browser in, once; "role" is admin, member or viewer',
  success: [201, 'The link, and how many seconds it works'],
  answer: z.strictObject({ url: z.string(), expires_in: z.number() }),
})

export const logOut = endpoint('POST /logout', {
  access: 'open',
  summary: 'End the session of the cookie',
  success: [204, 'The cookie is cleared'],
  answer: nothing,
})

export const browserEndpoints = [readPage, readAsset, readIcon, logIn, createLoginLink, logOut] as const
