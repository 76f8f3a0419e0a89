/** Admission: a message is admitted once, into its conversation, within the limits. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ulid } from '../../../../src/ids.ts'
import type { Admitted } from '../../../../src/inbox/reception.ts'
import { sql } from '../../../../src/store/store.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { manualClock } from '../../../fakes/manual-clock.ts'
import { done, failure, hasCode, type InboxHarness } from '../harness.ts'

export function admitTests(harness: InboxHarness): void {
  const conversations = (id: string, contextId: string) =>
    harness.sql(
      'select id, last_n from conversations where workspace_id = $1 and context_id = $2 order by principal',
      id,
      contextId,
    )
  /** How many messages each conversation of that context has had, by principal. */
  const depths = async (id: string, contextId: string) =>
    (await conversations(id, contextId)).map(({ last_n: messages }) => messages)

  test('IN-1 the same message again attaches to its task in any state and runs nothing', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const letter = letterTo(id, { messageId: 'same', text: 'once' })
      const first = await harness.local.reception.admit(letter)
      await harness.local.inbox.settle(await worker.lease(), done('answer'))
      const again = await harness.local.reception.admit(letterTo(id, { messageId: 'same', text: 'once' }))
      assert.deepEqual(again, { ...first, duplicate: true })
      assert.ok(await worker.idle())
    })
  })

  test('IN-1 concurrent duplicates are one message', async () => {
    const id = await harness.workspace()
    const all = await Promise.all(
      Array.from({ length: 20 }, () => harness.local.reception.admit(letterTo(id, { messageId: 'storm', text: 'x' }))),
    )
    assert.equal(new Set(all.map(({ taskId }) => taskId)).size, 1)
    assert.equal(all.filter(({ duplicate }) => !duplicate).length, 1)
    assert.deepEqual(await harness.load(id), { running: 0, waiting: 1 })
  })

  test('IN-1 a named key with other content is a conflict; from another principal it is another message', async () => {
    const id = await harness.workspace()
    const { reception } = harness.local
    const admit = (options: object) => reception.admit(letterTo(id, { idempotencyKey: 'key', ...options }))
    const first = await admit({ messageId: 'a', text: 'one' })
    assert.deepEqual(await admit({ messageId: 'b', text: 'one' }), { ...first, duplicate: true })
    const other = await reception.admit(letterTo(id, { text: 'one' }))
    const conflict = {
      code: 'idempotency_conflict',
      message: 'this idempotency key was used before with other content',
      details: { taskId: first.taskId },
    }
    for (const messageId of ['a', 'c']) await assert.rejects(admit({ messageId, text: 'two' }), conflict)
    for (const place of [{ contextId: 'elsewhere' }, { taskId: other.taskId }]) {
      await assert.rejects(admit({ text: 'one', ...place }), conflict)
    }
    assert.equal((await admit({ messageId: 'a', text: 'two', principal: 'ws:x' })).duplicate, false)
  })

  test('IN-1 other content under the same message id is another message, and each repeat finds its own task', async () => {
    const id = await harness.workspace()
    const { reception } = harness.local
    const admit = (options: object) => reception.admit(letterTo(id, { messageId: 'fixed', ...options }))
    const letters = [{ text: 'one' }, { text: 'two' }, { text: 'three', contextId: 'here' }]
    const tasks = [await admit(letters[0] ?? {}), await admit(letters[1] ?? {}), await admit(letters[2] ?? {})]
    assert.ok(tasks.every(({ duplicate }) => !duplicate))
    assert.equal(new Set(tasks.map(({ taskId }) => taskId)).size, 3)
    for (const [index, letter] of letters.entries()) {
      const { taskId, contextId } = tasks[index] as (typeof tasks)[number]
      for (const more of [{}, { contextId }, { taskId }, { taskId, contextId }]) {
        assert.deepEqual(await admit({ ...letter, ...more }), { taskId, contextId, duplicate: true })
      }
    }
    const storm = await Promise.all(Array.from({ length: 20 }, () => admit({ text: 'four' })))
    assert.equal(new Set(storm.map(({ taskId }) => taskId)).size, 1)
    assert.equal(storm.filter(({ duplicate }) => !duplicate).length, 1)
    assert.deepEqual(await harness.load(id), { running: 0, waiting: 4 })
  })

  test('IN-1 the same content under one message id in another context or task is another message too', async () => {
    const id = await harness.workspace()
    const { reception } = harness.local
    const admit = (options: object) => reception.admit(letterTo(id, { messageId: 'yes', text: 'yes', ...options }))
    const open = await reception.admit(letterTo(id))
    const places = [{ contextId: 'here' }, { contextId: 'there' }, { contextId: 'elsewhere' }, { taskId: open.taskId }]
    const admitted: Admitted[] = []
    for (const place of places) admitted.push(await admit(place))
    assert.ok(admitted.every(({ duplicate }) => !duplicate))
    assert.deepEqual(
      admitted.map(({ contextId }) => contextId),
      ['here', 'there', 'elsewhere', open.contextId],
    )
    assert.equal(admitted[3]?.taskId, open.taskId)
    for (const [index, place] of places.entries()) {
      assert.deepEqual(await admit(place), { ...admitted[index], duplicate: true })
    }
    assert.deepEqual(await admit({}), { ...admitted[0], duplicate: true }, 'without a place it is the first')
    assert.deepEqual(await harness.load(id), { running: 0, waiting: 5 })
  })

  test('IN-1 messages under one message id have keys of their own for their agent', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const keys: string[] = []
      for (const text of ['one', 'two', 'three']) {
        await harness.local.reception.admit(letterTo(id, { messageId: 'fixed', text }))
        const lease = await worker.lease()
        assert.equal(lease.envelope.message.messageId, 'fixed')
        keys.push(lease.idempotencyKey)
        await harness.local.inbox.settle(lease, done(text))
      }
      assert.equal(keys[0], 'fixed')
      assert.equal(new Set(keys).size, 3, keys.join())
    })
  })

  test('IN-1 a repeat finds its task when the first message under its id is deleted', async () => {
    const id = await harness.workspace()
    const { reception } = harness.local
    const admit = (text: string) => reception.admit(letterTo(id, { messageId: 'fixed', text }))
    const [first, second] = [await admit('one'), await admit('two')]
    await harness.sql('delete from messages where id = $1', first.taskId)
    assert.deepEqual(await admit('two'), { ...second, duplicate: true })
    const third = await admit('three')
    assert.equal(third.duplicate, false)
    assert.deepEqual(await admit('three'), { ...third, duplicate: true })
    assert.deepEqual(await admit('two'), { ...second, duplicate: true })
  })

  test('IN-1 RE-4 the replay of a dead letter has its key, also that of a later message under one id', async () => {
    const id = await harness.workspace()
    const { reception, inbox, deadLetters } = harness.local
    await harness.withWorker(id, async (worker) => {
      const admit = (text: string) => reception.admit(letterTo(id, { messageId: 'fixed', text }))
      const replays: string[] = []
      for (const text of ['one', 'two']) {
        const { taskId } = await admit(text)
        await inbox.settle(await worker.lease(), { type: 'dead', failure })
        replays.push(await deadLetters.replay(id, taskId))
        await inbox.settle(await worker.lease(), done(text))
      }
      for (const [index, text] of ['one', 'two'].entries()) {
        const again = await admit(text)
        assert.deepEqual([again.taskId, again.duplicate], [replays[index], true])
      }
    })
  })

  test('a task is found by its own principal only, and a context that does not match is refused', async () => {
    const id = await harness.workspace()
    const { taskId } = await harness.local.reception.admit(letterTo(id, { principal: 'ws:a' }))
    await assert.rejects(
      harness.local.reception.admit(letterTo(id, { taskId, principal: 'ws:b' })),
      hasCode('not_found'),
    )
    const elsewhere = letterTo(await harness.workspace(), { taskId, principal: 'ws:a' })
    await assert.rejects(harness.local.reception.admit(elsewhere), hasCode('not_found'))
    await assert.rejects(
      harness.local.reception.admit(letterTo(id, { taskId, contextId: 'elsewhere', principal: 'ws:a' })),
      hasCode('invalid_request'),
    )
    assert.equal(await harness.local.reception.task(taskId, { principal: 'ws:b' }), undefined)
    assert.equal((await harness.local.reception.task(taskId, { principal: 'ws:a' }))?.id, taskId)
  })

  test('IN-2 a message that a waiting worker takes at once has the same lease as one from the queue', async () => {
    const id = await harness.workspace(2)
    const { reception, inbox } = harness.local
    const letter = () => letterTo(id, { text: 'hi', principal: 'ws:a/c', idempotencyKey: `key ${ulid()}` })
    const queued = letter()
    await reception.admit(queued)
    await harness.withWorker(id, async (worker) => {
      const fromQueue = await worker.lease()
      const direct = letter()
      await reception.admit(direct)
      const atOnce = await worker.lease()
      const { messageId, taskId, contextId, conversationId } = atOnce
      assert.deepEqual(atOnce, {
        ...fromQueue,
        messageId,
        taskId,
        contextId,
        conversationId,
        envelope: direct.envelope,
        idempotencyKey: direct.idempotencyKey,
      })
      assert.deepEqual(fromQueue.envelope, queued.envelope)
      for (const lease of [fromQueue, atOnce]) await inbox.settle(lease, done('ok'))
    })
  })

  test('IN-2 a new message does not overtake one of another conversation that is ready', async () => {
    const id = await harness.workspace()
    const clock = manualClock()
    const local = harness.newInbox(clock)
    const worker = harness.worker(id, local)
    assert.ok(await worker.idle())
    const tasks: string[] = []
    for (const slots of [1, 1, 3]) {
      await harness.sql('update workspace_load set slots = $2 where workspace_id = $1', id, slots)
      tasks.push((await local.reception.admit(letterTo(id))).taskId)
    }
    const first = await worker.lease()
    assert.ok(await worker.idle(), 'the third message leaves the free slot to the second')
    clock.advance(5000)
    const leases = [first, await worker.lease(), await worker.lease()]
    assert.deepEqual(
      leases.map(({ taskId }) => taskId),
      tasks,
    )
    for (const lease of leases) await local.inbox.settle(lease, done('ok'))
    await worker.leave()
    local.close()
  })

  test('a task has the id of the message that opened it, and that has the id of its request; later messages have their own', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    await harness.withWorker(id, async (worker) => {
      const request = ulid()
      const { taskId } = await reception.admit({ ...letterTo(id), id: request })
      const later = { ...letterTo(id, { taskId }), id: ulid() }
      await reception.admit(later)
      const opening = await worker.lease()
      assert.deepEqual([taskId, opening.taskId, opening.messageId], [request, request, request])
      await inbox.settle(opening, done('first'))
      assert.equal(await harness.state(taskId), 'TASK_STATE_WORKING')
      const next = await worker.lease()
      assert.deepEqual([next.taskId, next.messageId], [taskId, later.id])
      await inbox.settle(next, done('second'))
      const task = await reception.task(taskId)
      assert.equal(task?.status.state, 'TASK_STATE_COMPLETED')
      assert.deepEqual(
        task?.artifacts?.map(({ artifactId }) => artifactId),
        [`reply-${taskId}`, `reply-${later.id}`],
      )
    })
  })

  test('a context that we created continues by its id, and a context that a sender named is one conversation', async () => {
    const id = await harness.workspace()
    const { reception } = harness.local
    const { contextId } = await reception.admit(letterTo(id))
    assert.equal((await reception.admit(letterTo(id, { contextId }))).contextId, contextId)
    await reception.admit(letterTo(id, { contextId: 'mine' }))
    await reception.admit(letterTo(id, { contextId: 'mine' }))
    // The internal id of a conversation is not the id of its context.
    const [mine] = await conversations(id, 'mine')
    await reception.admit(letterTo(id, { contextId: String(mine?.['id']) }))
    assert.deepEqual(await depths(id, contextId), [2])
    assert.deepEqual(await depths(id, 'mine'), [2])
    assert.deepEqual(await depths(id, String(mine?.['id'])), [1])
  })

  test('a sender that names a context created for another sender gets its own conversation', async () => {
    const [id, elsewhere] = [await harness.workspace(), await harness.workspace()]
    const { reception } = harness.local
    const { contextId, taskId } = await reception.admit(letterTo(id, { principal: 'ws:a' }))
    const strangers = [
      letterTo(id, { contextId, principal: 'ws:b' }),
      letterTo(elsewhere, { contextId, principal: 'ws:a' }),
    ]
    for (const stranger of strangers) assert.equal((await reception.admit(stranger)).contextId, contextId)
    await reception.admit(letterTo(id, { contextId, principal: 'ws:b' }))
    await reception.admit(letterTo(elsewhere, { contextId, principal: 'ws:a' }))
    await reception.admit(letterTo(id, { contextId, taskId, principal: 'ws:a' }))
    await reception.admit(letterTo(id, { contextId, principal: 'ws:a' }))
    assert.deepEqual(await depths(id, contextId), [3, 2])
    assert.deepEqual(await depths(elsewhere, contextId), [2])
  })

  test('a full queue refuses with a time to retry, and an unknown workspace is not found', async () => {
    const id = await harness.workspace()
    await harness.store.write(function* () {
      yield* sql('update workspace_load set waiting = 1000 where workspace_id = $1', [id])
    })
    await assert.rejects(harness.local.reception.admit(letterTo(id)), {
      code: 'queue_full',
      message: "the workspace's queue is full: 1000 messages wait",
      details: { retryAfterMs: 5000 },
    })
    await assert.rejects(harness.local.reception.admit(letterTo('ws_none')), hasCode('not_found'))
  })

  test('TW-5 a delegation gets the path of the message that its conversation runs, or ran last', async () => {
    const [a, b, c] = [await harness.workspace(), await harness.workspace(), await harness.workspace()]
    const { reception, inbox } = harness.local
    const path = async (taskId: string) => (await reception.task(taskId))?.history?.[0]?.metadata?.['molecule_path']
    await harness.withWorker(a, async (worker) => {
      await reception.admit(letterTo(a))
      const root = await worker.lease()
      const parent = { workspaceId: a, conversationId: root.conversationId }
      const { taskId } = await reception.admit({ ...letterTo(b), parent })
      assert.deepEqual(await path(taskId), [a])
      await assert.rejects(reception.admit({ ...letterTo(a), parent }), /circle: .* -> /)
      await inbox.settle(root, done('the turn ended, its process did not'))
      await assert.rejects(
        reception.send({ ...letterTo(a), parent }, { maxMs: 0 }, AbortSignal.timeout(1000)),
        /circle/,
      )
    })
    await harness.withWorker(b, async (worker) => {
      const child = await worker.lease()
      const parent = { workspaceId: b, conversationId: child.conversationId }
      const next = await reception.admit({ ...letterTo(c), parent })
      assert.deepEqual(await path(next.taskId), [a, b])
      await assert.rejects(reception.admit({ ...letterTo(a), parent }), hasCode('forbidden'))
      await inbox.settle(child, done('ok'))
      await assert.rejects(reception.admit({ ...letterTo(a), parent }), /circle/)
      // A conversation of another workspace has no message here.
      const foreign = { workspaceId: c, conversationId: child.conversationId }
      assert.deepEqual(await path((await reception.admit({ ...letterTo(a), parent: foreign })).taskId), [c])
    })
  })

  test('PL-9 all conversations of a sending workspace have one share of a queue', async () => {
    const id = await harness.workspace()
    const { reception } = harness.local
    const send = (n: number) => reception.admit(letterTo(id, { principal: `ws:greedy/c${n}`, contextId: `c${n % 7}` }))
    const sent = await Promise.all(Array.from({ length: 500 }, (_, n) => send(n)))
    await assert.rejects(send(1000), { code: 'queue_full', retryable: true, details: { retryAfterMs: 5000 } })
    await assert.rejects(reception.admit(letterTo(id, { principal: 'ws:greedy' })), hasCode('queue_full'))
    await reception.admit(letterTo(id, { principal: 'ws:greedy2/c1' }))
    await reception.admit(letterTo(id))
    // Its share of another queue is its own, and a message that has ended waits no more.
    await reception.admit(letterTo(await harness.workspace(), { principal: 'ws:greedy/c1' }))
    for (const { taskId } of sent.slice(0, 2)) await reception.cancel(taskId)
    await send(1001)
    await harness.local.queues.end(id, failure)
  })

  test('PL-9 one principal gets at most half of what the others leave free in a queue', async () => {
    const id = await harness.workspace()
    const { reception } = harness.local
    const admit = (principal: string, count: number) =>
      Promise.all(
        Array.from({ length: count }, (_, n) => reception.admit(letterTo(id, { principal, contextId: `c${n % 7}` }))),
      )
    await harness.withWorker(id, async (worker) => {
      // One turn runs, so messages wait behind it too.
      await reception.admit(letterTo(id, { principal: 'token:greedy', contextId: 'c0' }))
      await worker.lease()
      await admit('token:greedy', 500)
      const isOverShare = (error: unknown) => hasCode('queue_full')(error) && /share/.test((error as Error).message)
      await assert.rejects(reception.admit(letterTo(id, { principal: 'token:greedy' })), isOverShare)
      await assert.rejects(reception.admit(letterTo(id, { principal: 'token:greedy', contextId: 'c0' })), isOverShare)
      await admit('people', 250)
      await assert.rejects(reception.admit(letterTo(id)), isOverShare)
      await reception.admit(letterTo(id, { principal: 'token:late' }))
      assert.deepEqual(await harness.load(id), { running: 1, waiting: 751 })
    })
    await harness.local.queues.end(id, failure)
  })
}
