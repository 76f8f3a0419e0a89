/**
 * Who a process is: its pid alone names nobody, because pids are used again. Pid, start time and boot together name
 * one process for ever. Read when a child is recorded and again before a recorded one is killed.
 */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'
import { readStat } from './proc.ts'

/** When the process began, in the system's own unit; undefined where there is no such process or no way to tell. */
export async function startTimeOf(pid: number): Promise<string | undefined> {
  if (process.platform === 'linux') return (await readStat(pid))?.startTime
  if (process.platform === 'win32') return undefined
  return startTimeByPs(pid)
}

/** Changes with every boot, after which all pids are dealt anew. Empty where start times are full dates anyway. */
export async function bootId(): Promise<string> {
  if (process.platform !== 'linux') return ''
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
}

/** Where there is no /proc: asks `ps`, in a fixed language and zone, so that two answers can be compared. */
export async function startTimeByPs(pid: number): Promise<string | undefined> {
  const env = { LC_ALL: 'C', TZ: 'UTC', PATH: '/bin:/usr/bin' }
  try {
    const { stdout } = await promisify(execFile)('ps', ['-o', 'lstart=', '-p', String(pid)], { env })
    return stdout.trim() || undefined
  } catch {
    // `ps` fails when there is no such process; without `ps` there is no way to tell.
    return undefined
  }
}
