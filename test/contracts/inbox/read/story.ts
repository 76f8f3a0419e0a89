/** The story of a message, as `explain` shows it, from the stored rows alone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readStory } from '../../../../src/views/story/story.ts'
import type { TaskScope } from '../../../../src/views/trees.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { done, failure, hasCode, type InboxHarness } from '../harness.ts'

export function storyTests(harness: InboxHarness): void {
  const tell = (id: string, scope: TaskScope = {}) => readStory(harness.local.store, { id, scopeOf: () => scope })
  const refuses = (id: string, scope: TaskScope = {}) => assert.rejects(tell(id, scope), hasCode('not_found'))
  const types = async (id: string) => (await tell(id)).steps.map(({ type }) => type)

  test("CL-1 explain shows each attempt with its outcome, found by message id, task id and the sender's id", async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    await harness.withWorker(id, async (worker) => {
      const letter = letterTo(id)
      const { taskId } = await reception.admit(letter)
      const first = await worker.lease()
      await inbox.append(first, { from: 1, events: [{ type: 'tool', name: 'search', state: 'started' }] })
      await inbox.settle(first, { type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: false })
      const second = await worker.lease()
      assert.deepEqual(await types(taskId), ['admitted', 'started', 'failed', 'started', 'running'])
      await inbox.settle(second, done('hello'))
      const story = await tell(taskId)
      assert.deepEqual(
        story.steps.map(({ type }) => type),
        ['admitted', 'started', 'failed', 'started', 'answered', 'ended'],
      )
      assert.match(story.steps[2]?.text ?? '', /^attempt 1 failed: it broke \(exit\); it used search$/)
      assert.match(story.steps[4]?.text ?? '', /^attempt 2 gave the answer$/)
      for (const name of [first.messageId, letter.envelope.message.messageId]) assert.deepEqual(await tell(name), story)
      const { principal } = letter
      assert.equal((await tell(taskId, { principal })).task_id, taskId)
      assert.equal((await tell(letter.envelope.message.messageId, { principal })).task_id, taskId)
      for (const name of [taskId, first.messageId, letter.envelope.message.messageId]) {
        await refuses(name, { principal: 'somebody else' })
      }
      await refuses('nothing')
    })
  })

  test('CL-1 explain shows each reader its own message of an id that several senders used, and none whose id only starts alike', async () => {
    const id = await harness.workspace()
    // The second byte is larger than the first: a range that began with it would not contain the id.
    const messageId = `az, a name of more than sixteen bytes, in ${id}`
    const from = async (principal: string) =>
      (await harness.local.reception.admit(letterTo(id, { messageId, principal }))).taskId
    const [people, agent] = [await from('people'), await from('ws:x')]
    await harness.local.reception.admit(letterTo(id, { messageId: `${messageId} as well` }))
    assert.equal((await tell(messageId, { principal: 'people' })).task_id, people)
    assert.equal((await tell(messageId, { principal: 'ws:x' })).task_id, agent)
    assert.equal((await tell(messageId)).task_id, people)
    await refuses(messageId.slice(0, -1))
  })

  test("CL-1 explain shows that an attempt was cut off when its worker vanished, and a dead letter's end and replay", async () => {
    const id = await harness.workspace()
    const { reception, inbox, deadLetters } = harness.local
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await reception.admit(letterTo(id))
      const first = await worker.lease()
      await inbox.settle(first, { type: 'released', interrupted: true })
      const second = await worker.lease()
      const said = { ...failure, sentence: 'the program failed', details: {} }
      await inbox.settle(second, { type: 'dead', failure: said })
      assert.deepEqual(await types(taskId), ['admitted', 'started', 'lost', 'started', 'ended', 'waiting'])
      const owned = await tell(taskId, { detail: true })
      assert.ok(owned.steps.some(({ text }) => text === 'the program said: it broke'))
      assert.ok(!(await tell(taskId)).steps.some(({ text }) => text.includes('it broke')))
      const replayed = await deadLetters.replay(id, first.messageId)
      assert.equal((await types(taskId)).at(-1), 'replayed')
      assert.match((await tell(replayed)).steps[0]?.text ?? '', new RegExp(`as a replay of ${first.messageId}$`))
      await inbox.settle(await worker.lease(), done('well'))
    })
  })

  test('CL-1 explain shows a question and its answer, and what was delivered where', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    await harness.withWorker(id, async (worker) => {
      const letter = { ...letterTo(id), replyTo: { door: 'discord', channel: 'general' } }
      const { taskId } = await reception.admit(letter)
      const lease = await worker.lease()
      await inbox.ask(lease, { kind: 'question', id: 'q', parts: [{ text: 'may I?' }] })
      assert.equal((await tell(taskId)).steps.at(-1)?.text, 'the attempt waits for the answer')
      await reception.admit(letterTo(id, { taskId }))
      assert.equal((await worker.next()).type, 'answer')
      await inbox.settle(lease, done('thanks'))
      assert.deepEqual(await types(taskId), ['admitted', 'started', 'asked', 'resumed', 'answered', 'ended'])
      const [delivery] = (await tell(taskId)).deliveries ?? []
      assert.deepEqual(delivery, { to: 'discord general', state: 'pending', tries: 0, error: undefined })
    })
  })

  test('CL-1 explain says what the message does now: it waits, it waits for a retry, it runs, it is being stopped', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    const { taskId } = await reception.admit(letterTo(id))
    const now = async () => (await tell(taskId)).steps.at(-1)?.text
    assert.equal(await now(), 'it waits in the queue')
    await harness.withWorker(id, async (worker) => {
      const retry = { type: 'retry', failure, reason: 'failure', interrupted: false } as const
      await inbox.settle(await worker.lease(), { ...retry, afterMs: 3600_000 })
      assert.match((await now()) ?? '', /^it will be tried again in (?:1 h|60 min)$/)
      await harness.sql('update messages set ready_at = 1 where task_id = $1', taskId)
      await harness.sql('update conversations set ready_at = 1 where workspace_id = $1', id)
      const lease = await worker.lease()
      assert.equal(await now(), 'the attempt is running now')
      await reception.cancel(taskId)
      assert.match((await now()) ?? '', /^the task was cancelled, and the processes .* are being stopped$/)
      assert.equal((await worker.next()).type, 'stop')
      await inbox.settle(lease, { type: 'stopped' })
      assert.equal(await now(), 'the task is canceled')
    })
  })

  test('CL-1 explain shows a message behind another one of its task as waiting, then as one attempt', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await reception.admit(letterTo(id))
      const first = await worker.lease()
      const behind = letterTo(id, { taskId })
      await reception.admit(behind)
      const { messageId } = behind.envelope.message
      assert.equal((await types(messageId)).at(-1), 'waiting')
      await inbox.settle(first, done('one'))
      const second = await worker.lease()
      assert.deepEqual(await types(messageId), ['admitted', 'started', 'running'])
      await inbox.settle(second, done('two'))
      assert.deepEqual(await types(messageId), ['admitted', 'started', 'answered', 'ended'])
    })
  })

  test('CL-1 a story has its deliveries and the webhooks of its task; the URL and the errors are for the owner', async () => {
    const id = await harness.workspace()
    const { deliveries, pushConfigs } = harness.local
    const door = `story-${id}`
    const { taskId } = await harness.run({ ...letterTo(id), replyTo: { door, channel: 'general' } }, done('hello'))
    const sent = await deliveries.take(door)
    await deliveries.finish(sent?.id ?? '', { type: 'unknown', error: 'the connection broke' })
    const open = (await harness.local.reception.admit(letterTo(id))).taskId
    const config = { taskId: open, id: 'hook', url: 'https://example.com/secret' }
    await pushConfigs.put({ workspaceId: id, version: '1.0', config, afterSeq: 0 })
    const shown = async (name: string, detail: boolean) => (await tell(name, { detail })).deliveries
    const delivery = { to: `${door} general`, state: 'unknown', tries: 1, error: undefined }
    assert.deepEqual(await shown(taskId, false), [delivery])
    assert.deepEqual(await shown(taskId, true), [{ ...delivery, error: 'the connection broke' }])
    assert.deepEqual(
      [await shown(open, false), await shown(open, true)],
      [
        [{ to: 'webhook', state: 'active', tries: 0, error: undefined }],
        [{ to: 'webhook https://example.com', state: 'active', tries: 0, error: undefined }],
      ],
    )
  })

  test('CL-1 PL-12 a workspace reads the stories of what its conversations sent, and a conversation only its own', async () => {
    const id = await harness.workspace()
    const { taskId } = await harness.local.reception.admit(letterTo(id, { principal: 'ws:A/c1' }))
    for (const principal of ['ws:A', 'ws:A/c1']) assert.equal((await tell(taskId, { principal })).task_id, taskId)
    for (const principal of ['ws:A/c2', 'ws:AB', 'ws:B']) await refuses(taskId, { principal })
  })
}
