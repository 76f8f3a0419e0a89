/**
 * What Molecule adds to a command: one message through the platform (HTTP, admission, lease, spawn, settle, answer) to
 * `exec cat`, against a bare spawn of the same command. One client, alternating in the same run. The bound holds without
 * cgroups, which most users may not make; what a cgroup for each process costs is printed beside it.
 */
import { spawn } from 'node:child_process'
import { startPlatform } from '../test/harness/platform.ts'
import { alternate, median, percentile } from './measure.ts'

const ROUNDS = 200
const WARM_UP_ROUNDS = 30
const ADDED_MS_MAX = 6
const TEXT = 'hello molecule'

function bareSpawn(): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn('/bin/sh', ['-c', 'cat'], { stdio: ['pipe', 'pipe', 'inherit'] })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    child.on('error', reject)
    child.on('close', () => resolve(output))
    child.stdin.end(TEXT)
  })
}

const platform = await startPlatform({ args: ['--cgroups', 'off'] })
const contained = await startPlatform()
try {
  const [id, containedId] = [await platform.exec('cat'), await contained.exec('cat')]
  const contenders = {
    molecule: () => platform.send(id, TEXT),
    bare: bareSpawn,
    cgroups: () => contained.send(containedId, TEXT),
  }
  await alternate({ rounds: WARM_UP_ROUNDS, contenders })
  const { molecule = [], bare = [], cgroups = [] } = await alternate({ rounds: ROUNDS, contenders })
  const addedMs = median(molecule) - median(bare)
  console.log(`bare spawn of cat     p50 ${median(bare).toFixed(2)} ms  p95 ${percentile(bare, 95).toFixed(2)} ms`)
  console.log(
    `through the platform  p50 ${median(molecule).toFixed(2)} ms  p95 ${percentile(molecule, 95).toFixed(2)} ms`,
  )
  console.log(
    `added at the median   ${addedMs.toFixed(2)} ms (at most ${ADDED_MS_MAX}), ratio ${(median(molecule) / median(bare)).toFixed(2)}`,
  )
  console.log(
    `with --cgroups auto   p50 ${median(cgroups).toFixed(2)} ms  p95 ${percentile(cgroups, 95).toFixed(2)} ms`,
  )
  if (addedMs > ADDED_MS_MAX) process.exitCode = 1
} finally {
  await Promise.all([platform.dispose(), contained.dispose()])
}
