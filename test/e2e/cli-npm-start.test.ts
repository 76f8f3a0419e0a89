/**
 * `npm start` run by a real npm: a signal to npm alone stops the platform and leaves none of its processes, and a Ctrl-C at
 * a terminal, which reaches npm and the platform, counts once.
 */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { readLines } from '../harness/bridge.ts'
import { openProgramAtTerminal, runCommand } from '../harness/command.ts'
import { isAlive, linuxOnly, pidsWithCommandLine } from '../harness/live-processes.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { waitUntil } from '../harness/wait.ts'

const NPM_SETTINGS = { npm_config_offline: 'true', npm_config_update_notifier: 'false' }
const CTRL_C = '\u0003'
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

describe('npm start at a terminal', linuxOnly, () => {
  /** A turn of 3 s that writes a line at its begin and at its end. */
  const SLOW = 'echo begun >> runs; sleep 3; echo ended >> runs; cat'
  const startAtTerminal = async (t: TestContext, dataDir: string, drain: string) => {
    const words = ['npm', 'start', '--', '--port', '0', '--data-dir', dataDir, '--drain', drain]
    const typing = openProgramAtTerminal(t, words, NPM_SETTINGS)
    await typing.waitForScreen(/Molecule runs at http:/)
    const succeed = async (...command: string[]) => {
      const { code, out, err } = await runCommand(command, { env: { MOLECULE_HOME: dataDir } })
      assert.equal(code, 0, err)
      return out.trim()
    }
    return { ...typing, succeed }
  }
  const createSlow = async (succeed: (...command: string[]) => Promise<string>, dataDir: string, cmd: string) => {
    await succeed('workspace', 'create', 'slow', '--runtime', 'exec', '--dir', dataDir, '--set', `cmd=${cmd}`)
    const taskId = await succeed('agent', 'send', 'slow', 'hello', '--async')
    await waitUntil(() => readLines(join(dataDir, 'runs')).includes('begun'), 'the turn runs')
    return taskId
  }

  test('CN-6 one Ctrl-C drains: the running turn finishes and does not run again at the next start', async (t) => {
    const dataDir = temporaryDir(t)
    const first = await startAtTerminal(t, dataDir, '30s')
    const taskId = await createSlow(first.succeed, dataDir, SLOW)
    first.type(CTRL_C)
    await first.waitForScreen(
      /Stopping: waiting up to 30 s for 1 running turn \(slow\); press Ctrl-C again to stop it now\./,
    )
    await first.ended()
    assert.doesNotMatch(first.screen(), /Stopping now/)
    const second = await startAtTerminal(t, dataDir, '30s')
    assert.match(await second.succeed('task', 'show', taskId), /completed.*hello/s)
    assert.deepEqual(readLines(join(dataDir, 'runs')), ['begun', 'ended'])
    second.type(CTRL_C)
    await second.ended()
    assert.match(second.screen(), /Stopping: no turn is running\./)
  })

  test('CN-6 a second Ctrl-C ends the platform at once, and none of its processes is left', async (t) => {
    const dataDir = temporaryDir(t)
    const { type, shown, ended, waitForScreen, succeed } = await startAtTerminal(t, dataDir, '10m')
    await createSlow(succeed, dataDir, 'echo begun >> runs; sleep 1000')
    type(CTRL_C)
    await waitForScreen(/press Ctrl-C again/)
    await waitUntil(() => {
      type(CTRL_C)
      return /Stopping now: messages with unfinished turns will run again/.test(shown())
    }, 'a later Ctrl-C counts')
    await ended()
    assert.deepEqual(pidsWithCommandLine(dataDir), [])
  })
})

/** In a process group of its own, so that the signal reaches npm only, and so that the test can end everything. */
function startNpm(t: TestContext, args: readonly string[]): { npm: ChildProcess; output: () => string } {
  const foreign = /^(npm_|MOLECULE_|DATABASE_URL$)/i
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !foreign.test(name)))
  const npm = spawn('npm', args, {
    cwd: ROOT,
    env: { ...env, ...NPM_SETTINGS },
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
