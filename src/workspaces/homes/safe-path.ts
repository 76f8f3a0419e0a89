/**
 * Resolves a path that a caller names below a workspace's folder. The path consists of plain names, and no folder on
 * the way may be a link. Invariant: the result of `resolvePath` lies inside that folder.
 */
import { lstat } from 'node:fs/promises'
import { join } from 'node:path'
import { MoleculeError } from '../../errors.ts'
import { WORK_FOLDER } from './homes.ts'
import { ignoreMissing } from './ignore-missing.ts'

const NAME_BYTES_MAX = 255
const PATH_BYTES_MAX = 1024
export const PATH_DEPTH_MAX = 16

/** Splits a path into its names. Throws with the reason if it is not allowed. */
function parsePath(path: string): string[] {
  const names = path.split('/')
  const problem =
    Buffer.byteLength(path) > PATH_BYTES_MAX ? `is longer than ${PATH_BYTES_MAX} bytes` : pathProblem(names)
  if (problem !== undefined) throw invalidPath(path, problem)
  return names
}

function pathProblem(names: readonly string[]): string | undefined {
  if (names.length > PATH_DEPTH_MAX) return `is deeper than ${PATH_DEPTH_MAX} folders`
  if (names[0]?.toLowerCase() === WORK_FOLDER) return 'is in the working folder, which is not served here'
  for (const name of names) {
    if (name === '' || name === '.' || name === '..') return 'must be plain names with single slashes between them'
    if (Buffer.byteLength(name) > NAME_BYTES_MAX) return `has a name longer than ${NAME_BYTES_MAX} bytes`
    if (FORBIDDEN_CHARACTERS.test(name) || /[ .]$/.test(name)) return 'has a name that not every file system can store'
  }
  return undefined
}

/** Control characters, characters that Windows forbids, and those that change the direction of displayed text. */
const FORBIDDEN_CHARACTERS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cs}<>:"|?*\\]/u

/** The absolute path. Missing folders on the way are allowed; a link or a file among them is refused. */
export async function resolvePath(home: string, path: string): Promise<string> {
  const names = parsePath(path)
  let folder = home
  for (const name of names.slice(0, -1)) {
    folder = join(folder, name)
    const stats = await ignoreMissing(lstat(folder))
    if (stats === undefined) break
    if (!stats.isDirectory()) throw invalidPath(path, `leads through ${name}, which is not a folder`)
  }
  const resolved = join(home, ...names)
  const stats = await ignoreMissing(lstat(resolved))
  if (stats !== undefined && !stats.isFile()) throw invalidPath(path, 'exists and is not a file')
  return resolved
}

function invalidPath(path: string, problem: string): MoleculeError {
  const shown = JSON.stringify(path.length > 100 ? `${path.slice(0, 100)}…` : path)
  return new MoleculeError('invalid_request', `the path ${shown} ${problem}`, { details: { path: 'path' } })
}
