/** `npm start` run by a real npm: a signal to npm alone stops the platform and leaves none of its processes. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { isAlive, linuxOnly, pidsWithCommandLine } from '../harness/live-processes.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { waitUntil } from '../harness/wait.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal} to npm alone stops the platform that npm start runs`, linuxOnly, async (t) => {
    const dataDir = temporaryDir(t)
    const { npm, output } = startNpm(t, ['start', '--', '--port', '0', '--data-dir', dataDir])
    await waitUntil(() => /runs at http:/.test(output()) || npm.exitCode !== null, 'the platform listens')
    const pids = pidsWithCommandLine(dataDir)
    assert.ok(pids.length >= 2, `npm and the platform have the folder among their arguments: ${output()}`)
    npm.kill(signal)
    await waitUntil(() => !pids.some(isAlive), `npm and the platform (${pids.join(', ')}) end`)
    assert.match(output(), /Stopping: /)
    assert.deepEqual(pidsWithCommandLine(dataDir), [])
  })
}

/** In a process group of its own, so that the signal reaches npm only, and so that the test can end everything. */
function startNpm(t: TestContext, args: readonly string[]): { npm: ChildProcess; output: () => string } {
  const foreign = /^(npm_|MOLECULE_|DATABASE_URL$)/i
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign.test(name)))
  const npm = spawn('npm', args, {
    cwd: ROOT,
    env: { ...env, npm_config_offline: 'true', npm_config_update_notifier: 'false' },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  let output = ''
  npm.stdout.on('data', (chunk) => (output += chunk))
  npm.stderr.on('data', (chunk) => (output += chunk))
  t.after(() => {
    try {
      process.kill(-(npm.pid as number), 'SIGKILL')
    } catch {
      // The group is gone: everything ended by itself.
    }
  })
  return { npm, output: () => output }
}
