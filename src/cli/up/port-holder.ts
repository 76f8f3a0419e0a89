/**
 * Finds the process that listens on a port, for the error "port taken". Reads /proc, so on systems without it, and for
 * processes of other users, the result is undefined and the error names no process.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

export interface PortHolder {
  readonly pid: number
  /** The command line, cut at 120 characters. */
  readonly command: string
}

export function findPortHolder(port: number): PortHolder | undefined {
  const inodes = new Set([...listeningInodes('/proc/net/tcp', port), ...listeningInodes('/proc/net/tcp6', port)])
  if (inodes.size === 0) return undefined
  for (const entry of readFolder('/proc')) {
    if (!/^\d+$/.test(entry) || !holdsSocket(entry, inodes)) continue
    return { pid: Number(entry), command: commandOf(entry) }
  }
  return undefined
}

const LISTEN_STATE = '0A'
const COMMAND_CHARACTERS_MAX = 120

/** Rows of /proc/net/tcp: `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode ...`. */
function listeningInodes(table: string, port: number): string[] {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const inodes: string[] = []
  for (const row of readText(table).split('\n')) {
    const columns = row.trim().split(/\s+/)
    if (columns[1]?.endsWith(suffix) && columns[3] === LISTEN_STATE && columns[9]) inodes.push(columns[9])
  }
  return inodes
}

function holdsSocket(pid: string, inodes: ReadonlySet<string>): boolean {
  for (const descriptor of readFolder(`/proc/${pid}/fd`)) {
    const target = readLink(`/proc/${pid}/fd/${descriptor}`)
    const inode = /^socket:\[(\d+)\]$/.exec(target)?.[1]
    if (inode && inodes.has(inode)) return true
  }
  return false
}

function commandOf(pid: string): string {
  const command = readText(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim() || readText(`/proc/${pid}/comm`).trim()
  return command.length > COMMAND_CHARACTERS_MAX ? `${command.slice(0, COMMAND_CHARACTERS_MAX)}...` : command
}

// A process may end while /proc is read, and other users' processes cannot be read: each read may find nothing.

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function readFolder(path: string): string[] {
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
