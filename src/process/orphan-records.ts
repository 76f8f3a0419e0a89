/**
 * Orphan records: one small file for each live child, so that a platform that was killed finds its children at the next
 * start and kills them. They are not synced to disk, because a crash of the machine leaves no process. On Linux, where
 * the mark finds children too, only those that live for 100 ms are recorded, so that a quick command costs no file.
 * Invariant: a process is killed by its record only if owner, pid, start time and boot match it.
 */
import { mkdirSync } from 'node:fs'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import { killGroup } from './group.ts'
import { bootId, startTimeOf } from './identity.ts'
import { reapCgroups } from './kill-cgroup.ts'
import { killMarked, markValue } from './marks.ts'
import { readStat } from './proc.ts'

/** A younger orphan is found by its mark. The delay saves 0.2 ms a run (measured), more under load. */
const RECORD_DELAY_MS = process.platform === 'linux' ? 100 : 0

/**
 * Kills what an earlier platform of this owner left running. Call it only while the owner's lock is held; otherwise it
 * kills the children of a live platform. Resolves to how many were killed; a recorded group counts as one.
 */
export async function reapOrphans(options: { recordsDir: string; owner: string; log: Log }): Promise<number> {
  const { recordsDir, owner, log } = options
  const files = (await readdir(recordsDir).catch(emptyIfMissing)).filter((name) => /^\d+\.json$/.test(name))
  let killed = 0
  for (const file of files) {
    const record = parseRecord(await readFile(join(recordsDir, file), 'utf8').catch(() => ''))
    // A copied data folder holds the records of its original, whose processes are alive.
    if (record && (record.owner ?? owner) === owner && (await isOrphan(record))) {
      const gone = await killGroup({ pid: record.pid, leaderReaped: () => false })
      log.info(
        { pid: record.pid, mark: record.mark, gone },
        'killed a process group that an earlier run of the platform left',
      )
      killed += 1
    }
  }
  const prefix = markValue(owner, '')
  const marked = await killMarked((value) => value.startsWith(prefix))
  if (marked.pids.size > 0)
    log.info({ pids: [...marked.pids] }, 'killed marked processes that an earlier run of the platform left')
  if (!marked.complete) log.error({ owner }, 'some processes of an earlier run of the platform cannot be killed')
  // Last, so that it counts only processes that neither a record nor a mark found.
  const inCgroups = await reapCgroups(options)
  // Removed last, so that a crash before this line leaves the records for the next start.
  for (const file of files) await rm(join(recordsDir, file), { force: true })
  return killed + marked.pids.size + inCgroups
}

export interface RecordedChild {
  readonly pid: number
  readonly mark: string
  /** The program without its arguments, which may hold secrets. */
  readonly program: string
}

export interface OrphanRecordsOptions {
  readonly owner: string
  readonly clock: Clock
  readonly log: Log
}

export interface OrphanRecords {
  /** Records a child that has just started. The returned function removes the record. */
  add(child: RecordedChild): () => void
  /** Waits for writes and removals in flight. */
  close(): Promise<void>
}

export function createOrphanRecords(
  recordsDir: string | undefined,
  { owner, clock, log }: OrphanRecordsOptions,
): OrphanRecords {
  if (recordsDir === undefined) return { add: () => () => undefined, close: () => Promise.resolve() }
  mkdirSync(recordsDir, { recursive: true, mode: 0o700 })
  const boot = bootId()
  const open = new Set<Promise<void>>()
  const track = (work: Promise<void>): Promise<void> => {
    const tracked = work
      .catch((error: unknown) =>
        log.warn({ err: error, recordsDir }, 'an orphan record could not be written or removed'),
      )
      .finally(() => open.delete(tracked))
    open.add(tracked)
    return tracked
  }
  return {
    add(child) {
      const path = join(recordsDir, `${child.pid}.json`)
      let written: Promise<void> | undefined
      const record = () => {
        written = track(boot.then((id) => writeRecord(path, { ...child, owner }, id)))
      }
      const cancel = RECORD_DELAY_MS > 0 ? clock.after(RECORD_DELAY_MS, record) : record()
      return () => {
        cancel?.()
        // Waits for the write: a record that is written after its removal would stay.
        if (written !== undefined) void track(written.then(() => rm(path, { force: true })))
      }
    },
    async close() {
      while (open.size > 0) await Promise.all(open)
    },
  }
}

interface OrphanRecord {
  readonly pid: number
  readonly startTime: string
  readonly bootId: string
  /** Absent in records of earlier versions. */
  readonly owner?: string
  readonly mark: string
  readonly command: string
}

async function writeRecord(
  path: string,
  { pid, owner, mark, program }: RecordedChild & { readonly owner: string },
  boot: string,
): Promise<void> {
  const startTime = await startTimeOf(pid)
  // The child has already ended.
  if (startTime === undefined) return
  const record: OrphanRecord = { pid, startTime, bootId: boot, owner, mark, command: basename(program) }
  await writeFile(path, JSON.stringify(record), { mode: 0o600 })
}

/** Undefined for a half-written or unreadable record; its process is found by its mark. */
function parseRecord(text: string): OrphanRecord | undefined {
  try {
    const value: Partial<OrphanRecord> = JSON.parse(text)
    const { pid, startTime, bootId: boot, owner, mark, command } = value
    if (!Number.isSafeInteger(pid) || pid === undefined || pid <= 1) return undefined
    if (!startTime || boot === undefined) return undefined
    const rest = { mark: mark ?? '', command: command ?? '' }
    return { pid, startTime, bootId: boot, owner, ...rest }
  } catch {
    return undefined
  }
}

async function isOrphan(record: OrphanRecord): Promise<boolean> {
  if (record.bootId !== (await bootId())) return false
  // A platform that was restarted inside a turn is in that turn's group, and would kill itself with the group.
  if (process.platform === 'linux' && (await readStat(process.pid))?.group === record.pid) return false
  return (await startTimeOf(record.pid)) === record.startTime
}

function emptyIfMissing(error: NodeJS.ErrnoException): string[] {
  if (error.code === 'ENOENT') return []
  throw error
}
