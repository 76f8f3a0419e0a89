/**
 * Kills all processes of a cgroup with its `cgroup.kill` and removes its folder; also finds and kills the cgroups that
 * a crashed platform left. Invariant: only a folder `molecule-<owner>` on a cgroup2 file system is killed after a
 * restart, and never the cgroup in which we run ourselves.
 */
import { statfsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, rmdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '../log.ts'
import { findOwnCgroups } from './find-cgroup.ts'

/** Processes that survive this long are stuck in the kernel; the next start of the platform tries again. */
const KILL_CGROUP_MS_MAX = 2_000
const POLL_MS = 5
const CGROUP2_MAGIC = 0x63677270
const RECORD_FILE = 'cgroup.json'

export const ownerFolder = (owner: string): string => `molecule-${owner.replaceAll(/[^\w.-]/g, '_')}`

/** What the platform of this data folder uses: the folder of its cgroups, or why it has none. */
export interface CgroupRecord {
  readonly path?: string
  readonly reason?: string
}

/** Resolves to whether the folder is gone, and with it every process that was in it or below it. */
export async function killCgroup(path: string): Promise<boolean> {
  const deadlineMs = performance.now() + KILL_CGROUP_MS_MAX
  // `r+` creates nothing. A folder that is gone fails here and is found to be gone below.
  await writeFile(join(path, 'cgroup.kill'), '1', { flag: 'r+' }).catch(() => undefined)
  while (!(await removeCgroup(path, deadlineMs))) {
    if (performance.now() > deadlineMs) return false
    await delay(POLL_MS)
  }
  return true
}

/** Removes a cgroup without processes, and the empty cgroups that an agent made in it. */
async function removeCgroup(path: string, deadlineMs: number): Promise<boolean> {
  if (await removeEmpty(path)) return true
  for (const child of await childFolders(path)) {
    if (performance.now() > deadlineMs) return false
    await removeCgroup(join(path, child), deadlineMs)
  }
  return removeEmpty(path)
}

/** False if the folder still has processes or folders. */
async function removeEmpty(path: string): Promise<boolean> {
  try {
    await rmdir(path)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}

/** Kills the cgroups that an earlier platform of this owner left. Resolves to how many processes it killed. */
export async function reapCgroups(options: { recordsDir: string; owner: string; log: Log }): Promise<number> {
  const { recordsDir, owner, log } = options
  const name = ownerFolder(owner)
  // The earlier platform may have run in another cgroup (another session, another service), so its record counts too.
  const { path } = await readCgroupRecord(recordsDir)
  const recorded = path !== undefined && basename(path) === name ? [path] : []
  const own = (await findOwnCgroups()).map((folder) => join(folder, name))
  let killed = 0
  for (const left of new Set([...recorded, ...own])) {
    if (isCgroup(left)) killed += await reapFolder(left, log)
  }
  await rm(join(recordsDir, RECORD_FILE), { force: true })
  return killed
}

async function reapFolder(path: string, log: Log): Promise<number> {
  const pids: number[] = []
  let isGone = true
  for (const child of await childFolders(path)) {
    const found = await pidsOf(join(path, child))
    // A platform that was restarted inside a turn is in that turn's cgroup, and would kill itself.
    if (found.includes(process.pid)) continue
    pids.push(...found)
    isGone = (await killCgroup(join(path, child))) && isGone
  }
  await removeEmpty(path)
  if (pids.length > 0) log.info({ pids, path }, 'killed processes in cgroups that an earlier run of the platform left')
  if (!isGone) log.error({ path }, 'some cgroups of an earlier run of the platform cannot be removed')
  return pids.length
}

async function pidsOf(path: string): Promise<number[]> {
  const text = await readFile(join(path, 'cgroup.procs'), 'utf8').catch(() => '')
  const pids = text.split('\n').filter(Boolean).map(Number)
  for (const child of await childFolders(path)) pids.push(...(await pidsOf(join(path, child))))
  return pids
}

async function childFolders(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch(() => [])
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name)
}

function isCgroup(path: string): boolean {
  try {
    return statfsSync(path).type === CGROUP2_MAGIC
  } catch {
    return false
  }
}

/** Empty if the platform has written none, or an unreadable one. */
export async function readCgroupRecord(recordsDir: string): Promise<CgroupRecord> {
  try {
    const { path, reason }: Record<string, unknown> = JSON.parse(await readFile(join(recordsDir, RECORD_FILE), 'utf8'))
    return { ...(typeof path === 'string' && { path }), ...(typeof reason === 'string' && { reason }) }
  } catch {
    return {}
  }
}

export async function writeCgroupRecord(recordsDir: string, record: CgroupRecord): Promise<void> {
  await mkdir(recordsDir, { recursive: true, mode: 0o700 })
  await writeFile(join(recordsDir, RECORD_FILE), JSON.stringify(record), { mode: 0o600 })
}
