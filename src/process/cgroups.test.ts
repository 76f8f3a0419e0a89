import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { isAlive, liveProcesses, uniqueSeconds } from '../../test/harness/live-processes.ts'
import { cgroupFolder } from '../../test/harness/measures/cgroup.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT, temporaryDir } from '../../test/harness/process-harness.ts'
import { waitUntil } from '../../test/harness/wait.ts'
import { silentLog } from '../log.ts'
import { openCgroups } from './cgroups.ts'
import { readCgroupRecord, reapCgroups, writeCgroupRecord } from './kill-cgroup.ts'

let opened = 0

/** Undefined, and the test is skipped, where this process may not make cgroups. */
async function openFor(t: TestContext, recordsDir?: string) {
  const parent = cgroupFolder()
  if (parent === undefined) return t.skip('this machine lets us make no cgroup')
  opened += 1
  const owner = `cgroups-${process.pid}-${opened}`
  const result = await openCgroups({ owner, log: silentLog, parents: [parent], ...(recordsDir && { recordsDir }) })
  assert.ok(result.cgroups, 'cgroups cannot be used')
  const { cgroups } = result
  t.after(() => cgroups.close())
  return { owner, parent, cgroups, folders: () => foldersIn(cgroups.path) }
}

const foldersIn = (path: string): string[] =>
  readdirSync(path, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)

const sleeping = (seconds: string): number[] =>
  liveProcesses()
    .filter(({ commandLine }) => commandLine === `/bin/sleep ${seconds}`)
    .map(({ pid }) => pid)

/** Starts a process without mark and group, and goes on when it is there. */
const hide = (seconds: string) =>
  `env -i setsid /bin/sh -c 'echo >h${seconds}; exec /bin/sleep ${seconds}' & while [ ! -e h${seconds} ]; do sleep 0.01; done`

test('RE-5 an escapee without a mark is dead when the run ends, however it ends', async (t) => {
  const open = await openFor(t)
  if (!open) return
  const { sh } = createProcessHarness(t, { cgroups: open.cgroups })
  const [exits, stops] = [uniqueSeconds(), uniqueSeconds()]
  const exited = await sh(`${hide(exits)}; echo hi`)
  assert.deepEqual([exited.end, text(exited.stdout)], ['exited', 'hi\n'])
  assert.deepEqual(sleeping(exits), [])
  const canceled = new AbortController()
  const running = sh(`${hide(stops)}; sleep 300`, {}, canceled.signal)
  await waitUntil(() => sleeping(stops).length > 0, 'it hides')
  canceled.abort()
  assert.equal((await running).end, 'canceled')
  assert.deepEqual(sleeping(stops), [])
  assert.deepEqual(open.folders(), [], 'a folder that was killed is not kept')
})

test('RE-5 a kept process that is stopped leaves no escapee without a mark', async (t) => {
  const open = await openFor(t)
  if (!open) return
  const { processes, dir } = createProcessHarness(t, { cgroups: open.cgroups })
  const seconds = uniqueSeconds()
  const command = ['/bin/sh', '-c', `${hide(seconds)}; cat`] as const
  const options = { cwd: dir, env: PLAIN_ENVIRONMENT, mark: 'kept', lineBytesMax: 1000, onLine: () => undefined }
  const kept = processes.start({ command, ...options })
  await waitUntil(() => sleeping(seconds).length > 0, 'it hides')
  assert.equal((await kept.stop()).end, 'exited')
  assert.deepEqual(sleeping(seconds), [])
})

test('folders are used again, and close removes all', async (t) => {
  const open = await openFor(t)
  if (!open) return
  const { sh, processes } = createProcessHarness(t, { cgroups: open.cgroups })
  await Promise.all(Array.from({ length: 3 }, () => sh('true')))
  const kept = open.folders()
  assert.ok(kept.length <= 3)
  for (let round = 0; round < 5; round += 1) assert.equal((await sh('true')).exitCode, 0)
  assert.ok(open.folders().length <= Math.max(1, kept.length))
  await processes.close()
  assert.ok(!existsSync(open.cgroups.path))
})

test('a child is started with exactly its environment, and a failed start names its cause', async (t) => {
  const open = await openFor(t)
  if (!open) return
  const { sh, owner, dir } = createProcessHarness(t, { cgroups: open.cgroups })
  const cgroup = async (command: [string, ...string[]], env = {}) =>
    text((await sh('', { command, env: { ...PLAIN_ENVIRONMENT, ...env } })).stdout)
  const plain = { PATH: '/usr/bin:/bin', A: "it's b" }
  for (const env of [plain, { ...plain, 'a.b%%': 'no name of a shell' }]) {
    const { stdout } = await sh('', { command: ['env'], env, mark: 'listed' })
    const expected = Object.entries({ ...env, MOLECULE_TURN: `${owner}:listed` }).map((pair) => pair.join('='))
    assert.deepEqual(text(stdout).trim().split('\n').sort(), expected.sort())
  }
  assert.match(
    await cgroup(['/bin/sh', '-c', 'cat /proc/self/cgroup; echo "$0 $#"', 'zero', 'one']),
    /molecule-.*zero 1/s,
  )
  assert.match(await cgroup(['cat', '/proc/self/cgroup']), /^0::.*\/molecule-cgroups-/m)
  assert.equal(await cgroup(['printf', '%s|', 'a b', '$HOME', "'"]), "a b|$HOME|'|")
  writeFileSync(join(dir, 'plain'), '')
  chmodSync(join(dir, 'plain'), 0o644)
  for (const program of ['/nowhere/program', 'no-such-program', './plain', '.']) {
    const failed = await sh('', { command: [program] })
    assert.equal(failed.end, 'spawn_failed', program)
    assert.match(failed.cause?.message ?? '', /ENOENT|EACCES/)
  }
  const lost = await sh('', { command: ['true'], cwd: '/nowhere' })
  assert.match(lost.cause?.message ?? '', /ENOENT|working folder/)
})

test('a child whose cgroup was removed from outside does not run outside of it', async (t) => {
  const open = await openFor(t)
  if (!open) return
  const taken = open.cgroups.take()
  const { sh } = createProcessHarness(t)
  const command = taken?.entering({ command: ['/bin/sh', '-c', 'echo ran'], cwd: '/', env: {}, mark: '' })
  for (const name of open.folders()) rmdirSync(join(open.cgroups.path, name))
  const result = await sh('', { command: command ?? ['false'] })
  assert.deepEqual([result.exitCode, text(result.stdout)], [125, ''])
  assert.equal(await taken?.end(), true)
})

test('RE-5 a cgroup that an agent made in its own is removed with it', async (t) => {
  const open = await openFor(t)
  if (!open) return
  const { sh } = createProcessHarness(t, { cgroups: open.cgroups })
  const seconds = uniqueSeconds()
  const inner = `${open.parent}$(sed -n 's/^0:://p' /proc/self/cgroup | sed 's#.*/molecule-#/molecule-#')/a`
  const line = `d="${inner}"; mkdir -p "$d/b" && env -i setsid sh -c 'echo $$ >"$0/b/cgroup.procs"; echo >in; exec /bin/sleep ${seconds}' "$d" & while [ ! -e in ]; do sleep 0.01; done`
  assert.equal((await sh(line)).exitCode, 0)
  assert.deepEqual(sleeping(seconds), [])
  assert.deepEqual(open.folders(), [])
})

test('RE-5 a restart kills the cgroups of its owner that a record names, and nothing else', async (t) => {
  const recordsDir = temporaryDir(t)
  const open = await openFor(t, recordsDir)
  if (!open) return
  const { sh } = createProcessHarness(t, { cgroups: open.cgroups })
  assert.deepEqual(await readCgroupRecord(recordsDir), { path: open.cgroups.path })
  const seconds = uniqueSeconds()
  const running = sh(`exec /bin/sleep ${seconds}`)
  await waitUntil(() => sleeping(seconds).length === 1, 'it runs')
  const [pid = 0] = sleeping(seconds)
  const other = { recordsDir, owner: 'another', log: silentLog }
  assert.equal(await reapCgroups(other), 0)
  assert.ok(isAlive(pid))
  await writeCgroupRecord(recordsDir, { path: open.cgroups.path })
  assert.equal(await reapCgroups({ ...other, owner: open.owner }), 1)
  assert.equal((await running).signal, 'SIGKILL')
  assert.ok(!existsSync(open.cgroups.path))
  // A folder of that name that is no cgroup is left alone.
  const forged = join(recordsDir, `molecule-${open.owner}`)
  mkdirSync(join(forged, 'kept'), { recursive: true })
  await writeCgroupRecord(recordsDir, { path: forged })
  assert.equal(await reapCgroups({ ...other, owner: open.owner }), 0)
  assert.ok(existsSync(join(forged, 'kept')))
})

test('RE-5 a platform that is restarted inside the cgroup of a turn does not kill itself', async (t) => {
  const recordsDir = temporaryDir(t)
  const open = await openFor(t, recordsDir)
  if (!open) return
  const { sh } = createProcessHarness(t, { cgroups: open.cgroups })
  const fake = join(import.meta.dirname, '../../test/fakes/self-reaper.ts')
  const result = await sh(`exec "${process.execPath}" "${fake}" "${recordsDir}" "${open.owner}"`)
  assert.equal(text(result.stdout), 'survived, killed 0')
})

test('where no cgroup can be made, the reason is recorded and nothing is left', async (t) => {
  const recordsDir = temporaryDir(t)
  const parent = temporaryDir(t)
  const options = { owner: 'nobody', log: silentLog, recordsDir }
  const onLinux = process.platform === 'linux'
  const missing = await openCgroups({ ...options, parents: [join(parent, 'missing')] })
  assert.match(missing.cgroups ? '' : missing.reason, onLinux ? /no cgroup can be made here \(ENOENT\)/ : /only Linux/)
  const plain = await openCgroups({ ...options, parents: [parent] })
  assert.match(plain.cgroups ? '' : plain.reason, onLinux ? /there is no cgroup\.kill/ : /only Linux/)
  assert.deepEqual(readdirSync(parent), [])
  const none = await openCgroups({ ...options, parents: [] })
  assert.ok(!none.cgroups)
  assert.deepEqual(await readCgroupRecord(recordsDir), { reason: none.reason })
})

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)
