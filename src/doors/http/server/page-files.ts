/**
 * The files of the web page, from the folder of its build. They are read once, with their compressed forms, so that no
 * request for them reads a file or compresses. A platform whose page is not built serves a page that says so.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface PageFile {
  readonly type: string
  readonly bytes: Uint8Array<ArrayBuffer>
  /** By the name of the encoding, the best first. */
  readonly encoded: ReadonlyMap<string, Uint8Array<ArrayBuffer>>
}

export interface PageFiles {
  /** `index.html`, or the page that says that it is not built. */
  index(): PageFile
  /** A file of the build by its path; undefined where there is none. */
  find(path: string): PageFile | undefined
}

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}
const ENCODINGS: readonly (readonly [name: string, extension: string])[] = [
  ['br', '.br'],
  ['gzip', '.gz'],
]

/** The build of `scripts/build-page.mjs`. */
export const PAGE_FOLDER = fileURLToPath(new URL('../../../../web/dist', import.meta.url))

export function createPageFiles(folder: string): PageFiles {
  let files: ReadonlyMap<string, PageFile> | undefined
  const read = () => {
    // Not kept while the page is not built: it appears as soon as it is.
    if (files === undefined && existsSync(join(folder, 'index.html'))) files = readAll(folder)
    return files
  }
  return {
    index: () => read()?.get('index.html') ?? NOT_BUILT,
    find: (path) => read()?.get(path),
  }
}

function readAll(folder: string): ReadonlyMap<string, PageFile> {
  const files = new Map<string, PageFile>()
  for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const type = TYPES[extname(name)]
    if (type === undefined) continue
    const path = join(folder, name)
    const encoded = ENCODINGS.filter(([, extension]) => existsSync(path + extension)).map(
      ([encoding, extension]) => [encoding, new Uint8Array(readFileSync(path + extension))] as const,
    )
    files.set(name.replaceAll('\\', '/'), {
      type,
      bytes: new Uint8Array(readFileSync(path)),
      encoded: new Map(encoded),
    })
  }
  return files
}

const NOT_BUILT: PageFile = {
  type: 'text/html; charset=utf-8',
  encoded: new Map(),
  bytes: new TextEncoder().encode(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Molecule</title>
<h1>The web page is not built</h1>
<p>The platform runs. Only this page is missing. To build it, run <code>npm start</code> in the clone, or
<code>node scripts/install.mjs</code> while the platform runs, then reload this page. The command says what failed.</p>
</html>
`),
}
