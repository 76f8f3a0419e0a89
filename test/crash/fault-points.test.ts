/**
 * Killed at named points: between admission and acknowledgement, lease and spawn, answer and settle, settle and the
 * news of it. Each test says in its title what must come of it, and is played on both engines.
 */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { replyText } from '../harness/platform.ts'
import { startPostgres, type TestPostgres } from '../harness/postgres.ts'
import { waitUntil } from '../harness/wait.ts'
import { type CrashHarness, createCrashHarness, recordingCommand, send } from './crash-harness.ts'

let postgres: TestPostgres
before(async () => {
  postgres = await startPostgres()
})
after(() => postgres.stop())

const ENGINES = [
  { engine: 'SQLite', database: async () => undefined },
  { engine: 'PostgreSQL', database: () => postgres.url() },
] as const

/** Leaves a helper behind, outside of its group, as an agent's tool might. */
const ANSWER = `setsid sleep 86 >/dev/null 2>&1 & echo "done: $input"`

interface Preparing {
  readonly point: string
  readonly database: string | undefined
  /** What the command does before it answers, with `$input` and the folder of the harness. */
  readonly first?: (folder: string) => string
}

/** A platform that kills itself at the point, with a workspace that has one slot. */
async function prepare(t: TestContext, { point, database, first = () => '' }: Preparing) {
  const harness = await createCrashHarness(t, database)
  const platform = await harness.start({ MOLECULE_CRASH_AT: point })
  const workspaceId = await platform.exec(recordingCommand(harness.folder, first(harness.folder) + ANSWER))
  return { harness, workspaceId }
}

interface Message {
  readonly workspaceId: string
  readonly messageId: string
  readonly text: string
}

/** The platform dies of this message and is started again without its death wish. */
async function sendIntoCrash(harness: CrashHarness, message: Message): Promise<void> {
  const task = await send(harness.platform, message)
  assert.equal(task, undefined, 'the client was given an answer by a platform that was to die before')
  await harness.waitForExit()
  await harness.start()
}

const hasRun = (harness: CrashHarness, times: number) =>
  waitUntil(async () => (await harness.runs()).length >= times, `the agent runs ${times} times`)

for (const { engine, database } of ENGINES) {
  describe(`killed at named points, on ${engine}`, { concurrency: 2 }, () => {
    test('RE-1 IN-1 between admission and acknowledgement: it is run once without being sent again, and sent again it finds its task', async (t) => {
      const { harness, workspaceId } = await prepare(t, { point: 'admitted', database: await database() })
      const message = { workspaceId, messageId: 'only', text: 'hello' }
      await sendIntoCrash(harness, message)
      await hasRun(harness, 1)
      const task = await send(harness.platform, message)
      assert.equal(task && replyText(task), 'done: hello\n')
      const [stored, ...more] = await harness.end()
      assert.deepEqual([stored?.taskId, stored?.state, stored?.replies, more], [task?.id, 'done', 1, []])
      // Admission had leased it at once, so the crash counts as one of its losses, though nothing had been started.
      assert.equal(stored?.losses, 1)
      assert.deepEqual(await harness.runs(), ['hello'])
    })

    test('RE-1 between admission and acknowledgement of one that has to wait: it is not counted as lost, and runs after the one before it', async (t) => {
      // The first run of the first message takes for ever; the crash cuts it off.
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

    test('RE-1 between lease and spawn: it is run once, by the next platform, and the loss is counted', async (t) => {
      const { harness, workspaceId } = await prepare(t, { point: 'leased', database: await database() })
      const message = { workspaceId, messageId: 'only', text: 'hello' }
      await sendIntoCrash(harness, message)
      const task = await send(harness.platform, message)
      assert.equal(task && replyText(task), 'done: hello\n')
      const [stored] = await harness.end()
      assert.deepEqual([stored?.state, stored?.losses, stored?.replies], ['done', 1, 1])
      assert.deepEqual(await harness.runs(), ['hello'])
    })

    test('RE-1 RT-11 RE-5 between answer and settle: it is run twice and answered once; exec gets the same input again, and what it left running is reaped', async (t) => {
      const { harness, workspaceId } = await prepare(t, { point: 'answered', database: await database() })
      const message = { workspaceId, messageId: 'only', text: 'hello' }
      await sendIntoCrash(harness, message)
      const task = await send(harness.platform, message)
      assert.equal(task && replyText(task), 'done: hello\n')
      const [stored] = await harness.end()
      assert.deepEqual([stored?.state, stored?.losses, stored?.replies], ['done', 1, 1])
      // The line that tells an agent of the interruption is for models; a command's stdin is the message and no more.
      assert.deepEqual(await harness.runs(), ['hello', 'hello'])
    })

    test('RE-1 IN-1 between settle and the news of it: it is never run again, and sent again it finds the stored reply', async (t) => {
      const { harness, workspaceId } = await prepare(t, { point: 'settled', database: await database() })
      const message = { workspaceId, messageId: 'only', text: 'hello' }
      await sendIntoCrash(harness, message)
      const task = await send(harness.platform, message)
      assert.equal(task && replyText(task), 'done: hello\n')
      const [stored] = await harness.end()
      assert.deepEqual([stored?.state, stored?.losses, stored?.replies], ['done', 0, 1])
      assert.deepEqual(await harness.runs(), ['hello'])
    })

    test('RE-1 IN-2 after a settle that handed its slot on: the next message, leased and not begun, is run once', async (t) => {
      // Two wait behind the first, which runs until they do.
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
  })
}
