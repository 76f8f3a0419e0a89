/**
 * Identifies a process by pid, start time and boot. The pid alone is not enough, because the system reuses pids. Read
 * when a child is recorded, and again before a recorded process is killed.
 */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { readStat } from './proc.ts'

/** The start time in the system's own unit; undefined if the process does not exist or the system cannot tell. */
export async function startTimeOf(pid: number): Promise<string | undefined> {
  if (process.platform === 'linux') return (await readStat(pid))?.startTime
  if (process.platform === 'win32') return undefined
  return startTimeByPs(pid)
}

/** Changes with every boot, because start times count from it. Empty on systems whose start times are full dates. */
export async function bootId(): Promise<string> {
  if (process.platform !== 'linux') return ''
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
}

/** For systems without /proc: asks `ps`, in a fixed language and time zone, so that two answers can be compared. */
export async function startTimeByPs(pid: number): Promise<string | undefined> {
  const env = { LC_ALL: 'C', TZ: 'UTC', PATH: '/bin:/usr/bin' }
  try {
    const { stdout } = await promisify(execFile)('ps', ['-o', 'lstart=', '-p', String(pid)], { env })
    return stdout.trim() || undefined
  } catch {
    // `ps` fails if the process does not exist; without `ps` the start time is unknown.
    return undefined
  }
}
