/**
 * Prevents a silent new start: when the store is gone (a moved file, another database URL) and its workspace folders are
 * still there, a platform on a new, empty store would answer that no workspace exists, and its owner would look for lost
 * messages in the wrong place.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { MoleculeError } from '../../errors.ts'
import type { Store } from '../../store/store.ts'
import { isUnusedStore } from '../../workspaces/existing-workspace.ts'

export interface LostStoreOptions {
  readonly store: Store
  readonly dataDir: string
  /** How the owner knows the store: the path of its file, or `the database`. */
  readonly storeName: string
}

/** Throws `bad_config` when no platform has ever run on this store and the data folder has workspaces. */
export async function refuseLostStore({ store, dataDir, storeName }: LostStoreOptions): Promise<void> {
  if (!(await store.read(isUnusedStore))) return
  const homes = join(dataDir, 'workspaces')
  const folders = workspaceFolders(homes)
  if (folders.length === 0) return
  const message = [
    `${storeName} is empty, but ${homes} has the folders of ${folders.length} workspace(s), such as ${folders[0]}.`,
    'Was the store moved, deleted or replaced? Put it back and start again.',
    `To begin with nothing instead, move ${homes} away`,
  ].join(' ')
  throw new MoleculeError('bad_config', message, { details: { path: homes } })
}

function workspaceFolders(homes: string): string[] {
  try {
    return readdirSync(homes).filter((name) => name.startsWith('ws-'))
  } catch {
    // There is no such folder yet.
    return []
  }
}
