/** Delegations on a running platform: real workspaces whose programs call `a2a`, with one slot each. */
import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readLines } from '../harness/bridge.ts'
import { runCommand } from '../harness/command.ts'
import { isAlive } from '../harness/live-processes.ts'
import {
  getWorkspace,
  type PlatformUnderTest,
  replyText,
  sendWithoutWaiting,
  startPlatform,
  startPlatformFor,
  waitForFinalTask,
} from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

/** Rounds of the random test; 500 for a long run. */
const ROUNDS = Number(process.env['MOLECULE_DELEGATION_ROUNDS'] ?? 20)
const ROUNDS_AT_A_TIME = 6
const ROUNDS_MS_MAX = Math.max(120_000, ROUNDS * 3000)

function temporaryFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), 'molecule-delegation-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** Workspaces w0, w1, ..., each with its command. */
async function makeTeam(platform: PlatformUnderTest, commands: readonly string[]): Promise<string[]> {
  const ids: string[] = []
  for (const [index, cmd] of commands.entries()) {
    const more = { name: `w${index}`, runtime_config: { pass_meta: 'true', timeout: '110s' }, max_attempts: 1 }
    ids.push(await platform.exec(cmd, more))
  }
  return ids
}

/** Delegates and shows the failure as its answer. */
const pass = (index: number) => `a2a delegate w${index} go 2>&1 || true`

const isIdle = async (platform: PlatformUnderTest, ids: readonly string[]) => {
  for (const id of ids) {
    const { queue_depth: waiting, running } = await getWorkspace(platform, id)
    if (waiting + running > 0) return false
  }
  return true
}

test('TW-5 TW-4 A waits on B waits on C waits on A: refused at the third hop, with the chain and three ways on', async (t) => {
  const platform = await startPlatformFor(t)
  const ids = await makeTeam(platform, [pass(1), pass(2), pass(0)])
  const task = await platform.send(ids[0] ?? '', 'go')
  const { id } = task
  const answer = replyText(task) ?? ''
  assert.match(answer, /^\[A2A_ERROR\] DELEGATION FAILED: w0 gave no answer/)
  assert.match(answer, new RegExp(`the message goes in a circle: ${[...ids, ids[0]].join(' -> ')}`))
  assert.match(answer, /another peer.*yourself.*tell the user/s)
  const { body } = await platform.request('GET', `/messages/${id}/story`)
  const shown = body.tree.tasks.map((each: Record<string, unknown>) => [each['workspace_name'], each['depth']])
  assert.deepEqual(shown, [
    ['w0', 0],
    ['w1', 1],
    ['w2', 2],
  ])
  const env = { MOLECULE_HOME: platform.dataDir, MOLECULE_API_URL: platform.url }
  const explained = await runCommand(['explain', id], { env })
  assert.match(explained.out, /delegations:\n\* w0 {2}completed, 1 turn {2}.*\n {4}w1 {2}.*\n {6}w2 {2}/)
})

test('TW-5 a sixth workspace in a chain of agents that wait is refused, with the chain', async (t) => {
  const platform = await startPlatformFor(t)
  const ids = await makeTeam(platform, [1, 2, 3, 4, 5, 6].map(pass))
  const answer = replyText(await platform.send(ids[0] ?? '', 'go')) ?? ''
  assert.match(answer, new RegExp(`already passed 5 relays: ${ids.join(' -> ')}`))
})

test('IN-9 TW-3 the time of a child does not count against the time limit of the turn that waits for it', async (t) => {
  const platform = await startPlatformFor(t)
  await platform.exec('sleep 12; echo "the result"', { name: 'w1' })
  const limits = { name: 'w0', runtime_config: { pass_meta: 'true', timeout: '10s' }, max_attempts: 1 }
  const parent = await platform.exec(pass(1), limits)
  assert.equal(replyText(await platform.send(parent, 'go'))?.trim(), 'the result')
})

test('TW-9 agents that answer each late result with a new delegation stop at the limit, and the refusal shows the tree', async (t) => {
  const platform = await startPlatformFor(t)
  const folder = temporaryFolder(t)
  const [runs, errors, open] = [join(folder, 'runs'), join(folder, 'errors'), join(folder, 'open')]
  const [asks = '', answers = ''] = await makeTeam(platform, [
    `echo run >> ${runs}; a2a delegate --async w1 ping 2>> ${errors}`,
    `n=$(wc -l < ${runs}); until [ -e ${open}-$n ]; do sleep 0.05; done; echo pong`,
  ])
  // The message itself narrows the 50 turns that it may cause.
  await platform.send(asks, 'start', { metadata: { molecule_delegation: { turns_left: 15 } } })
  const refused = () => existsSync(errors) && readFileSync(errors, 'utf8').includes('DELEGATION FAILED')
  await waitUntil(
    async () => {
      const late = (await isIdle(platform, [asks])) && (await getWorkspace(platform, answers)).running === 1
      if (late) writeFileSync(`${open}-${readLines(runs).length}`, '')
      return refused()
    },
    () => `a refusal after ${readLines(runs).length} runs`,
    110_000,
  )
  await waitUntil(() => isIdle(platform, [asks, answers]))
  assert.match(
    readFileSync(errors, 'utf8'),
    /one message may cause 15 turns, and this one has caused 15\nw0 \(ws_.*\n {2}w1 \(/,
  )
  assert.equal(readLines(runs).length, 8)
})

test('TW-3 cancelling the first task ends all that it delegated, with their processes', async (t) => {
  const platform = await startPlatformFor(t)
  const pidFile = join(temporaryFolder(t), 'pid')
  const ids = await makeTeam(platform, [pass(1), pass(2), `echo $$ > ${pidFile}; exec sleep 600`])
  const taskId = await sendWithoutWaiting(platform, ids[0] ?? '', 'go')
  const pid = () => (existsSync(pidFile) ? Number(readFileSync(pidFile, 'utf8')) : 0)
  await waitUntil(() => pid() > 0)
  const { body } = await platform.rpc(ids[0] ?? '', 'CancelTask', { id: taskId })
  assert.equal(body.result.status.state, 'TASK_STATE_CANCELED')
  for (const id of ids) {
    const tasks = (await platform.rpc(id, 'ListTasks', {})).body.result.tasks
    assert.deepEqual(
      tasks.map(({ status }: { status: { state: string } }) => status.state),
      ['TASK_STATE_CANCELED'],
    )
  }
  await waitUntil(() => !isAlive(pid()))
  await waitUntil(() => isIdle(platform, ids))
})

test('TW-3 TW-6 a platform that is killed during delegations changes nothing: each result arrives once', async (t) => {
  const [dataDir, folder] = [temporaryFolder(t), temporaryFolder(t)]
  const [begun, open, seen] = [join(folder, 'begun'), join(folder, 'open'), join(folder, 'seen')]
  const waits = `echo x >> ${begun}; while [ ! -e ${open} ]; do sleep 0.1; done; echo "the result"`
  const notes = `case "$(cat)" in "The task "*) echo x >> ${seen};; *) a2a delegate --async w3 "count";; esac`
  let platform = await startPlatform({ dataDir })
  t.after(() => platform.dispose())
  const ids = await makeTeam(platform, [pass(1), waits, notes, waits])
  const [waiting = '', child = '', without = '', asyncChild = ''] = ids
  const taskId = await sendWithoutWaiting(platform, waiting, 'go')
  await platform.send(without, 'go')
  await waitUntil(() => readLines(begun).length === 2)
  await platform.stop('SIGKILL')
  platform = await startPlatform({ dataDir })
  writeFileSync(open, '')
  assert.equal(replyText(await waitForFinalTask(platform, waiting, taskId)), 'the result\n\n')
  await waitUntil(() => readLines(seen).length === 1)
  await waitUntil(() => isIdle(platform, ids))
  assert.equal(readLines(seen).length, 1)
  const count = async (id: string) => (await platform.rpc(id, 'ListTasks', {})).body.result.tasks.length
  assert.deepEqual([await count(child), await count(asyncChild), await count(without)], [1, 1, 2])
})

const completed = async (platform: PlatformUnderTest, id: string) => {
  const { tasks } = (await platform.rpc(id, 'ListTasks', {})).body.result
  return tasks.filter(({ status }: { status: { state: string } }) => status.state === 'TASK_STATE_COMPLETED').length
}

/** A program that gets the results of its delegations as messages, and writes task and answer of each into a file. */
const withResults = (work: string, seen: string) =>
  `text=$(cat); case "$text" in "The task "*) echo "$text" | sed -n '2p;$p' >> ${seen};; *) ${work};; esac`

test('TW-3 a result that is unread when the turn ends is sent to its agent once, one that was read is not, and a kill -9 changes nothing', async (t) => {
  const [dataDir, folder] = [temporaryFolder(t), temporaryFolder(t)]
  const [read, go, seen] = [join(folder, 'read'), join(folder, 'go'), join(folder, 'seen')]
  const work = [
    'a=$(a2a delegate --async w1 read) && a2a delegate --async w1 unread',
    `until a2a status $a | grep '^the answer' >> ${read}; do sleep 0.1; done`,
    `while [ ! -e ${go} ]; do sleep 0.1; done`,
  ]
  let platform = await startPlatform({ dataDir })
  t.after(() => platform.dispose())
  const ids = await makeTeam(platform, [withResults(work.join('; '), seen), 'echo "the answer to $(cat)"'])
  const [asks = '', answers = ''] = ids
  const taskId = await sendWithoutWaiting(platform, asks, 'go')
  await waitUntil(async () => readLines(read).length === 1 && (await completed(platform, answers)) === 2)
  await platform.stop('SIGKILL')
  platform = await startPlatform({ dataDir })
  await waitUntil(() => readLines(read).length === 2, 'the second attempt', 60_000)
  writeFileSync(go, '')
  await waitForFinalTask(platform, asks, taskId)
  await waitUntil(() => readLines(seen).length > 0)
  await waitUntil(() => isIdle(platform, ids))
  assert.deepEqual(readLines(seen), ['Your task was: unread', 'the answer to unread'])
  assert.deepEqual([await completed(platform, asks), await completed(platform, answers)], [2, 2])
})

test('TW-3 RE-1 a result that only a killed attempt has read is sent to its agent once', async (t) => {
  const [dataDir, folder] = [temporaryFolder(t), temporaryFolder(t)]
  const [read, seen] = [join(folder, 'read'), join(folder, 'seen')]
  // The first attempt reads the result and never ends; the second one neither delegates nor reads.
  const first = `a=$(a2a delegate --async w1 count); until a2a status $a | grep '^the answer' >> ${read}; do sleep 0.1; done`
  const work = `if [ ! -s ${read} ]; then ${first}; exec sleep 600; fi`
  let platform = await startPlatform({ dataDir })
  t.after(() => platform.dispose())
  const ids = await makeTeam(platform, [withResults(work, seen), 'echo "the answer to $(cat)"'])
  const [asks = '', answers = ''] = ids
  const taskId = await sendWithoutWaiting(platform, asks, 'go')
  await waitUntil(() => readLines(read).length === 1, 'the result is read', 60_000)
  await platform.stop('SIGKILL')
  platform = await startPlatform({ dataDir })
  await waitForFinalTask(platform, asks, taskId)
  await waitUntil(() => readLines(seen).length > 0, 'the result arrives', 60_000)
  await waitUntil(() => isIdle(platform, ids))
  assert.deepEqual(readLines(seen), ['Your task was: count', 'the answer to count'])
  assert.deepEqual([await completed(platform, asks), await completed(platform, answers)], [2, 1])
})

test('TW-3 a result whose waiting caller gave up is unread', async (t) => {
  const platform = await startPlatformFor(t)
  const folder = temporaryFolder(t)
  const [begun, cut, go, seen] = [join(folder, 'begun'), join(folder, 'cut'), join(folder, 'go'), join(folder, 'seen')]
  const waitFor = (file: string) => `while [ ! -e ${file} ]; do sleep 0.05; done`
  const work = [
    'a2a delegate w1 "and wait"; a2a delegate w1 "and cut" & caller=$!',
    `${waitFor(begun)}; kill -9 $caller; wait $caller; touch ${cut}; ${waitFor(go)}`,
  ]
  const child = `text=$(cat); if [ "$text" = "and cut" ]; then touch ${begun}; ${waitFor(cut)}; fi; echo "the answer $text"`
  const ids = await makeTeam(platform, [withResults(work.join('; '), seen), child])
  const [asks = '', answers = ''] = ids
  const taskId = await sendWithoutWaiting(platform, asks, 'go')
  await waitUntil(async () => (await completed(platform, answers)) === 2, 'both children', 60_000)
  writeFileSync(go, '')
  await waitForFinalTask(platform, asks, taskId)
  await waitUntil(() => readLines(seen).length > 0)
  await waitUntil(() => isIdle(platform, ids))
  assert.deepEqual(readLines(seen), ['Your task was: and cut', 'the answer and cut'])
})

test(`TW-3 six workspaces of one slot each delegate to one another at random for ${ROUNDS} rounds, and every result arrives`, {
  timeout: ROUNDS_MS_MAX,
}, async (t) => {
  const platform = await startPlatformFor(t)
  const size = 6
  const step = (index: number) =>
    `set -- $(cat); if [ "$1" = end ]; then echo ${index}; else n=$1; shift; printf '${index} '; a2a delegate w$n "$*"; fi`
  const ids = await makeTeam(
    platform,
    Array.from({ length: size }, (_, index) => step(index)),
  )
  let begun = 0
  const run = async () => {
    while (begun < ROUNDS) {
      begun += 1
      const [first = 0, ...path] = shuffled(size).slice(0, 2 + (begun % 3))
      const task = await platform.send(ids[first] ?? '', [...path, 'end'].join(' '))
      assert.equal(replyText(task)?.trim(), [first, ...path].join(' '), JSON.stringify(task.status))
    }
  }
  await Promise.all(Array.from({ length: ROUNDS_AT_A_TIME }, run))
  await waitUntil(() => isIdle(platform, ids))
})

function shuffled(size: number): number[] {
  const order = Array.from({ length: size }, (_, index) => ({ index, at: Math.random() }))
  return order.toSorted((a, b) => a.at - b.at).map(({ index }) => index)
}
