/** The working folder of a workspace's agent. The default is created when it is missing; any other must exist. */
import { statSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { MoleculeError } from '../../errors.ts'
import { type Homes, WORK_FOLDER } from './homes.ts'

export const defaultWorkingDir = (homes: Homes, id: string): string => join(homes.path(id), WORK_FOLDER)

/** Why the folder cannot be used; undefined when it can. */
function workingDirProblem(path: string): string | undefined {
  if (!isAbsolute(path) || path.includes('\0')) return `working_dir: ${JSON.stringify(path)} is not an absolute path`
  try {
    const stats = statSync(path, { throwIfNoEntry: false })
    if (stats === undefined) return `working_dir: there is no folder ${path}`
    return stats.isDirectory() ? undefined : `working_dir: ${path} is not a folder`
  } catch (error) {
    return `working_dir: ${path} cannot be read (${(error as NodeJS.ErrnoException).code})`
  }
}

/** For a folder that a caller sets. */
export function requireWorkingDir(path: string): void {
  const problem = workingDirProblem(path)
  if (problem !== undefined) throw new MoleculeError('invalid_request', problem, { details: { path: 'working_dir' } })
}

/** Called before a turn: the folder may have been removed since it was set. */
export async function ensureWorkingDir(path: string, fallback: string): Promise<void> {
  const problem = workingDirProblem(path)
  if (problem === undefined) return
  if (path !== fallback) throw new MoleculeError('bad_config', problem, { details: { path: 'working_dir' } })
  await mkdir(path, { recursive: true, mode: 0o700 })
}
