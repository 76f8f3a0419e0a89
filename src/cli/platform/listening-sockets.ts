/**
 * Finds the TCP sockets that listen on a port of this machine, and the processes that hold them. Reads /proc; systems
 * without it ask `lsof`. A process of another user cannot be looked into: its sockets are seen, its pid is not.
 */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { promisify } from 'node:util'

export interface ListeningSocket {
  /** The local address as /proc writes it: hexadecimal, each group of four bytes in the machine's byte order. */
  readonly address: string
  /** The user who opened it. */
  readonly uid: number
  readonly inode: string
}

const LISTEN_STATE = '0A'

/** Empty on systems without /proc. */
export function listeningSockets(port: number): ListeningSocket[] {
  return ['/proc/net/tcp', '/proc/net/tcp6'].flatMap((table) => readSockets(table, port))
}

/** Rows of /proc/net/tcp: `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode ...`. */
function readSockets(table: string, port: number): ListeningSocket[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  return readText(table)
    .split('\n')
    .map((row) => row.trim().split(/\s+/))
    .filter((columns) => columns[1]?.endsWith(suffix) && columns[3] === LISTEN_STATE && columns[9])
    .map((columns) => ({
      address: columns[1]?.slice(0, -suffix.length) ?? '',
      uid: Number(columns[7]),
      inode: columns[9] ?? '',
    }))
}

/** Inodes of the sockets that the process holds. Empty for a process of another user, or one that has ended. */
export function socketsOf(pid: number | string): ReadonlySet<string> {
  const inodes = readFolder(`/proc/${pid}/fd`).flatMap((descriptor) => {
    const inode = /^socket:\[(\d+)\]$/.exec(readLink(`/proc/${pid}/fd/${descriptor}`))?.[1]
    return inode === undefined ? [] : [inode]
  })
  return new Set(inodes)
}

/**
 * True for a process that was killed and has not ended. Its first thread holds no file any more, while its socket listens
 * until its other threads have ended, which takes long on a busy machine.
 */
export const isEnding = (pid: number): boolean => readFolder(`/proc/${pid}/fd`).length === 0

const LSOF_MS_MAX = 5000

/** Pids that listen on the port, as far as this user can see them. Empty without `lsof`. */
export async function listeningPidsByLsof(port: number): Promise<number[]> {
  const env = { LC_ALL: 'C', PATH: '/usr/sbin:/usr/bin:/bin' }
  try {
    const args = ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-Fp']
    const { stdout } = await promisify(execFile)('lsof', args, { env, timeout: LSOF_MS_MAX })
    return [...stdout.matchAll(/^p(\d+)$/gm)].map(([, pid]) => Number(pid))
  } catch {
    // `lsof` fails if nothing listens.
    return []
  }
}

// A process may end while /proc is read, and other users' processes cannot be read: each read may find nothing.

export function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

export function readFolder(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

function readLink(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
