/**
 * A small disk for one platform. Where the system allows it, this is a real disk: a tmpfs in a mount namespace of the
 * platform's process, which ends with it. Elsewhere it is a limit on the size of each file, which is removed later.
 */
import { execFileSync } from 'node:child_process'
import { truncateSync } from 'node:fs'
import { join } from 'node:path'

export interface SmallDisk {
  readonly kind: 'tmpfs' | 'file size limit'
  /** The command that runs the platform's command line. */
  readonly wrapper: readonly string[]
  /** Frees space, from outside the platform. */
  makeRoom(pid: number): void
}

const DISK_BYTES = 16 * 1024 * 1024
/** Another file on the same disk, which `makeRoom` empties. */
const BALLAST_BYTES = 6 * 1024 * 1024
const BALLAST = 'ballast'
const BLOCK_BYTES = 512

/** `$0` is the data folder. */
const MOUNT_SCRIPT = `mount -t tmpfs -o size=${DISK_BYTES},mode=700 tmpfs "$0" &&
head -c ${BALLAST_BYTES} /dev/zero > "$0/${BALLAST}" && exec "$@"`
const LIMIT_SCRIPT = `ulimit -S -f ${(DISK_BYTES - BALLAST_BYTES) / BLOCK_BYTES} && exec "$@"`

export function findSmallDisk(dataDir: string): SmallDisk {
  for (const flags of ['-m', '-rm']) {
    if (!canMount(flags, dataDir)) continue
    return {
      kind: 'tmpfs',
      wrapper: ['unshare', flags, 'sh', '-c', MOUNT_SCRIPT, dataDir],
      makeRoom: (pid) => truncateSync(join(`/proc/${pid}/root${dataDir}`, BALLAST)),
    }
  }
  return {
    kind: 'file size limit',
    wrapper: ['sh', '-c', LIMIT_SCRIPT, dataDir],
    makeRoom: (pid) => run(['prlimit', '--pid', String(pid), '--fsize=unlimited']),
  }
}

function canMount(flags: string, dataDir: string): boolean {
  try {
    run(['unshare', flags, 'sh', '-c', MOUNT_SCRIPT, dataDir, 'true'])
    return true
  } catch {
    // Not allowed here, or the program is missing.
    return false
  }
}

function run(command: readonly string[]): void {
  execFileSync('sh', ['-c', '"$@"', 'sh', ...command], { stdio: 'ignore' })
}
