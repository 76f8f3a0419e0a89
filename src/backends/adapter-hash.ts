/**
 * Hashes of the adapters in the data folder. An adapter runs with all rights of the platform, so its owner must be able
 * to see that its code is still the code they installed. Two hashes are equal if names and contents of all files are.
 */
import { createHash, type Hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { lstat, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { listAdapterFolders } from './adapters.ts'

/** After this many bytes of content the name, size and time of a file count, not its content: a start must be quick. */
const CONTENT_BYTES_MAX = 64 * 1024 * 1024
/** Further files are not looked at. The hash then ends with `+`. */
const FILES_MAX = 20_000

/** By folder name. A folder that cannot be read has the hash `unreadable`. */
export async function hashAdapters(dir: string): Promise<ReadonlyMap<string, string>> {
  const hashes = new Map<string, string>()
  for (const folder of await listAdapterFolders(dir)) {
    hashes.set(folder, await hashFolder(join(dir, folder)).catch(() => 'unreadable'))
  }
  return hashes
}

async function hashFolder(folder: string): Promise<string> {
  const hash = createHash('sha256')
  // A trailing slash: the folder itself may be a link to a checkout elsewhere.
  const names = (await readdir(`${folder}/`, { recursive: true })).sort()
  let bytes = 0
  for (const name of names.slice(0, FILES_MAX)) bytes += await addEntry(hash, { folder, name, bytes })
  return `sha256:${hash.digest('hex')}${names.length > FILES_MAX ? '+' : ''}`
}

/** Returns how many bytes of content were read. */
async function addEntry(
  hash: Hash,
  { folder, name, bytes }: { folder: string; name: string; bytes: number },
): Promise<number> {
  const path = join(folder, name)
  const stats = await lstat(path)
  const add = (kind: string, ...fields: readonly (string | number)[]) =>
    hash.update(`${JSON.stringify([kind, name, ...fields])}\n`)
  if (stats.isSymbolicLink()) add('link', await readlink(path))
  else if (stats.isFile() && bytes + stats.size > CONTENT_BYTES_MAX) add('large', stats.size, stats.mtimeMs)
  else if (stats.isFile()) {
    add('file', stats.size)
    for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
    return stats.size
  }
  return 0
}
