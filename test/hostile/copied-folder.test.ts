/** A data folder that was copied harms neither its original nor the people who talk to it; one that was moved goes on. */
import assert from 'node:assert/strict'
import { cpSync, existsSync, readdirSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import test, { type TestContext } from 'node:test'
import { createFakeProgram } from '../fakes/agents/fake-program.ts'
import { readLines } from '../harness/bridge.ts'
import { openTerminal, runCommand } from '../harness/command.ts'
import { isAlive } from '../harness/live-processes.ts'
import {
  getWorkspace,
  type PlatformUnderTest,
  replyText,
  sendWithoutWaiting,
  startPlatformFor,
  waitForFinalTask,
} from '../harness/platform.ts'
import { readHostId, startPlatformProcess } from '../harness/platform-process.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { startPostgres } from '../harness/stores/postgres.ts'
import { waitUntil } from '../harness/wait.ts'

/** An agent that writes its pid and folder, and answers once the file `go` is there. */
const agentIn = (folder: string) =>
  `echo "$$ $PWD" >> ${folder}/runs; while [ ! -e ${folder}/go ]; do sleep 0.05; done; echo "answer from $PWD"`

/** A platform with a running turn and a message that waits behind it, and a copy of its data folder. */
async function copyRunning(t: TestContext, database?: string) {
  const folder = realpathSync(temporaryDir(t))
  const dataDir = join(folder, 'data')
  const copyDir = join(folder, 'copy')
  const original = await startPlatformFor(t, { dataDir, ...(database !== undefined && { database }) })
  const id = await original.exec(agentIn(folder))
  const tasks = [await sendWithoutWaiting(original, id, 'first'), await sendWithoutWaiting(original, id, 'second')]
  const records = join(dataDir, 'processes')
  const isRecorded = () => existsSync(records) && readdirSync(records).some((name) => /^\d+\.json$/.test(name))
  await waitUntil(() => readLines(join(folder, 'runs')).length === 1 && isRecorded(), 'the agent runs')
  cpSync(dataDir, copyDir, { recursive: true, preserveTimestamps: true })
  const runs = () => readLines(join(folder, 'runs')).map((line) => line.split(' ') as [string, string])
  const agent = Number(runs()[0]?.[0])
  const answers = async () => {
    writeFileSync(join(folder, 'go'), '')
    const ended = await Promise.all(tasks.map((task) => waitForFinalTask(original, id, task)))
    return ended.map(replyText)
  }
  return { folder, dataDir, copyDir, original, id, agent, runs, answers }
}

const answerFrom = (dataDir: string, id: string) =>
  `answer from ${join(dataDir, 'workspaces', id.replace('ws_', 'ws-'), 'work')}\n`

test('RE-9 PL-13 RE-5 a copy that is started beside its original kills none of its agents, runs nothing by itself, and says what it is', async (t) => {
  const { dataDir, copyDir, original, id, agent, runs, answers } = await copyRunning(t)
  const copy = await startPlatformFor(t, { dataDir: copyDir })
  assert.match(copy.output(), new RegExp(`is a copy of ${dataDir} .*paused.*molecule resume --all`))
  assert.notEqual(readHostId(copyDir), readHostId(dataDir))
  assert.ok(isAlive(agent), 'the agent of the original lives')
  assert.equal((await getWorkspace(copy, id)).status, 'paused')
  assert.equal(
    (await getWorkspace(copy, id)).working_dir,
    join(copyDir, 'workspaces', id.replace('ws_', 'ws-'), 'work'),
  )
  assert.deepEqual(await answers(), [answerFrom(dataDir, id), answerFrom(dataDir, id)])
  assert.equal(runs().length, 2, 'the copy ran no message of its original')
  // Resumed by its owner, the copy works in its own folder. It knows the interrupted turn as one of its own.
  const resumed = await copy.request('POST', `/workspaces/${id}/resume`)
  assert.equal(resumed.status, 200)
  assert.equal(replyText(await copy.send(id, 'third')), answerFrom(copyDir, id))
  await copy.stop()
  const again = await startPlatformFor(t, { dataDir: copyDir })
  assert.doesNotMatch(again.output(), /is a copy/, 'a copy is at home where it is')
  assert.equal((await original.request('GET', '/health')).status, 200)
})

test('RE-9 SC-1 a copy fires no schedule before its owner resumes it', async (t) => {
  const folder = temporaryDir(t)
  const dataDir = join(folder, 'data')
  const first = await startPlatformFor(t, { dataDir })
  const id = await first.exec('cat')
  const body = { cron: '* * * * *', text: 'report' }
  assert.equal((await first.request('POST', `/workspaces/${id}/schedules`, body)).status, 201)
  await first.stop()
  cpSync(dataDir, join(folder, 'copy'), { recursive: true })
  const copy = await startPlatformFor(t, { dataDir: join(folder, 'copy') })
  const [schedule] = (await copy.request('GET', '/schedules')).body.schedules
  assert.deepEqual([schedule.paused, schedule.next_at], [true, null])
})

test('RE-9 CL-7 a start on a copy names the command that starts its workspaces as it is typed there', async (t) => {
  const folder = temporaryDir(t)
  const dataDir = join(folder, 'data')
  await (await startPlatformFor(t, { dataDir })).stop()
  cpSync(dataDir, join(folder, 'copy'), { recursive: true })
  const home = join(folder, 'copy')
  const terminal = openTerminal(t, ['up', '--port', '0', '--as', 'copy'], { MOLECULE_HOME: home, TERM: 'dumb' })
  await terminal.waitForScreen(/Molecule runs at/)
  // A line of the screen may end at any blank, by the length of the path.
  const shown = terminal.screen().replaceAll(/\s/g, '')
  assert.match(shown, /:"MOLECULE_HOME=\S+\/copybin\/moleculeresume--all"startstheworkspaces/)
  terminal.type('\u0003')
  await terminal.ended()
})

test('RE-9 PL-13 commands on a copied folder do not reach the platform of its original', async (t) => {
  const { copyDir, original, agent, answers } = await copyRunning(t)
  const { code } = await runCommand(['workspace', 'list'], { env: { MOLECULE_HOME: copyDir } })
  assert.notEqual(code, 0, 'no platform runs on the copy')
  assert.ok(isAlive(agent))
  assert.equal((await original.request('GET', '/health')).status, 200)
  await answers()
})

test('RE-9 PL-13 --as move is refused while a platform runs on the original, and takes its place when it has ended', async (t) => {
  const { dataDir, copyDir, original, id, agent, answers } = await copyRunning(t)
  const refused = startPlatformProcess({ dataDir: copyDir, args: ['--as', 'move'] })
  t.after(() => refused.stop('SIGKILL'))
  await assert.rejects(refused.ready, /ended with 1/)
  assert.match(refused.output(), new RegExp(`a platform runs on its original ${dataDir}`))
  assert.ok(isAlive(agent))
  await answers()
  await original.stop()
  const moved = await startPlatformFor(t, { dataDir: copyDir, args: ['--as', 'move'] })
  assert.equal(readHostId(copyDir), readHostId(dataDir))
  assert.equal((await getWorkspace(moved, id)).status, 'online')
})

/** The agent answers with its prompt, which is longer when its session is lost. */
async function openSession(platform: PlatformUnderTest, bin: string) {
  const body = { name: 'claude', runtime: 'claude-code', runtime_config: { bin, mode: 'oneshot' } }
  const made = await platform.request('POST', '/workspaces', body)
  assert.equal(made.status, 201, JSON.stringify(made.body))
  await platform.send(made.body.id, 'one', { contextId: 'talk' })
  return made.body.id as string
}

for (const how of ['renamed', 'moved to another disk'] as const) {
  test(`RE-9 PL-13 a data folder that was ${how} goes on: workspaces, working folders and sessions`, async (t) => {
    const folder = realpathSync(temporaryDir(t))
    const [dataDir, movedDir] = [join(folder, 'data'), join(folder, 'moved')]
    const claude = createFakeProgram('claude')
    const first = await startPlatformFor(t, { dataDir })
    const id = await first.exec('echo "answer from $PWD"')
    assert.equal(replyText(await first.send(id, 'go')), answerFrom(dataDir, id))
    const talks = await openSession(first, claude.path)
    const host = readHostId(dataDir)
    await first.stop()
    if (how === 'renamed') renameSync(dataDir, movedDir)
    else {
      cpSync(dataDir, movedDir, { recursive: true })
      rmSync(dataDir, { recursive: true })
    }
    const second = await startPlatformFor(t, { dataDir: movedDir })
    assert.match(second.output(), new RegExp(`was moved here from ${dataDir}`))
    assert.equal(readHostId(movedDir), host)
    assert.equal((await getWorkspace(second, id)).status, 'online')
    assert.equal(replyText(await second.send(id, 'go')), answerFrom(movedDir, id))
    assert.equal(replyText(await second.send(talks, 'two', { contextId: 'talk' })), 'two', 'the session goes on')
  })
}

test('RE-9 PL-13 on one PostgreSQL database a copy is another node: the leases and agents of its original stay', async (t) => {
  const postgres = await startPostgres()
  t.after(() => postgres.stop())
  const database = await postgres.url()
  const { dataDir, copyDir, id, agent, runs, answers } = await copyRunning(t, database)
  // As a copy that an earlier version made: it has the id of its original and does not know where it was made.
  rmSync(join(copyDir, 'host-place.json'))
  const refused = startPlatformProcess({ dataDir: copyDir, database })
  t.after(() => refused.stop('SIGKILL'))
  await assert.rejects(refused.ready, /ended with 1/)
  assert.match(refused.output(), /a platform with the same host id .* runs on this database.*--as copy/)
  assert.ok(isAlive(agent), 'the agent of the original lives')
  const copy = await startPlatformFor(t, { dataDir: copyDir, database, args: ['--as', 'copy'] })
  assert.match(copy.output(), /is a copy of .* one more node/)
  assert.notEqual(readHostId(copyDir), readHostId(dataDir))
  assert.ok(isAlive(agent))
  assert.deepEqual((await answers())[0], answerFrom(dataDir, id))
  assert.equal(runs().length, 2, 'each message ran once')
})
