/**
 * The unique id of a data or state folder, which sessions, leases and process marks carry, and the place where the folder
 * was made. A folder that is found elsewhere was moved, or it is a copy. Invariant: a copy never uses the id of its
 * original, because with that id it would kill the original's agents and void its leases.
 */
import { readFileSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { ulid } from '../../ids.ts'
import { inodeOf, writeFileAtomically } from './data-folder.ts'

/** Where a folder was when a platform used it last. */
export interface HostPlace {
  /** The real path. */
  readonly path: string
  /** A folder that was renamed on its disk keeps it. */
  readonly inode: string
  /** Empty where the system names none, as in most containers. */
  readonly machine: string
}

/** `same`: also for a new folder, and for one that an earlier version made. */
export type FolderStanding = 'same' | 'moved' | 'copy'

export interface HostFolder {
  /** Undefined for a new folder. */
  readonly id: string | undefined
  /** Undefined for a new folder and for one that an earlier version made. */
  readonly from: HostPlace | undefined
  readonly standing: FolderStanding
}

/** What the files show. Without a person's word, a folder whose original may still be used counts as a copy. */
export function readHostFolder(folder: string): HostFolder {
  const id = readIfExists(join(folder, 'host-id'))?.trim()
  const from = id === undefined ? undefined : readPlace(folder, id)
  if (id === undefined || from === undefined) return { id, from, standing: 'same' }
  return { id, from, standing: standingOf(from, { id, here: placeOf(folder) }) }
}

function standingOf(from: HostPlace, { id, here }: { id: string; here: HostPlace }): FolderStanding {
  // A volume of containers, of which each may have a machine id of its own.
  if (from.path === here.path && from.inode === here.inode) return 'same'
  const isThisMachine = from.machine === here.machine || from.machine === '' || here.machine === ''
  if (!isThisMachine) return 'copy'
  if (from.path === here.path) return 'same'
  if (from.inode === here.inode) return 'moved'
  return mayBeThere(from.path, id) ? 'copy' : 'moved'
}

/** False only when it is sure that the original is gone. An original that this user cannot read may be in use. */
function mayBeThere(path: string, id: string): boolean {
  try {
    return readIfExists(join(path, 'host-id'))?.trim() === id
  } catch (error) {
    // A file in the place of the folder.
    return (error as NodeJS.ErrnoException).code !== 'ENOTDIR'
  }
}

/** From now on the folder is at home where it is, under this id. */
export function writeHostFolder(folder: string, id: string): void {
  if (readIfExists(join(folder, 'host-id'))?.trim() !== id) writeFileAtomically(join(folder, 'host-id'), `${id}\n`)
  const place = `${JSON.stringify({ host: id, ...placeOf(folder) })}\n`
  if (readIfExists(placePath(folder)) !== place) writeFileAtomically(placePath(folder), place)
}

/** For the state folder of a bridge, which asks no person: in a copied folder it is another bridge. */
export function ensureHostId(folder: string): string {
  const { id: known, standing } = readHostFolder(folder)
  const id = known === undefined || standing === 'copy' ? ulid() : known
  writeHostFolder(folder, id)
  return id
}

const placePath = (folder: string): string => join(folder, 'host-place.json')

/** Undefined for a file that is missing, broken, or of another id. */
function readPlace(folder: string, id: string): HostPlace | undefined {
  try {
    const value = JSON.parse(readIfExists(placePath(folder)) ?? '') as Partial<HostPlace> & { host?: unknown }
    const { path, inode, machine } = value
    if (value.host !== id || typeof path !== 'string' || typeof inode !== 'string') return undefined
    return { path, inode, machine: String(machine ?? '') }
  } catch {
    return undefined
  }
}

const placeOf = (folder: string): HostPlace => ({
  path: realpathSync(folder),
  inode: inodeOf(folder),
  machine: readMachineId(),
})

/** Random, made when the system was installed. */
function readMachineId(): string {
  for (const path of ['/etc/machine-id', '/var/lib/dbus/machine-id']) {
    // A few bytes; anything else is not such a file.
    if ((statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 100) continue
    const id = readIfExists(path)?.trim()
    if (id) return id
  }
  return ''
}

function readIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
