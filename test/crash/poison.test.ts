/**
 * A poison message: its backend fails every time. It must become a dead letter with the reason, delay only its own
 * conversation, and be answered after the backend is repaired and a person replays it. Its retries are scheduled in the
 * store, so a crash does not reset them.
 */
import assert from 'node:assert/strict'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { type PlatformUnderTest, reasonText, replyText } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'
import { type CrashHarness, createCrashHarness, recordingCommand, send } from './crash-harness.ts'

const FAILED = 'TASK_STATE_FAILED'

/**
 * The command fails for the text "poison" while the file "broken" exists. Every run records its time in nanoseconds.
 */
async function prepare(t: TestContext): Promise<{ harness: CrashHarness; workspaceId: string }> {
  const harness = await createCrashHarness(t)
  const broken = join(harness.folder, 'broken')
  await writeFile(broken, '')
  const platform = await harness.start()
  const fails = `[ "$input" = poison ] && [ -e '${broken}' ] && echo 'no power' >&2 && exit 1`
  const cmd = recordingCommand(harness.folder, `date +%s%N >> '${harness.folder}/times'; ${fails}; echo "done: $input"`)
  const workspaceId = await platform.exec(cmd, { max_attempts: 2 })
  return { harness, workspaceId }
}

const deadLetters = async (platform: PlatformUnderTest, workspaceId: string) =>
  (await platform.request('GET', `/workspaces/${workspaceId}/dead-letters`)).body.dead_letters

const replay = async (platform: PlatformUnderTest, workspaceId: string, id: string): Promise<string> =>
  (await platform.request('POST', `/workspaces/${workspaceId}/dead-letters/${id}/replay`)).body.task_id

describe('a backend that always fails', { concurrency: true }, () => {
  test('IN-4 RE-1 the message becomes a dead letter with the reason, another conversation is answered meanwhile, and a replay after the repair is answered under the old messageId', async (t) => {
    const { harness, workspaceId } = await prepare(t)
    const { platform } = harness
    const poison = { workspaceId, messageId: 'poison', text: 'poison', contextId: 'sick' }
    const first = await send(platform, { ...poison, wait: false })
    await waitUntil(
      async () => (await statusTextOf(harness, poison)).includes('attempt 2 of 2'),
      'the first attempt fails',
    )

    const behind = { workspaceId, messageId: 'behind', text: 'behind it', contextId: 'sick' }
    assert.ok(await send(platform, { ...behind, wait: false }))
    const other = await send(platform, { workspaceId, messageId: 'other', text: 'well', contextId: 'healthy' })
    assert.equal(other && replyText(other), 'done: well\n')
    assert.deepEqual(await harness.runs(), ['poison', 'well'], 'the message behind the poison has overtaken it')

    const failed = await send(platform, poison)
    assert.deepEqual([failed?.id, failed?.status.state], [first?.id, FAILED])
    assert.match(failed ? reasonText(failed) : '', /exited with code 1.*no power/)
    const followed = await send(platform, behind)
    assert.equal(followed && replyText(followed), 'done: behind it\n')
    const [letter, ...more] = await deadLetters(platform, workspaceId)
    assert.deepEqual([letter.task_id, letter.code, letter.failures, letter.losses, more], [first?.id, 'exit', 2, 0, []])
    assert.match(letter.reason, /exit code 1/)
    assert.match(letter.detail, /exited with code 1.*no power/)

    await rm(join(harness.folder, 'broken'))
    const replayed = await replay(platform, workspaceId, letter.id)
    assert.equal(await replay(platform, workspaceId, letter.id), replayed, 'a second replay made another task')
    const answered = await send(platform, poison)
    assert.deepEqual([answered?.id, answered && replyText(answered)], [replayed, 'done: poison\n'])
    assert.notEqual(replayed, first?.id)
    assert.deepEqual(await deadLetters(platform, workspaceId), [])
    const old = await platform.rpc(workspaceId, 'GetTask', { id: first?.id })
    assert.equal(old.body.result.status.state, FAILED, 'the old task is no longer failed')
    await harness.end()
    assert.deepEqual(await harness.runs(), ['poison', 'well', 'poison', 'behind it', 'poison'])
  })

  test('RT-6 IN-4 killed while a message waits for its retry: the next platform waits for the remaining time and runs attempt 2, the last', async (t) => {
    const { harness, workspaceId } = await prepare(t)
    const poison = { workspaceId, messageId: 'poison', text: 'poison' }
    const first = await send(harness.platform, { ...poison, wait: false })
    await waitUntil(
      async () => (await statusTextOf(harness, poison)).includes('attempt 2 of 2'),
      'the first attempt fails',
    )
    await harness.kill()
    const platform = await harness.start()
    const failed = await send(platform, poison)
    assert.deepEqual([failed?.id, failed?.status.state], [first?.id, FAILED])
    const [letter] = await deadLetters(platform, workspaceId)
    // No turn ran when the platform was killed, so there is no loss. It may fail twice.
    assert.deepEqual([letter.failures, letter.losses], [2, 0])
    await harness.end()
    assert.deepEqual(await harness.runs(), ['poison', 'poison'])
    // The backoff is 5 s. A lower bound, so that a slow machine does not fail the test.
    const [before = 0, after = 0] = await times(harness)
    assert.ok(after - before >= 4900, `the second attempt came after ${after - before} ms`)
  })

  test('RE-1 IN-4 RT-6 killed during its last attempt: the loss is counted separately, and the message gets the attempt again', async (t) => {
    const { harness, workspaceId } = await prepare(t)
    const poison = { workspaceId, messageId: 'poison', text: 'poison' }
    await send(harness.platform, { ...poison, wait: false })
    await waitUntil(
      async () => (await statusTextOf(harness, poison)).includes('attempt 2 of 2'),
      'the first attempt fails',
    )
    await harness.kill()
    // Kills itself when the second attempt is leased and not begun.
    const doomed = await harness.start({ MOLECULE_CRASH_AT: 'leased' })
    assert.equal(await send(doomed, poison), undefined)
    await harness.waitForExit()
    const platform = await harness.start()
    const failed = await send(platform, poison)
    assert.equal(failed?.status.state, FAILED)
    const [stored] = await harness.end()
    assert.deepEqual([stored?.failures, stored?.losses], [2, 1])
    assert.deepEqual(await harness.runs(), ['poison', 'poison'])
  })
})

/** The status text of the message's task. */
async function statusTextOf({ platform }: CrashHarness, message: Parameters<typeof send>[1]): Promise<string> {
  const task = await send(platform, { ...message, wait: false })
  return task ? reasonText(task) : ''
}

/** The time of each run, in milliseconds. */
async function times(harness: CrashHarness): Promise<number[]> {
  const lines = (await readFile(join(harness.folder, 'times'), 'utf8')).split('\n').filter(Boolean)
  return lines.map((line) => Number(BigInt(line) / 1_000_000n))
}
