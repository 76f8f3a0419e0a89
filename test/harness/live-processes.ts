/**
 * Finds live processes. It reads /proc itself and not through src/process, the code under test: otherwise a bug in how
 * the platform looks for processes could hide itself. A zombie counts as dead.
 */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** For tests that need /proc. */
export const linuxOnly = { skip: process.platform !== 'linux' && 'reads /proc' }

export interface LiveProcess {
  readonly pid: number
  readonly parentPid: number
  readonly commandLine: string
  /** `\0NAME=value\0NAME=value\0` */
  readonly environment: string
}

/** Every live process of the machine except this one. Empty where there is no /proc. */
export function liveProcesses(): LiveProcess[] {
  if (process.platform !== 'linux') return []
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((name) => readProcess(Number(name)) ?? [])
}

export function isAlive(pid: number): boolean {
  return readProcess(pid) !== undefined
}

/** Pids of live processes whose command line contains the text. */
export function pidsWithCommandLine(text: string): number[] {
  return liveProcesses()
    .filter(({ commandLine }) => commandLine.includes(text))
    .map(({ pid }) => pid)
}

/** Without the shells whose command line contains the words of the sleep. */
export const pidsOfSleep = (seconds: string): number[] =>
  liveProcesses()
    .filter(({ commandLine }) => commandLine === `sleep ${seconds}`)
    .map(({ pid }) => pid)

/** A time that only this test sleeps for: `pidsWithCommandLine` then finds only its processes. */
export const uniqueSeconds = (): string => `3${String(Math.random()).slice(2, 8)}`

export interface MarkedProcess extends LiveProcess {
  readonly mark: string
}

/** Live processes of turns whose mark (`<host>:<message>.<epoch>`) begins with the prefix; with `\0` at its end, equals it. */
export function markedProcesses(prefix: string): MarkedProcess[] {
  return liveProcesses().flatMap((found) => {
    const mark = /\0MOLECULE_TURN=([^\0]*)/.exec(found.environment)?.[1]
    return mark !== undefined && `${mark}\0`.startsWith(prefix) ? [{ ...found, mark }] : []
  })
}

export const markedPids = (prefix: string): number[] => markedProcesses(prefix).map(({ pid }) => pid)

/** The memory that a process holds, as the system counts it. */
export function memoryBytes(pid: number): number {
  if (process.platform !== 'linux') {
    return Number(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' })) * 1024
  }
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readProcFile(pid, 'status'))?.[1]) * 1024
}

function readProcess(pid: number): LiveProcess | undefined {
  // After the program's name, which is in parentheses and may contain anything: the state and the parent's pid.
  const [, state, parentPid] = /.*\) (\S) (\d+) /s.exec(readProcFile(pid, 'stat')) ?? []
  if (state === undefined || state === 'Z' || state === 'X') return undefined
  return {
    pid,
    parentPid: Number(parentPid),
    commandLine: readProcFile(pid, 'cmdline').replaceAll('\0', ' ').trim(),
    environment: `\0${readProcFile(pid, 'environ')}`,
  }
}

function readProcFile(pid: number, file: 'stat' | 'status' | 'cmdline' | 'environ'): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    // The process has ended since it was listed.
    return ''
  }
}
