/**
 * Which processes of a platform's turns are alive, by the mark in their environment. A mark names one lease
 * (`<host>:<message>.<epoch>`), so a mark seen on the day a platform died can belong to no later life.
 */
import { readdirSync, readFileSync } from 'node:fs'

export interface MarkedProcess {
  readonly pid: number
  readonly mark: string
  readonly command: string
}

/** Live processes of this host's turns; a zombie has no environment any more and does not count. */
export function findMarkedProcesses(host: string): MarkedProcess[] {
  if (process.platform !== 'linux') return []
  const found: MarkedProcess[] = []
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const [variable] = `\0${readIfThere(`/proc/${name}/environ`)}`.split('\0MOLECULE_TURN=').slice(1)
    const mark = variable?.split('\0')[0]
    if (mark === undefined || !mark.startsWith(`${host}:`)) continue
    found.push({ pid: Number(name), mark, command: readIfThere(`/proc/${name}/cmdline`).replaceAll('\0', ' ').trim() })
  }
  return found
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // It ended while we looked.
    return ''
  }
}
