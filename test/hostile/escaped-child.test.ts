/** A turn starts a process that hides: a session of its own, an empty environment. It must not outlive the turn. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { runCommand } from '../harness/command.ts'
import { linuxOnly, liveProcesses, uniqueSeconds } from '../harness/live-processes.ts'
import { cgroupFolder } from '../harness/measures/cgroup.ts'
import {
  getTask,
  type PlatformUnderTest,
  replyText,
  sendWithoutWaiting,
  startPlatformFor,
  waitForFinalTask,
} from '../harness/platform.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { waitUntil } from '../harness/wait.ts'

/** Kills whatever a failed test, or a system without cgroups, has left. */
function sleepers(t: TestContext) {
  const seconds = uniqueSeconds()
  const pids = () =>
    liveProcesses()
      .filter(({ commandLine }) => commandLine === `/bin/sleep ${seconds}`)
      .map(({ pid }) => pid)
  t.after(() => {
    for (const pid of pids()) process.kill(pid, 'SIGKILL')
  })
  const script = `/bin/sleep ${seconds} & /bin/sleep ${seconds} & echo >ready-${seconds}; wait`
  const hidden = `env -i setsid /bin/sh -c '${script}' >/dev/null 2>&1 </dev/null &`
  // The command goes on only when the hidden processes are there.
  const started = `while [ ! -e ready-${seconds} ]; do sleep 0.02; done`
  return { pids, line: `${hidden} ${started}` }
}

async function cgroupFinding(platform: PlatformUnderTest): Promise<string> {
  const { out } = await runCommand(['doctor', '-o', 'json'], {
    env: { MOLECULE_HOME: platform.dataDir, PATH: '/usr/bin:/bin' },
  })
  const findings = JSON.parse(out) as { name: string; verdict: string; text: string }[]
  return findings
    .filter(({ name }) => name === 'cgroups')
    .map(({ verdict, text }) => `${verdict}: ${text}`)
    .join()
}

test('RE-5 RE-9 a process that drops its mark and its session is gone after its turn', linuxOnly, async (t) => {
  const hasCgroups = cgroupFolder() !== undefined
  const platform = await startPlatformFor(t)
  const { pids, line } = sleepers(t)
  const id = await platform.exec(`${line}; echo hidden`)
  assert.equal(replyText(await platform.send(id, 'go')), 'hidden\n')
  if (!hasCgroups) {
    t.diagnostic('this machine lets us make no cgroup: only what doctor says is checked')
    assert.match(await cgroupFinding(platform), /^note: not used \(.+\): a process that leaves its group/)
    return
  }
  assert.deepEqual(pids(), [])
  assert.match(await cgroupFinding(platform), /^ok: used: each agent process has its own cgroup/)

  const other = sleepers(t)
  const long = await platform.exec(`${other.line}; sleep 300`)
  const task = await sendWithoutWaiting(platform, long, 'go')
  await waitUntil(() => other.pids().length === 2, 'the hidden processes are there')
  await platform.rpc(long, 'CancelTask', { id: task })
  assert.equal((await waitForFinalTask(platform, long, task)).status.state, 'TASK_STATE_CANCELED')
  await waitUntil(() => other.pids().length === 0, 'the hidden processes are gone')
})

test(
  'RE-5 RE-9 a process that hides is killed by the restart after a crash, and its cgroup is removed',
  linuxOnly,
  async (t) => {
    if (cgroupFolder() === undefined) return t.skip('this machine lets us make no cgroup')
    const dataDir = temporaryDir(t)
    const first = await startPlatformFor(t, { dataDir })
    const { pids, line } = sleepers(t)
    const id = await first.exec(`[ -e stop ] || { touch stop; ${line}; sleep 300; }; echo again`, {
      runtime_config: { timeout: 'none' },
    })
    const task = await sendWithoutWaiting(first, id, 'go')
    await waitUntil(() => pids().length === 2, 'the hidden processes are there')
    const { path } = JSON.parse(readFileSync(join(dataDir, 'processes', 'cgroup.json'), 'utf8'))
    const before = readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isDirectory())
    await first.stop('SIGKILL')
    assert.equal(pids().length, 2, 'they survive the crash')

    const second = await startPlatformFor(t, { dataDir })
    assert.deepEqual(pids(), [])
    for (const { name } of before) assert.ok(!existsSync(join(path, name)))
    await waitForFinalTask(second, id, task)
    assert.equal(replyText(await getTask(second, id, task)), 'again\n')
    await second.stop()
    assert.ok(!existsSync(path), 'a platform that stops removes its cgroups')
  },
)

test('RE-5 with --cgroups off the platform and its doctor say that none are used', linuxOnly, async (t) => {
  const platform = await startPlatformFor(t, { args: ['--cgroups', 'off'] })
  assert.match(await cgroupFinding(platform), /^note: not used \(the setting cgroups is off\)/)
})
