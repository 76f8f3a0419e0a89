/**
 * The web page. Its policy allows no inline script and no request to another host. The name of each asset contains a hash
 * of its content, so browsers keep assets for ever; `index.html`, which names them, is never kept.
 */
import type { Context } from 'hono'
import { MoleculeError } from '../../../errors.ts'
import { createPageFiles, PAGE_FOLDER, type PageFile } from '../server/page-files.ts'
import { type HttpEnv, route } from './route.ts'

const PAGE_HEADERS = {
  'Content-Security-Policy':
    "default-src 'self'; img-src 'self' blob: data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
}

const files = createPageFiles(PAGE_FOLDER)

export const pageRoutes = [
  route({
    method: 'get',
    path: '/',
    access: 'open',
    summary: 'The canvas',
    success: [200, 'The page'],
    handle: ({ context }) => answerFile(context, files.index(), 'no-store'),
  }),
  route({
    method: 'get',
    path: '/assets/:file',
    access: 'open',
    summary: 'A script, a style or a font of the page',
    success: [200, 'The file'],
    handle({ context }) {
      const name = context.req.param('file')
      const file = files.find(`assets/${name}`)
      if (file === undefined) throw new MoleculeError('not_found', `the page has no file ${JSON.stringify(name)}`)
      return answerFile(context, file, 'public, max-age=31536000, immutable')
    },
  }),
  route({
    method: 'get',
    path: '/icon.svg',
    access: 'open',
    summary: 'The icon of the page',
    success: [200, 'The icon'],
    handle({ context }) {
      const file = files.find('icon.svg')
      if (file === undefined) throw new MoleculeError('not_found', 'the page is not built')
      return answerFile(context, file, 'no-cache')
    },
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
