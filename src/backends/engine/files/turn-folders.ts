/**
 * Private folders of single turns, each with an outbox. They lie in one private folder of the backend: a private folder
 * for each turn would list the system's temporary folder each time. A folder that its turn left empty serves a later
 * turn: to remove one and to make another takes as long as a tenth of a small turn.
 */
import { lstatSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { MoleculeError } from '../../../errors.ts'
import { createPrivateFolder } from './private-folder.ts'

export interface TurnFolder {
  readonly path: string
  readonly outbox: string
  /** Writes a file that only this user can read, and returns its path. */
  write(name: string, content: string): string
}

export interface TurnFolders {
  open(): TurnFolder
  /** Removes all files of the turn; an empty folder serves a later turn. Nothing of the turn may run any more. */
  giveBack(folder: TurnFolder): void
  /** The same for a program that goes on: a file that it writes late must not be delivered with another answer. */
  remove(folder: TurnFolder): void
  /** Removes the folders of all turns. */
  close(): void
}

export function createTurnFolders(parent?: string): TurnFolders {
  let backendFolder = createPrivateFolder(parent)
  let made = 0
  const free: TurnFolder[] = []
  const make = (): TurnFolder => {
    made += 1
    const path = backendFolder.makeFolder(String(made))
    const outbox = join(path, 'outbox')
    mkdirSync(outbox, { mode: 0o700 })
    return { path, outbox, write: (name, content) => writePrivate(join(path, name), content) }
  }
  const makeAgain = (): TurnFolder => {
    try {
      return make()
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      // A cleaner of the temporary folder has removed it.
      backendFolder = createPrivateFolder(parent)
      return make()
    }
  }
  return {
    open() {
      for (let kept = free.pop(); kept !== undefined; kept = free.pop()) if (isFolder(kept.outbox)) return kept
      try {
        return makeAgain()
      } catch (cause) {
        const message = `no folder can be made for the files of the turn: ${(cause as Error).message}`
        throw new MoleculeError('spawn_failed', message, { retryable: true, cause })
      }
    },
    giveBack(folder) {
      if (isClean(folder)) free.push(folder)
      else removeOrLeave(folder.path)
    },
    remove: ({ path }) => removeOrLeave(path),
    close() {
      try {
        backendFolder.remove()
      } catch {
        // What a program made read-only stays, as in `removeOrLeave`.
      }
    },
  }
}

/** A folder that the program has made read-only cannot be removed. It stays, because it must not cost the answer. */
function removeOrLeave(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch {
    // Only this user can read it.
  }
}

function writePrivate(path: string, content: string): string {
  writeFileSync(path, content, { mode: 0o600, flag: 'wx' })
  return path
}

/** It has an empty outbox and nothing else. The program may have removed it, or put a link in its place. */
function isClean({ path, outbox }: TurnFolder): boolean {
  try {
    return isFolder(outbox) && readdirSync(path).length === 1 && readdirSync(outbox).length === 0
  } catch {
    return false
  }
}

const isFolder = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true
