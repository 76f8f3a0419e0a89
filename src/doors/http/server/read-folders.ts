/**
 * The folders in a folder of the platform's machine (`GET /folders`), from which an admin picks the working folder of a
 * workspace. It shows names only, never a file.
 */
import type { Dirent } from 'node:fs'
import { access, opendir, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import type { z } from 'zod'
import type { listFolders } from '../../../api/platform.ts'
import { PATH_CHARACTERS_MAX } from '../../../api/workspaces.ts'
import { MoleculeError } from '../../../errors.ts'

/** A folder shows at most this many folders, and as many hidden ones. */
const FOLDERS_MAX = 500
/** Entries of a folder that are read; files count too. */
const ENTRIES_MAX = 20_000

/** `given`: an absolute path, `~`, or empty for the home folder. */
export async function readFolders(given: string): Promise<z.input<typeof listFolders.answer>> {
  const path = toPath(given)
  const { names, truncated } = await folderNames(path)
  const shown = {
    hidden: names.filter((name) => name.startsWith('.')),
    folders: names.filter((n) => !n.startsWith('.')),
  }
  const describe = (group: readonly string[]) =>
    Promise.all(
      group
        .toSorted((a, b) => a.localeCompare(b))
        .slice(0, FOLDERS_MAX)
        .map(async (name) => ({ name, path: join(path, name), is_git: await isGit(join(path, name)) })),
    )
  return {
    path,
    parent: dirname(path) === path ? null : dirname(path),
    home: homedir(),
    is_git: await isGit(path),
    folders: await describe(shown.folders),
    hidden: await describe(shown.hidden),
    truncated: truncated || shown.folders.length > FOLDERS_MAX || shown.hidden.length > FOLDERS_MAX,
  }
}

function toPath(given: string): string {
  if (given === '') return homedir()
  const path = given === '~' || given.startsWith('~/') ? join(homedir(), given.slice(1)) : given
  if (isAbsolute(path) && !path.includes('\0') && path.length <= PATH_CHARACTERS_MAX) return resolve(path)
  throw new MoleculeError('invalid_request', `path: ${JSON.stringify(given.slice(0, 200))} is not an absolute path`, {
    details: { path: 'path' },
  })
}

async function folderNames(path: string): Promise<{ names: string[]; truncated: boolean }> {
  const names: string[] = []
  let read = 0
  try {
    const entries = await opendir(path)
    for await (const entry of entries) {
      read += 1
      if (read > ENTRIES_MAX) return { names, truncated: true }
      if (await isFolder(path, entry)) names.push(entry.name)
    }
  } catch (cause) {
    throw unreadable(path, cause as NodeJS.ErrnoException)
  }
  return { names, truncated: false }
}

/** A link to a folder counts. */
async function isFolder(path: string, entry: Dirent): Promise<boolean> {
  if (entry.isDirectory()) return true
  if (!entry.isSymbolicLink()) return false
  return await stat(join(path, entry.name)).then(
    (target) => target.isDirectory(),
    () => false,
  )
}

function unreadable(path: string, cause: NodeJS.ErrnoException): MoleculeError {
  const details = { path: 'path' }
  if (cause.code === 'ENOENT') return new MoleculeError('not_found', `there is no folder ${path}`, { cause, details })
  const reason = cause.code === 'ENOTDIR' ? 'is not a folder' : `cannot be read (${cause.code ?? cause.message})`
  return new MoleculeError('invalid_request', `${path} ${reason}`, { cause, details })
}

/** A worktree has a file of that name, a repository a folder. */
const isGit = (path: string): Promise<boolean> =>
  access(join(path, '.git')).then(
    () => true,
    () => false,
  )
