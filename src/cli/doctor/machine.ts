/**
 * Checks the machine of the platform: Node, settings, data folder and its mode, token file, store, port, disk, sizes.
 * It only reads.
 */
import { readdirSync, readFileSync, statfsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { loadConfig, type PlatformConfig } from '../../config/config.ts'
import { toMoleculeError } from '../../errors.ts'
import { adminTokenPath } from '../data-folder/admin-token.ts'
import { readRunningPlatform } from '../data-folder/data-folder.ts'
import { logFilesOf } from '../data-folder/log-file.ts'
import { LOG_FILE } from '../data-folder/log-format.ts'
import { OTHERS_MODE_BITS } from '../data-folder/private-files.ts'
import { NODE_MAJOR_MIN } from '../launch.mjs'
import { findPortHolder } from '../platform/port-holder.ts'
import { formatBytes } from '../terminal/output.ts'
import type { Environment } from '../terminal/terminal.ts'
import { examineCgroups } from './cgroups.ts'
import type { Finding } from './finding.ts'
import { examineStoreFiles } from './store-files.ts'

const FREE_BYTES_MIN = 500 * 1024 * 1024
/** Files of a folder whose sizes are added up; a larger folder is shown as "more than". */
const FILES_COUNTED_MAX = 100_000

export async function examineMachine(dataDir: string, env: Environment): Promise<Finding[]> {
  const { config, finding } = await examineConfig(env)
  return [
    examineNode(),
    finding,
    examineDataFolder(dataDir),
    examineAdminToken(dataDir),
    ...(config === undefined ? [] : [await examineStore(dataDir, config.database), examinePort(dataDir, config)]),
    examineDisk(dataDir),
    ...examineStoreFiles(dataDir),
    await examineCgroups(dataDir),
    examineSizes(dataDir),
  ]
}

function examineNode(): Finding {
  const fits = Number.parseInt(process.versions.node, 10) >= NODE_MAJOR_MIN
  return { area: 'platform', name: 'node', verdict: fits ? 'ok' : 'broken', text: process.version }
}

async function examineConfig(env: Environment): Promise<{ config?: PlatformConfig; finding: Finding }> {
  const about = { area: 'platform', name: 'settings' }
  try {
    const config = await loadConfig({ flags: {}, env })
    return { config, finding: { ...about, verdict: 'ok', text: 'valid' } }
  } catch (thrown) {
    const text = toMoleculeError(thrown).message
    return {
      finding: { ...about, verdict: 'broken', text, remedy: 'correct it, or run "molecule config set KEY VALUE"' },
    }
  }
}

function examineDataFolder(path: string): Finding {
  const about = { area: 'data', name: 'folder' }
  const folder = statSync(path, { throwIfNoEntry: false })
  if (folder === undefined) {
    return {
      ...about,
      verdict: 'note',
      text: `${path} does not exist yet`,
      remedy: 'the first "molecule up" creates it',
    }
  }
  const us = process.getuid?.()
  if (us !== undefined && folder.uid !== us) {
    const text = `${path} belongs to another user (uid ${folder.uid}); "molecule up" refuses it`
    return { ...about, verdict: 'broken', text, remedy: `run Molecule as that user, or chown ${path}` }
  }
  if ((folder.mode & OTHERS_MODE_BITS) === 0)
    return { ...about, verdict: 'ok', text: `${path}, readable by its owner only` }
  const text = `other users of this machine can read ${path}`
  return { ...about, verdict: 'broken', text, remedy: `chmod 700 ${path}` }
}

function examineAdminToken(dataDir: string): Finding {
  const about = { area: 'tokens', name: 'admin token' }
  const path = adminTokenPath(dataDir)
  const file = statSync(path, { throwIfNoEntry: false })
  if (file === undefined)
    return { ...about, verdict: 'note', text: 'there is none yet', remedy: 'the first "molecule up" creates it' }
  if ((file.mode & OTHERS_MODE_BITS) !== 0) {
    const remedy = `chmod 600 ${path}; if others use this machine, remove the file and restart the platform for a new one`
    return { ...about, verdict: 'broken', text: `other users of this machine can read ${path}`, remedy }
  }
  try {
    if (readFileSync(path, 'utf8').trim() !== '')
      return { ...about, verdict: 'ok', text: `${path}, readable by its owner only` }
    return {
      ...about,
      verdict: 'broken',
      text: `${path} is empty`,
      remedy: 'restart the platform; it creates a new one',
    }
  } catch (cause) {
    return { ...about, verdict: 'broken', text: `${path} cannot be read (${(cause as NodeJS.ErrnoException).code})` }
  }
}

async function examineStore(dataDir: string, database: string | undefined): Promise<Finding> {
  return database === undefined ? examineSqlite(dataDir) : await examinePostgres(database)
}

/** Opens the store read-only, because a platform may be writing to it. */
function examineSqlite(dataDir: string): Finding {
  const about = { area: 'store', name: 'embedded' }
  const path = join(dataDir, 'molecule.db')
  if (statSync(path, { throwIfNoEntry: false }) === undefined) {
    return { ...about, verdict: 'note', text: 'there is none yet', remedy: 'the first "molecule up" creates it' }
  }
  try {
    const store = new DatabaseSync(path, { readOnly: true, timeout: 2000 })
    try {
      const count = (table: string, word: string) => {
        const rows = Number(store.prepare(`select count(*) as n from ${table}`).get()?.['n'] ?? 0)
        return `${rows} ${word}${rows === 1 ? '' : 's'}`
      }
      return { ...about, verdict: 'ok', text: `${count('workspace_load', 'workspace')}, ${count('tasks', 'task')}` }
    } finally {
      store.close()
    }
  } catch (cause) {
    const text = `${path} cannot be read: ${cause instanceof Error ? cause.message : String(cause)}`
    return { ...about, verdict: 'broken', text, remedy: 'stop the platform and restore a copy of the file' }
  }
}

const CONNECT_TIMEOUT_MS = 5000

async function examinePostgres(url: string): Promise<Finding> {
  const { default: pg } = await import('pg')
  const { host, pathname } = new URL(url)
  const about = { area: 'store', name: `postgres ${host}${pathname}` }
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: CONNECT_TIMEOUT_MS })
  try {
    await client.connect()
    await client.query('select 1')
    return { ...about, verdict: 'ok', text: 'it answers' }
  } catch (cause) {
    const text = `it cannot be reached: ${cause instanceof Error ? cause.message : String(cause)}`
    return { ...about, verdict: 'broken', text, remedy: 'start it, or correct "database" (DATABASE_URL)' }
  } finally {
    await client.end().catch(() => undefined)
  }
}

function examinePort(dataDir: string, { port, host }: PlatformConfig): Finding {
  const about = { area: 'ports', name: `${host}:${port}` }
  const running = readRunningPlatform(dataDir)
  const holder = findPortHolder(port)
  if (holder === undefined) return { ...about, verdict: 'ok', text: 'free' }
  if (holder.pid === running?.pid)
    return { ...about, verdict: 'ok', text: `held by this platform (process ${holder.pid})` }
  const text = `taken by process ${holder.pid} (${holder.command})`
  if (running !== undefined) return { ...about, verdict: 'note', text: `${text}; this platform is at ${running.url}` }
  return { ...about, verdict: 'broken', text, remedy: `stop it, or "molecule up --port ${port + 1}"` }
}

function examineDisk(dataDir: string): Finding {
  const about = { area: 'disk', name: 'free' }
  const { bavail, bsize } = statfsSync(nearestFolder(dataDir))
  const free = bavail * bsize
  const text = `${formatBytes(free)} free`
  if (free >= FREE_BYTES_MIN) return { ...about, verdict: 'ok', text }
  return {
    ...about,
    verdict: 'broken',
    text,
    remedy: 'free some space: below min-free-space (500MiB) the platform refuses new messages',
  }
}

function nearestFolder(path: string): string {
  let folder = path
  while (statSync(folder, { throwIfNoEntry: false }) === undefined) folder = dirname(folder)
  return folder
}

function examineSizes(dataDir: string): Finding {
  const names = ['molecule.db', 'molecule.db-wal', ...logFilesOf(LOG_FILE), 'workspaces']
  const sizes = names.flatMap((name) => {
    const { bytes, cut } = sizeOf(join(dataDir, name))
    return bytes === 0 ? [] : [`${name} ${cut ? 'more than ' : ''}${formatBytes(bytes)}`]
  })
  return { area: 'data', name: 'sizes', verdict: 'ok', text: sizes.length === 0 ? 'nothing yet' : sizes.join(', ') }
}

function sizeOf(path: string): { bytes: number; cut: boolean } {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats === undefined) return { bytes: 0, cut: false }
  if (!stats.isDirectory()) return { bytes: stats.size, cut: false }
  const entries = readdirSync(path, { recursive: true, withFileTypes: true })
  const counted = entries.slice(0, FILES_COUNTED_MAX).filter((entry) => entry.isFile())
  const sizes = counted.map(
    ({ parentPath, name }) => statSync(join(parentPath, name), { throwIfNoEntry: false })?.size ?? 0,
  )
  return { bytes: sizes.reduce((sum, size) => sum + size, 0), cut: entries.length > FILES_COUNTED_MAX }
}
