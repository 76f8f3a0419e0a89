/**
 * Cgroups for tests. It finds them itself and not through src/process, the code under test. Where the machine shows
 * none and the test may mount one (root on Linux), it mounts one in a temporary folder until this process ends.
 */
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { waitUntil } from '../wait.ts'

/** A folder in which this process may make cgroups and move processes; undefined where there is none. */
export function cgroupFolder(): string | undefined {
  const found = usableFolder()
  if (found !== undefined || process.platform !== 'linux' || process.getuid?.() !== 0) return found
  const dir = mkdtempSync(join(tmpdir(), 'molecule-cgroup-'))
  try {
    execFileSync('mount', ['-t', 'cgroup2', 'none', dir], { stdio: 'ignore' })
  } catch {
    // This system does not allow it, as in most containers.
    rmdirSync(dir)
    return undefined
  }
  // Not `t.after`, which runs in the order of registration: the folders in the mount are removed later.
  process.once('exit', () => {
    execFileSync('umount', ['--lazy', dir])
    rmdirSync(dir)
  })
  return usableFolder()
}

function usableFolder(): string | undefined {
  if (process.platform !== 'linux') return undefined
  const [, own] = /^0::(.*)$/m.exec(readFileSync('/proc/self/cgroup', 'utf8')) ?? []
  const mounts = readFileSync('/proc/self/mounts', 'utf8').matchAll(/^\S+ (\S+) cgroup2 /gm)
  for (const [, mountPoint = ''] of mounts) {
    const folder = join(mountPoint, own ?? '')
    if (isUsable(folder)) return folder
  }
  return undefined
}

function isUsable(folder: string): boolean {
  const probe = join(folder, `molecule-test-${process.pid}`)
  try {
    mkdirSync(probe)
  } catch {
    return false
  }
  try {
    execFileSync('/bin/sh', ['-c', 'echo $$ >"$0"', join(probe, 'cgroup.procs')], { stdio: 'ignore' })
    return existsSync(join(probe, 'cgroup.kill'))
  } catch {
    return false
  } finally {
    rmdirSync(probe)
  }
}

/** The cgroups that a platform, or the bridges of this data folder, have recorded. */
export function recordedCgroups(dataDir: string): string[] {
  return globSync('{processes,bridge/*/*/processes}/cgroup.json', { cwd: dataDir }).flatMap((file) => {
    try {
      const { path } = JSON.parse(readFileSync(join(dataDir, file), 'utf8'))
      return typeof path === 'string' ? [path] : []
    } catch {
      // Killed while it wrote the record.
      return []
    }
  })
}

/** For what was killed and never starts again: kills its processes and removes its folders. */
export async function removeCgroups(paths: readonly string[]): Promise<void> {
  for (const path of paths.filter((one) => existsSync(one))) {
    writeFileSync(join(path, 'cgroup.kill'), '1')
    await waitUntil(() => removeFolder(path), `${path} is removed`)
  }
}

function removeFolder(path: string): boolean {
  try {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (entry.isDirectory()) removeFolder(join(path, entry.name))
    }
    rmdirSync(path)
  } catch {
    // Its processes are not dead yet.
  }
  return !existsSync(path)
}
