/**
 * Finds the process that listens on a port, for the error "port taken". Reads /proc, so on systems without it, and for
 * processes of other users, the result is undefined and the error names no process.
 */
import { shorten } from '../../truncate.ts'
import { listeningSockets, readFolder, readText, socketsOf } from './listening-sockets.ts'

export interface PortHolder {
  readonly pid: number
  /** The command line, cut at 120 characters. */
  readonly command: string
}

export function findPortHolder(port: number): PortHolder | undefined {
  const sockets = listeningSockets(port)
  if (sockets.length === 0) return undefined
  for (const entry of readFolder('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    const held = socketsOf(entry)
    if (sockets.some(({ inode }) => held.has(inode))) return { pid: Number(entry), command: commandOf(entry) }
  }
  return undefined
}

const COMMAND_CHARACTERS_MAX = 120

function commandOf(pid: string): string {
  const command = readText(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim() || readText(`/proc/${pid}/comm`).trim()
  return shorten(command, COMMAND_CHARACTERS_MAX)
}
