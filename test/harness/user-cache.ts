/**
 * Folders in the user's cache that hold what tests need and no package brings ready to use: agent CLIs, clients, a browser.
 * Two test files may fill the same folder at once.
 *
 * Invariant: a folder gets its final name when it is complete, and a folder that is there is never replaced.
 */
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'

/** Follows the XDG base directory specification. */
export function cacheFolder(kind: 'agents' | 'clients' | 'chromium'): string {
  return join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'molecule', kind)
}

/** Fills the folder unless it exists; the seconds it took, or undefined. */
export async function installOnce(
  folder: string,
  fill: (folder: string) => void | Promise<void>,
): Promise<number | undefined> {
  if (existsSync(folder)) return undefined
  const startMs = performance.now()
  await mkdir(dirname(folder), { recursive: true })
  // Beside the final folder, because a rename works only within one file system.
  const temporary = await mkdtemp(`${folder}.making-`)
  try {
    await fill(temporary)
    // A rename replaces a file, even a program that runs; it never replaces a folder with something in it.
    await rename(temporary, folder)
  } catch (error) {
    await rm(temporary, { recursive: true, force: true })
    // Another process may have installed it meanwhile.
    if (!existsSync(folder)) throw error
  }
  return (performance.now() - startMs) / 1000
}
