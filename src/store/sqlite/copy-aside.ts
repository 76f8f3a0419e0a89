/**
 * Copies an embedded store before its schema changes, so that the program of before can be used again. The process holds
 * the lock of the data folder and writes nothing meanwhile, so the file and its write-ahead log belong together.
 * Invariant: the copy is complete and synced before the first migration begins.
 */
import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { MoleculeError, toMoleculeError } from '../../errors.ts'

/** Older copies are removed. */
const COPIES_MAX = 3
const WAL = '-wal'

/** The copy of a store of schema 27 is `molecule.db.schema-27`, in the same folder. */
export function copyAside(path: string, version: number): void {
  const copy = `${path}.schema-${version}`
  const unfinished = `${copy}.unfinished`
  try {
    copyFile(path, unfinished)
    // The log first: a copy that has its name has its log.
    if (existsSync(`${path}${WAL}`)) copyFile(`${path}${WAL}`, `${copy}${WAL}`)
    else rmSync(`${copy}${WAL}`, { force: true })
    renameSync(unfinished, copy)
  } catch (cause) {
    rmSync(unfinished, { force: true })
    const message = `the store ${path} could not be copied before its upgrade (${toMoleculeError(cause).message}): free some space, or move ${path}.schema-* away, then start again`
    throw new MoleculeError('disk_low', message, { cause, details: { path } })
  }
  removeOld(path)
}

/** Shares the blocks of the original where the file system can. */
function copyFile(from: string, to: string): void {
  copyFileSync(from, to, constants.COPYFILE_FICLONE)
  const file = openSync(to, 'r+')
  try {
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
}

function removeOld(path: string): void {
  const prefix = `${basename(path)}.schema-`
  const versions = readdirSync(dirname(path))
    .filter((name) => name.startsWith(prefix))
    .map((name) => Number(name.slice(prefix.length)))
    .filter((version) => Number.isSafeInteger(version))
  for (const version of versions.sort((a, b) => b - a).slice(COPIES_MAX)) {
    const copy = join(dirname(path), `${prefix}${version}`)
    for (const name of [copy, `${copy}${WAL}`]) rmSync(name, { force: true })
  }
}
