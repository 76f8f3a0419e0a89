import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { isAlive, linuxOnly, markedPids } from '../../test/harness/live-processes.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT, temporaryDir } from '../../test/harness/process-harness.ts'
import { waitUntil } from '../../test/harness/wait.ts'
import { silentLog } from '../log.ts'
import { bootId, startTimeOf } from './identity.ts'
import { reapOrphans } from './orphan-records.ts'

test('a live child has a record without its arguments, and an ended child has none', async (t) => {
  const recordsDir = temporaryDir(t)
  const { sh, processes } = createProcessHarness(t, { recordsDir })
  const cancel = new AbortController()
  const running = sh('sleep 300 # secret', { mark: 'recorded' }, cancel.signal)
  await waitUntil(() => readdirSync(recordsDir).length === 1, 'the record is there')
  const [file = ''] = readdirSync(recordsDir)
  await waitUntil(() => readFileSync(join(recordsDir, file), 'utf8').endsWith('}'), 'it is written')
  const record = JSON.parse(readFileSync(join(recordsDir, file), 'utf8'))
  assert.deepEqual(Object.keys(record), ['pid', 'startTime', 'bootId', 'owner', 'mark', 'command'])
  assert.equal(file, `${record.pid}.json`)
  assert.deepEqual([record.mark, record.command], ['recorded', 'sh'])
  cancel.abort()
  await running
  await sh('true')
  await processes.close()
  assert.deepEqual(readdirSync(recordsDir), [])
})

test('RE-5 a restart kills the processes that a killed platform left, escapees included', linuxOnly, async (t) => {
  const recordsDir = temporaryDir(t)
  const owner = `crashed-${process.pid}`
  const args = [recordsDir, owner, 'setsid sleep 300 & sleep 300']
  const parent = fake(t, 'orphan-parent.ts', { args })
  await waitUntil(() => markedPids(`${owner}:`).length === 3, 'its children are there')
  await waitUntil(() => readdirSync(recordsDir).length === 1, 'the record is there')
  parent.kill('SIGKILL')
  await once(parent, 'exit')
  assert.equal(markedPids(`${owner}:`).length, 3)

  assert.ok((await reapOrphans({ recordsDir, owner, log: silentLog })) >= 2)
  assert.deepEqual(markedPids(`${owner}:`), [])
  assert.deepEqual(readdirSync(recordsDir), [])
  assert.equal(await reapOrphans({ recordsDir, owner, log: silentLog }), 0)
})

test(
  'RE-5 a child without a record is killed by its mark, and a child of another owner is not',
  linuxOnly,
  async (t) => {
    const owner = `unrecorded-${process.pid}`
    const ours = sleeper(t, { MOLECULE_TURN: `${owner}:turn` })
    const theirs = sleeper(t, { MOLECULE_TURN: `${owner}-too:turn` })
    const recordsDir = join(temporaryDir(t), 'missing')
    assert.equal(await reapOrphans({ recordsDir, owner, log: silentLog }), 1)
    assert.deepEqual([isAlive(ours), isAlive(theirs)], [false, true])
  },
)

test('RE-5 a recorded child without a mark is killed by its record', linuxOnly, async (t) => {
  const recordsDir = temporaryDir(t)
  const pid = sleeper(t, {})
  await writeRecord(recordsDir, pid, {})
  assert.equal(await reapOrphans({ recordsDir, owner: 'nobody', log: silentLog }), 1)
  assert.ok(!isAlive(pid))
})

test(
  'RE-5 RE-9 a process that another owner recorded is not killed, as in a copied data folder',
  linuxOnly,
  async (t) => {
    const recordsDir = temporaryDir(t)
    const pid = sleeper(t, { MOLECULE_TURN: 'original:turn' })
    await writeRecord(recordsDir, pid, { owner: 'original' })
    assert.equal(await reapOrphans({ recordsDir, owner: 'copy', log: silentLog }), 0)
    assert.ok(isAlive(pid))
    assert.deepEqual(readdirSync(recordsDir), [])
  },
)

test('a reused pid, or one of another boot, is not killed', linuxOnly, async (t) => {
  const recordsDir = temporaryDir(t)
  const [reused, rebooted] = [sleeper(t, {}), sleeper(t, {})]
  await writeRecord(recordsDir, reused, { startTime: '1' })
  await writeRecord(recordsDir, rebooted, { bootId: 'another' })
  writeFileSync(join(recordsDir, '1.json'), JSON.stringify({ pid: 1, startTime: '1', bootId: await bootId() }))
  writeFileSync(join(recordsDir, '4194305.json'), '{"pid": 41943')
  writeFileSync(join(recordsDir, 'notes.txt'), 'not ours')
  assert.equal(await reapOrphans({ recordsDir, owner: 'nobody', log: silentLog }), 0)
  assert.deepEqual([isAlive(reused), isAlive(rebooted)], [true, true])
  assert.deepEqual(readdirSync(recordsDir), ['notes.txt'])
})

test('a platform that is restarted inside one of its own turns does not kill itself', linuxOnly, async (t) => {
  const recordsDir = temporaryDir(t)
  const owner = `inside-${process.pid}`
  const child = fake(t, 'self-reaper.ts', { args: [recordsDir, owner], env: { MOLECULE_TURN: `${owner}:turn` } })
  let answer = ''
  child.stdout?.on('data', (chunk) => {
    answer += chunk
  })
  await once(child, 'close')
  assert.equal(answer, 'survived, killed 0')
})

/** One of the runnable fakes, in a group of its own. */
function fake(t: TestContext, file: string, given: { args: string[]; env?: Record<string, string> }): ChildProcess {
  const path = join(import.meta.dirname, '../../test/fakes', file)
  const child = spawn(process.execPath, [path, ...given.args], {
    env: { ...PLAIN_ENVIRONMENT, ...given.env },
    detached: true,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  endWith(t, child)
  return child
}

function sleeper(t: TestContext, env: Record<string, string>): number {
  const child = spawn('/bin/sleep', ['300'], { env, detached: true, stdio: 'ignore' })
  endWith(t, child)
  return child.pid ?? 0
}

function endWith(t: TestContext, child: ChildProcess): void {
  const exited = once(child, 'exit')
  t.after(async () => {
    child.kill('SIGKILL')
    await exited
  })
}

async function writeRecord(recordsDir: string, pid: number, other: Record<string, string>): Promise<void> {
  const record = { pid, startTime: await startTimeOf(pid), bootId: await bootId(), mark: 'm', command: 'sleep' }
  writeFileSync(join(recordsDir, `${pid}.json`), JSON.stringify({ ...record, ...other }))
}
