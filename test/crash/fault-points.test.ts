/**
 * Kills a platform at named points: between admission and acknowledgement, lease and spawn, answer and settle, settle
 * and its notification. Each title says the required result. Every test runs on both engines.
 */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { serve } from '../harness/loopback-server.ts'
import { replyText } from '../harness/platform.ts'
import { startPostgres, type TestPostgres } from '../harness/stores/postgres.ts'
import { waitUntil } from '../harness/wait.ts'
import { type CrashHarness, createCrashHarness, recordingCommand, send } from './crash-harness.ts'
import { openDatabase } from './database.ts'

let postgres: TestPostgres
before(async () => {
  postgres = await startPostgres()
})
after(() => postgres.stop())

const ENGINES = [
  { engine: 'SQLite', database: async () => undefined },
  { engine: 'PostgreSQL', database: () => postgres.url() },
] as const

/** Leaves a process outside its process group behind, like the tool of an agent. */
const ANSWER = `setsid sleep 86 >/dev/null 2>&1 & echo "done: $input"`

/**
 * A platform that kills itself at the point, with a workspace of one slot. Its command runs `first` of the harness
 * folder before it answers; `first` may use `$input`.
 */
async function prepare(
  t: TestContext,
  {
    point,
    env = point === undefined ? {} : { MOLECULE_CRASH_AT: point },
    database,
    first = () => '',
  }: {
    point?: string
    env?: Readonly<Record<string, string>>
    database: string | undefined
    first?: (folder: string) => string
  },
) {
  const harness = await createCrashHarness(t, database)
  const platform = await harness.start(env)
  const workspaceId = await platform.exec(recordingCommand(harness.folder, first(harness.folder) + ANSWER))
  return { harness, workspaceId }
}

interface Message {
  readonly workspaceId: string
  readonly messageId: string
  readonly text: string
}

/** A message whose platform kills itself is answered by the next one, once, with this number of lost turns. */
async function answersAfterCrash(
  harness: CrashHarness,
  { workspaceId, losses }: { readonly workspaceId: string; readonly losses: number },
): Promise<void> {
  const message = { workspaceId, messageId: 'only', text: 'hello' }
  await sendIntoCrash(harness, message)
  const task = await send(harness.platform, message)
  assert.equal(task && replyText(task), 'done: hello\n')
  const [stored] = await harness.end()
  assert.deepEqual([stored?.state, stored?.losses, stored?.replies], ['done', losses, 1])
}

/** The platform kills itself during this message and is started again without a fault point. */
async function sendIntoCrash(harness: CrashHarness, message: Message): Promise<void> {
  const task = await send(harness.platform, message)
  assert.equal(task, undefined, 'the platform answered before its fault point')
  await harness.waitForExit()
  await harness.start()
}

const hasRun = (harness: CrashHarness, times: number) =>
  waitUntil(async () => (await harness.runs()).length >= times, `the agent runs ${times} times`)

/** A webhook on loopback; the texts that it received. */
async function openWebhook(t: TestContext) {
  const received: string[] = []
  const { url } = await serve(t, (request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (chunk) => (body += chunk))
    request.on('end', () => {
      received.push(body)
      response.end()
    })
  })
  return { received, url: `${url}/hook` }
}

const OUTBOUND = { MOLECULE_ALLOW_OUTBOUND: '127.0.0.1' }

async function addSchedule({ platform }: CrashHarness, workspaceId: string, webhook: string): Promise<string> {
  const body = { cron: '0 0 1 1 *', text: 'report', missed: 'once', webhook }
  const answer = await platform.request('POST', `/workspaces/${workspaceId}/schedules`, body)
  assert.equal(answer.status, 201, JSON.stringify(answer.body))
  return answer.body.id
}

/** The answer of the only run arrives at the webhook, and the schedule shows that run. */
async function checkRun(harness: CrashHarness, received: readonly string[]): Promise<void> {
  const show = async () => (await harness.platform.request('GET', '/schedules')).body.schedules[0]
  await waitUntil(() => received.some((body) => body.includes('done: report')), 'the webhook has the answer')
  await waitUntil(async () => (await show()).last?.state === 'TASK_STATE_COMPLETED', 'the schedule shows its run')
  assert.equal((await show()).note, null)
  assert.deepEqual(await harness.runs(), ['report'])
  assert.equal((await harness.end()).length, 1)
}

for (const { engine, database } of ENGINES) {
  describe(`a platform killed at a named point, on ${engine}`, { concurrency: 2 }, () => {
    test('RE-1 IN-1 killed between admission and acknowledgement: the message runs once, and sent again it finds its task', async (t) => {
      const { harness, workspaceId } = await prepare(t, { point: 'admitted', database: await database() })
      const message = { workspaceId, messageId: 'only', text: 'hello' }
      await sendIntoCrash(harness, message)
      await hasRun(harness, 1)
      const task = await send(harness.platform, message)
      assert.equal(task && replyText(task), 'done: hello\n')
      const [stored, ...more] = await harness.end()
      assert.deepEqual([stored?.taskId, stored?.state, stored?.replies, more], [task?.id, 'done', 1, []])
      // Admission leased it at once, so the crash counts as a loss although no process was started.
      assert.equal(stored?.losses, 1)
      assert.deepEqual(await harness.runs(), ['hello'])
    })

    test('RE-1 killed between admission and acknowledgement of a waiting message: it has no loss and runs after the one before it', async (t) => {
      // The first run of the first message does not end; the crash interrupts it.
      const first = (folder: string) => `[ "$input$(wc -l < '${folder}/runs')" != first1 ] || sleep 86; `
      const { harness, workspaceId } = await prepare(t, { point: 'admitted:2', database: await database(), first })
      const running = { workspaceId, messageId: '1', text: 'first' }
      const waiting = { workspaceId, messageId: '2', text: 'second' }
      assert.ok(await send(harness.platform, { ...running, wait: false }))
      await hasRun(harness, 1)
      await sendIntoCrash(harness, waiting)
      const answers = await Promise.all([send(harness.platform, waiting), send(harness.platform, running)])
      assert.deepEqual(
        answers.map((task) => task && replyText(task)),
        ['done: second\n', 'done: first\n'],
      )
      const stored = await harness.end()
      assert.deepEqual(
        stored.map(({ key, state, losses, replies }) => ({ key, state, losses, replies })),
        [
          { key: '1', state: 'done', losses: 1, replies: 1 },
          { key: '2', state: 'done', losses: 0, replies: 1 },
        ],
      )
      assert.deepEqual(await harness.runs(), ['first', 'first', 'second'])
    })

    test('RE-1 killed between lease and spawn: the next platform runs the message once and counts the loss', async (t) => {
      const { harness, workspaceId } = await prepare(t, { point: 'leased', database: await database() })
      await answersAfterCrash(harness, { workspaceId, losses: 1 })
      assert.deepEqual(await harness.runs(), ['hello'])
    })

    test('RE-1 RT-11 RE-5 killed between answer and settle: the message runs twice with the same input and is answered once, and its processes are reaped', async (t) => {
      const { harness, workspaceId } = await prepare(t, { point: 'answered', database: await database() })
      await answersAfterCrash(harness, { workspaceId, losses: 1 })
      // Only models get the line about the interruption; the stdin of a command is the message alone.
      assert.deepEqual(await harness.runs(), ['hello', 'hello'])
    })

    test('RE-1 IN-1 killed between settle and its notification: the message never runs again, and sent again it finds the stored reply', async (t) => {
      const { harness, workspaceId } = await prepare(t, { point: 'settled', database: await database() })
      await answersAfterCrash(harness, { workspaceId, losses: 0 })
      assert.deepEqual(await harness.runs(), ['hello'])
    })

    test('RE-1 IN-2 killed after a settle that passed its slot on: the next message, leased and not begun, runs once', async (t) => {
      // Two messages wait behind the first, which runs until both are admitted.
      const first = (folder: string) => `while [ "$input" = first ] && [ ! -e '${folder}/go' ]; do sleep 0.02; done; `
      const { harness, workspaceId } = await prepare(t, { point: 'settled', database: await database(), first })
      const messages = ['first', 'second', 'third'].map((text) => ({ workspaceId, messageId: text, text }))
      for (const message of messages) assert.ok(await send(harness.platform, { ...message, wait: false }))
      await writeFile(join(harness.folder, 'go'), '')
      await harness.waitForExit()
      await harness.start()
      const answers = await Promise.all(messages.map((message) => send(harness.platform, message)))
      assert.deepEqual(
        answers.map((task) => task && replyText(task)),
        ['done: first\n', 'done: second\n', 'done: third\n'],
      )
      const stored = await harness.end()
      assert.deepEqual(
        stored.map(({ losses, replies }) => [losses, replies]),
        [
          [0, 1],
          [1, 1],
          [0, 1],
        ],
      )
      assert.deepEqual(await harness.runs(), ['first', 'second', 'third'])
    })

    test('RE-1 SC-1 killed when the message of a schedule that a person runs is admitted: the run is noted and its webhook gets the answer', async (t) => {
      const { received, url } = await openWebhook(t)
      const env = { ...OUTBOUND, MOLECULE_CRASH_AT: 'admitted' }
      const { harness, workspaceId } = await prepare(t, { env, database: await database() })
      const id = await addSchedule(harness, workspaceId, url)
      await assert.rejects(harness.platform.request('POST', `/schedules/${id}/run`))
      await harness.waitForExit()
      await harness.start(OUTBOUND)
      await checkRun(harness, received)
    })

    test('RE-1 SC-1 killed when the message of a due time is admitted, and started late: that time is not left out, and its webhook gets the answer', async (t) => {
      const { received, url } = await openWebhook(t)
      const place = await database()
      const { harness, workspaceId } = await prepare(t, { env: OUTBOUND, database: place })
      await addSchedule(harness, workspaceId, url)
      await harness.kill()
      const change = async (set: string) => {
        const stored = await openDatabase({ dataDir: harness.platform.dataDir, database: place, writable: true })
        await stored.rows(`update schedules set ${set}`)
        await stored.close()
      }
      await change(`next_at = ${Date.now() - 3600_000}`)
      // It may die before it says that it is ready.
      await harness.start({ ...OUTBOUND, MOLECULE_CRASH_AT: 'admitted' }).catch(() => undefined)
      await harness.waitForExit()
      // From here on a time that is an hour late is left out.
      await change(`missed = 'skip'`)
      await harness.start(OUTBOUND)
      await checkRun(harness, received)
    })
  })
}
