/**
 * Reading /proc, Linux only: one file of one process, or of every process of the machine. The rest of the house asks
 * who is alive, in which group and with which mark; this is how it is looked up, without ever blocking the platform.
 */
import { close, open, read } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'

/** Processes looked at together: measured 10 ms for 577 processes, against 23 ms with 4. */
const SCAN_WIDTH = 16
const FILE_BYTES = 64 * 1024

/** Shows each process's file; one that has ended, or is not ours to read, shows as empty. */
export async function scanProcesses(
  file: 'environ' | 'stat',
  visit: (pid: number, content: Buffer) => void,
): Promise<void> {
  const names = await readdir('/proc')
  // One iterator for all workers, so that each pid is taken once.
  const pids = names.filter((name) => /^\d+$/.test(name)).values()
  const work = async () => {
    const buffer = Buffer.allocUnsafe(FILE_BYTES)
    for (const pid of pids) visit(Number(pid), await readInto(buffer, `/proc/${pid}/${file}`))
  }
  await Promise.all(Array.from({ length: SCAN_WIDTH }, work))
}

export interface Stat {
  /** `Z` is a zombie: dead, and only not yet waited for. */
  readonly state: string
  readonly group: number
  /** Clock ticks since boot. */
  readonly startTime: string
}

/** Undefined for a process that is not there. */
export async function readStat(pid: number): Promise<Stat | undefined> {
  return parseStat(await readFile(`/proc/${pid}/stat`).catch(() => Buffer.alloc(0)))
}

export function parseStat(content: Buffer): Stat | undefined {
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
