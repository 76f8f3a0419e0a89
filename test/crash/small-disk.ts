/**
 * A disk that is soon full, for one platform alone. Where the system lets us, it is a real one: a small tmpfs in a mount
 * namespace of the platform's own, which nobody else sees and which goes with the process. Elsewhere no file may grow
 * beyond a limit, which is lifted when there is to be room again.
 */
import { execFileSync } from 'node:child_process'
import { truncateSync } from 'node:fs'
import { join } from 'node:path'

export interface SmallDisk {
  readonly kind: 'tmpfs' | 'file size limit'
  /** What the platform's command line is put behind. */
  readonly wrapper: readonly string[]
  /** Makes room, from outside. */
  makeRoom(pid: number): void
}

const DISK_BYTES = 16 * 1024 * 1024
/** Somebody else's file on the same disk, which is deleted in the end. */
const BALLAST_BYTES = 6 * 1024 * 1024
const BALLAST = 'ballast'
const BLOCK_BYTES = 512

/** `$0` is the data folder. */
const MOUNTING = `mount -t tmpfs -o size=${DISK_BYTES},mode=700 tmpfs "$0" &&
head -c ${BALLAST_BYTES} /dev/zero > "$0/${BALLAST}" && exec "$@"`
const LIMITING = `ulimit -S -f ${(DISK_BYTES - BALLAST_BYTES) / BLOCK_BYTES} && exec "$@"`

export function findSmallDisk(dataDir: string): SmallDisk {
  for (const flags of ['-m', '-rm']) {
    if (!canMount(flags, dataDir)) continue
    return {
      kind: 'tmpfs',
      wrapper: ['unshare', flags, 'sh', '-c', MOUNTING, dataDir],
      makeRoom: (pid) => truncateSync(join(`/proc/${pid}/root${dataDir}`, BALLAST)),
    }
  }
  return {
    kind: 'file size limit',
    wrapper: ['sh', '-c', LIMITING, dataDir],
    makeRoom: (pid) => run(['prlimit', '--pid', String(pid), '--fsize=unlimited']),
  }
}

function canMount(flags: string, dataDir: string): boolean {
  try {
    run(['unshare', flags, 'sh', '-c', MOUNTING, dataDir, 'true'])
    return true
  } catch {
    // Not allowed here, or no such program.
    return false
  }
}

function run(words: readonly string[]): void {
  execFileSync('sh', ['-c', '"$@"', 'sh', ...words], { stdio: 'ignore' })
}
