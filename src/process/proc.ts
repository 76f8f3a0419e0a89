/**
 * Reading /proc, Linux only: one file of one process, or of every process of the machine. The rest of the house asks
 * who is alive, in which group and with which mark; this is how it is looked up, without ever blocking the platform.
 */
import { close, open, read } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'

/** Processes looked at together: measured 10 ms for 577 processes, against 23 ms with 4. */
const SCAN_WIDTH = 16
const FILE_BYTES = 64 * 1024
/** On a machine that starts processes all the time there are always new ones. */
const LISTINGS_MAX = 10

/**
 * Shows each process's file; one that has ended, or is not ours to read, shows as empty. Those that appear meanwhile
 * are shown too: a process that hands over to a child and leaves would else always be a step ahead of a slow scan.
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
  // One iterator for all workers, so that each pid is taken once.
  const pids = names.values()
  const work = async () => {
    const buffer = Buffer.allocUnsafe(FILE_BYTES)
    for (const pid of pids) visit(Number(pid), await readInto(buffer, `/proc/${pid}/${file}`))
  }
  await Promise.all(Array.from({ length: Math.min(SCAN_WIDTH, names.length) }, work))
}

export interface ProcessStat {
  /** `Z` is a zombie: dead, and only not yet waited for. */
  readonly state: string
  readonly group: number
  /** Clock ticks since boot. */
  readonly startTime: string
}

/** Undefined for a process that is not there. */
export async function readStat(pid: number): Promise<ProcessStat | undefined> {
  return parseStat(await readFile(`/proc/${pid}/stat`).catch(() => Buffer.alloc(0)))
}

export function parseStat(content: Buffer): ProcessStat | undefined {
  if (content.length === 0) return undefined
  const line = content.toString('latin1')
  // The second field is the program's name, in brackets and free to contain spaces and brackets: count from its end.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ')
  const [state = '', , group = '0'] = fields
  return { state, group: Number(group), startTime: fields[19] ?? '' }
}

/**
 * Open, read, close with callbacks: a third of the time of `readFile` from fs/promises, and a scan does it for every
 * process. Never synchronous: reading the environment of a process that is stuck in the kernel can hang.
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
