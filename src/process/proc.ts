/**
 * Reads /proc (Linux only): one file of one process, or of every process of the machine. The other files use it to look
 * up which process is alive, in which group and with which mark. It never blocks the platform.
 */
import { close, open, read } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'

/** Parallel reads. Measured: 10 ms for 577 processes, against 23 ms with 4. */
const SCAN_WIDTH = 16
const FILE_BYTES = 64 * 1024
/** A scan ends after this many listings, because a busy machine always has new processes. */
const LISTINGS_MAX = 10

/**
 * Visits each process with the content of its file, empty if the process has ended or may not be read. New processes
 * are visited too: otherwise a process that forks a child and exits, again and again, would always escape a slow scan.
 */
export async function scanProcesses(file: 'environ' | 'stat', visit: VisitProcess): Promise<void> {
  const seen = new Set<string>()
  for (let listing = 0; listing < LISTINGS_MAX; listing += 1) {
    const names = await readdir('/proc')
    const fresh = names.filter((name) => /^\d+$/.test(name) && !seen.has(name))
    if (fresh.length === 0) return
    for (const pid of fresh) seen.add(pid)
    await visitAll(fresh, file, visit)
  }
}

type VisitProcess = (pid: number, content: Buffer) => void

async function visitAll(names: readonly string[], file: string, visit: VisitProcess): Promise<void> {
  // All workers share one iterator, so that each pid is taken once.
  const pids = names.values()
  const work = async () => {
    const buffer = Buffer.allocUnsafe(FILE_BYTES)
    for (const pid of pids) visit(Number(pid), await readInto(buffer, `/proc/${pid}/${file}`))
  }
  await Promise.all(Array.from({ length: Math.min(SCAN_WIDTH, names.length) }, work))
}

export interface ProcessStat {
  /** `Z` is a zombie: dead, but not yet reaped. */
  readonly state: string
  readonly group: number
  /** Clock ticks since boot. */
  readonly startTime: string
}

/** Undefined for a process that does not exist. */
export async function readStat(pid: number): Promise<ProcessStat | undefined> {
  return parseStat(await readFile(`/proc/${pid}/stat`).catch(() => Buffer.alloc(0)))
}

export function parseStat(content: Buffer): ProcessStat | undefined {
  if (content.length === 0) return undefined
  const line = content.toString('latin1')
  // The second field is the program's name in brackets. It may contain spaces and brackets, so count from its end.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
  const [state = '', , group = '0'] = fields
  return { state, group: Number(group), startTime: fields[19] ?? '' }
}

/**
 * Open, read and close with callbacks take a third of the time of `readFile` from fs/promises, and a scan does it for
 * every process. It is not synchronous, because reading the environment of a process that is stuck in the kernel can
 * hang.
 */
function readInto(buffer: Buffer, path: string): Promise<Buffer> {
  return new Promise((resolve) => {
    open(path, 'r', (openError, file) => {
      if (openError) return resolve(Buffer.alloc(0))
      read(file, buffer, 0, buffer.length, null, (readError, bytes) => {
        const content = readError ? Buffer.alloc(0) : buffer.subarray(0, bytes)
        const isWhole = bytes < buffer.length
        close(file, () => resolve(isWhole ? content : readFile(path).catch(() => content)))
      })
    })
  })
}
