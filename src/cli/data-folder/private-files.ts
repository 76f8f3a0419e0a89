/**
 * Keeps the data folder closed to other users of the machine. A user who can read its store can forge tokens, and a user
 * who can write to it decides what the platform does. The umask of the shell that starts the platform must not matter.
 */
import { chmodSync, closeSync, openSync, readdirSync, type Stats, statSync } from 'node:fs'
import { join } from 'node:path'
import { MoleculeError } from '../../errors.ts'

/** Mode bits by which the group or other users can use a file. */
export const OTHERS_MODE_BITS = 0o077
const STICKY_BIT = 0o1000
const ROOT_UID = 0

/** Names of what the platform keeps in a data folder; `molecule.log.1` to `.4` and temporary files begin alike. */
const OWN_NAMES = new Set([
  ...['admin-token', 'molecule.yaml', 'cli.json', 'molecule.db', 'molecule.db-wal', 'molecule.db-shm'],
  ...['platform.json', 'adapters.json', 'lock', 'host-id', 'host-place.json', 'bridge.log'],
  ...['processes', 'workspaces', 'templates', 'adapters', 'channels', 'trash', 'bridge', 'outbox'],
])
const OWN_LOG = /^(?:molecule|bridge)\.log\.\d$/

/**
 * Takes away the rights of other users on the folder and on the platform's entries in it; returns the paths that had
 * them. Throws `bad_config` for a folder or an entry of another user. Systems without user ids are left alone.
 */
export function restrictDataFolder(path: string): readonly string[] {
  const us = process.getuid?.()
  if (us === undefined) return []
  const folder = statSync(path)
  if (folder.uid !== us) throw foreignOwner(path, folder.uid, us)
  const entries = readdirSync(path)
  const own = entries.filter((name) => OWN_NAMES.has(name) || OWN_LOG.test(name))
  if (isOpen(folder)) requireOwnFolder(path, { folder, entries, own })
  return [path, ...own.map((name) => join(path, name))].filter((one) => restrict(one, us))
}

/** Creates an empty file that only its owner can use, unless it exists. SQLite follows the mode of a file it finds. */
export function ensurePrivateFile(path: string): void {
  closeSync(openSync(path, 'a', 0o600))
}

/** Prevents `--data-dir /tmp` or `--data-dir .` from closing a folder that others use for something else. */
function requireOwnFolder(
  path: string,
  { folder, entries, own }: { folder: Stats; entries: readonly string[]; own: readonly string[] },
): void {
  const isShared = (folder.mode & STICKY_BIT) !== 0
  if (!isShared && (entries.length === 0 || own.length > 0)) return
  const message = `${path} is open to other users of this machine and holds other files, so it cannot be the data folder. Choose an empty one with --data-dir${isShared ? '' : `, or close it yourself: chmod 700 ${path}`}`
  throw new MoleculeError('bad_config', message, { details: { key: 'data-dir' } })
}

/** Returns true if others had rights. An entry of root is left alone: an administrator may place a settings file here. */
function restrict(path: string, us: number): boolean {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return false
  if (stats.uid !== us && stats.uid !== ROOT_UID) throw foreignOwner(path, stats.uid, us)
  if (!isOpen(stats) || stats.uid !== us) return false
  chmodSync(path, stats.mode & 0o7777 & ~OTHERS_MODE_BITS)
  return true
}

const isOpen = ({ mode }: Stats): boolean => (mode & OTHERS_MODE_BITS) !== 0

function foreignOwner(path: string, owner: number, us: number): MoleculeError {
  const message = `${path} belongs to another user (uid ${owner}, this is uid ${us}), who could read and change everything in it. Run Molecule as that user, change the owner (chown), or choose another folder with --data-dir`
  return new MoleculeError('bad_config', message, { details: { key: 'data-dir', path } })
}
