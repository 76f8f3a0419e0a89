/**
 * Reports every source folder that has grown too large to read at a glance; a part of `npm run check`. Such a folder is
 * shelved by what its files are for. Tests stand beside their sources and are not counted.
 *
 * Invariant: `checkFolderSizes` is pure.
 */
import { posix } from 'node:path'
import { readSources } from './layers.ts'

export const FOLDER_FILES_MAX = 22

/** A numbered list that only grows. */
const LISTS = ['src/store/migrations']

/** One sentence for each folder with too many files of its own. */
export function checkFolderSizes(files: Iterable<string>): string[] {
  const sources = [...files].filter((file) => !/\.test\.\w+$/.test(file))
  const byFolder = Map.groupBy(sources, (file) => posix.dirname(file))
  return [...byFolder]
    .filter(([folder, { length }]) => length > FOLDER_FILES_MAX && !LISTS.includes(folder))
    .map(
      ([folder, { length }]) =>
        `${folder} has ${length} source files, more than ${FOLDER_FILES_MAX}: make folders in it by what they are for`,
    )
    .sort()
}

if (import.meta.main) {
  const problems = checkFolderSizes(readSources(posix.join(import.meta.dirname, '..')).keys())
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) process.exitCode = 1
}
