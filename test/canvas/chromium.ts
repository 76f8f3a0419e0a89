/**
 * Finds a Chromium for the tests of the page: the path in `MOLECULE_CHROMIUM`, else a browser of the system, else the
 * browser of a development package, unpacked once into the user's cache folder. So `npm test` needs no browser.
 */
import { accessSync, constants, readFileSync, writeFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync } from 'node:zlib'
import { cacheFolder, installOnce } from '../harness/user-cache.ts'

const SYSTEM_NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

export async function findChromium(): Promise<string> {
  const given = process.env['MOLECULE_CHROMIUM']
  if (given) return given
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    for (const name of SYSTEM_NAMES) if (isExecutable(join(folder, name))) return join(folder, name)
  }
  return unpackChromium()
}

/**
 * The package holds one compressed program that runs headless and needs no library of a desktop. Only that program is
 * used: the package's own code would unpack it, and libraries beside it, into a temporary folder that all processes share.
 */
async function unpackChromium(): Promise<string> {
  const packageDir = dirname(dirname(fileURLToPath(import.meta.resolve('@sparticuz/chromium'))))
  const { version } = JSON.parse(readFileSync(join(packageDir, 'package.json'), 'utf8')) as { version: string }
  const cache = join(cacheFolder('chromium'), version)
  await installOnce(cache, (folder) => {
    const program = brotliDecompressSync(readFileSync(join(packageDir, 'bin', 'chromium.br')))
    writeFileSync(join(folder, 'chromium'), program, { mode: 0o755 })
  })
  return join(cache, 'chromium')
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
