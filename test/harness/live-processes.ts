/**
 * What the tests know of processes, by means of their own: they read /proc here and not through the code under test,
 * so that a mistake in how it looks for processes cannot hide itself.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'

/** For tests that need /proc. */
export const linuxOnly = { skip: process.platform !== 'linux' && 'reads /proc' }

/** Pids of live processes whose mark begins so; zombies have no environment any more and do not count. */
export function markedPids(prefix: string): number[] {
  const wanted = `\0MOLECULE_TURN=${prefix}`
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => `\0${readIfThere(`/proc/${name}/environ`)}`.includes(wanted))
    .map(Number)
}

/** Alive, and not a zombie. */
export function isAlive(pid: number): boolean {
  const stat = readIfThere(`/proc/${pid}/stat`)
  return stat !== '' && stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) !== 'Z'
}

/** Waits for what must become true, and fails loudly when it does not; the limit is wide, for a busy machine. */
export async function eventually(what: string, condition: () => boolean, limitMs = 15_000): Promise<void> {
  const deadlineMs = performance.now() + limitMs
  while (!condition()) {
    if (performance.now() > deadlineMs) throw new Error(`did not happen within ${limitMs} ms: ${what}`)
    await delay(10)
  }
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // It ended while we looked.
    return ''
  }
}
