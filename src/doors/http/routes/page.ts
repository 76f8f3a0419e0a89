/**
 * The web page. Its policy allows no inline script and no request to another host. The name of each asset contains a hash
 * of its content, so browsers keep assets for ever; `index.html`, which names them, is never kept.
 */
import type { Context } from 'hono'
import { readAsset, readIcon, readPage } from '../../../api/browser.ts'
import { MoleculeError } from '../../../errors.ts'
import { createPageFiles, PAGE_FOLDER, type PageFile } from '../server/page-files.ts'
import { type HttpEnv, serve } from './route.ts'

const PAGE_HEADERS = {
  'Content-Security-Policy':
    "default-src 'self'; img-src 'self' blob: data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
}

const files = createPageFiles(PAGE_FOLDER)

export const pageRoutes = [
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
