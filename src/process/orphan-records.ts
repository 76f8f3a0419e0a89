/**
 * Orphan records: one small file for each live child, so that a platform that was killed reaps at its next start what
 * it left running. Not synced to disk, because after a crash of the machine there is nothing to reap. Where the mark
 * finds them too, only those that live for a while are recorded: a quick command costs no file. Invariant: nothing is
 * killed by its record unless pid, start time and boot are those recorded.
 */
import { mkdirSync } from 'node:fs'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Clock } from '../clock.ts'
import type { Log } from '../log.ts'
import { killGroup } from './group.ts'
import { bootId, startTimeOf } from './identity.ts'
import { killMarked, markValue } from './marks.ts'
import { readStat } from './proc.ts'

/** A younger orphan is found by its mark; without marks there is nothing to wait for. Measured: 0.2 ms a run, more under load. */
const RECORD_DELAY_MS = process.platform === 'linux' ? 100 : 0

/**
 * Ends what an earlier platform of this owner left running. To be called only while the owner's lock is held, or the
 * children of a platform that is alive would be killed. Resolves to how many were killed, a whole group counting one.
 */
export async function reapOrphans(options: { recordsDir: string; owner: string; log: Log }): Promise<number> {
  const { recordsDir, owner, log } = options
  const files = (await readdir(recordsDir).catch(emptyIfMissing)).filter((name) => /^\d+\.json$/.test(name))
  let killed = 0
  for (const file of files) {
    const record = parseRecord(await readFile(join(recordsDir, file), 'utf8').catch(() => ''))
    if (record && (await isOrphan(record))) {
      const gone = await killGroup({ pid: record.pid, leaderReaped: () => false })
      log.info({ pid: record.pid, mark: record.mark, gone }, 'killed what an earlier run of the platform had left')
      killed += 1
    }
  }
  const prefix = markValue(owner, '')
  const marked = await killMarked((value) => value.startsWith(prefix))
  if (marked.pids.size > 0) log.info({ pids: [...marked.pids] }, 'killed marked processes of an earlier run')
  if (!marked.complete) log.error({ owner }, 'some processes of an earlier run cannot be killed')
  // Last, so that a crash in here finds the records again.
  for (const file of files) await rm(join(recordsDir, file), { force: true })
  return killed + marked.pids.size
}

export interface RecordedChild {
  readonly pid: number
  readonly mark: string
  /** The program alone: arguments may hold secrets. */
  readonly program: string
}

export interface OrphanRecordsOptions {
  readonly clock: Clock
  readonly log: Log
}

export interface OrphanRecords {
  /** Records a child that has just been started; the returned function takes the record away again. */
  add(child: RecordedChild): () => void
  /** Waits for what is being written and removed. */
  close(): Promise<void>
}

export function createOrphanRecords(
  recordsDir: string | undefined,
  { clock, log }: OrphanRecordsOptions,
): OrphanRecords {
  if (recordsDir === undefined) return { add: () => () => undefined, close: () => Promise.resolve() }
  mkdirSync(recordsDir, { recursive: true, mode: 0o700 })
  const boot = bootId()
  const open = new Set<Promise<void>>()
  const track = (work: Promise<void>): Promise<void> => {
    const tracked = work
      .catch((error: unknown) => log.warn({ err: error, recordsDir }, 'an orphan record could not be kept'))
      .finally(() => open.delete(tracked))
    open.add(tracked)
    return tracked
  }
  return {
    add(child) {
      const path = join(recordsDir, `${child.pid}.json`)
      let written: Promise<void> | undefined
      const record = () => {
        written = track(boot.then((id) => writeRecord(path, child, id)))
      }
      const cancel = RECORD_DELAY_MS > 0 ? clock.after(RECORD_DELAY_MS, record) : record()
      return () => {
        cancel?.()
        // In this order, or a record would be written after it was removed, and stay.
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
  readonly mark: string
  readonly command: string
}

async function writeRecord(path: string, { pid, mark, program }: RecordedChild, boot: string): Promise<void> {
  const startTime = await startTimeOf(pid)
  // Ended already: there is nothing left to reap, and no identity to reap it by.
  if (startTime === undefined) return
  const record: OrphanRecord = { pid, startTime, bootId: boot, mark, command: basename(program) }
  await writeFile(path, JSON.stringify(record), { mode: 0o600 })
}

/** A half-written or unreadable record is no record: its process is found by its mark. */
function parseRecord(text: string): OrphanRecord | undefined {
  try {
    const value: Partial<OrphanRecord> = JSON.parse(text)
    const { pid, startTime, bootId: boot, mark, command } = value
    if (!Number.isSafeInteger(pid) || pid === undefined || pid <= 1) return undefined
    if (!startTime || boot === undefined) return undefined
    return { pid, startTime, bootId: boot, mark: mark ?? '', command: command ?? '' }
  } catch {
    return undefined
  }
}

async function isOrphan(record: OrphanRecord): Promise<boolean> {
  if (record.bootId !== (await bootId())) return false
  // A platform restarted from inside a turn lives in that turn's group, and would kill itself with it.
  if (process.platform === 'linux' && (await readStat(process.pid))?.group === record.pid) return false
  return (await startTimeOf(record.pid)) === record.startTime
}

function emptyIfMissing(error: NodeJS.ErrnoException): string[] {
  if (error.code === 'ENOENT') return []
  throw error
}
