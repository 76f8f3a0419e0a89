/** What happens when a message comes in: once, in its conversation, within the limits. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MoleculeError } from '../../../src/errors.ts'
import { ulid } from '../../../src/ids.ts'
import { sql } from '../../../src/store/store.ts'
import { letterTo } from '../../fakes/letters.ts'
import { code, done, type InboxBench } from './harness.ts'

export function admission(bench: InboxBench): void {
  const conversations = (id: string, contextId: string) =>
    bench.sql(
      'select id, last_n from conversations where workspace_id = $1 and context_id = $2 order by principal',
      id,
      contextId,
    )
  /** How many messages each conversation of that name has had, by principal. */
  const depths = async (id: string, contextId: string) =>
    (await conversations(id, contextId)).map(({ last_n: messages }) => messages)

  test('IN-1 the same message again attaches to its task in whatever state and runs nothing', async () => {
    const id = await bench.workspace()
    await bench.withHand(id, async (hand) => {
      const letter = letterTo(id, { messageId: 'same', text: 'once' })
      const first = await bench.local.reception.admit(letter)
      await bench.local.inbox.settle(await hand.lease(), done('answer'))
      const again = await bench.local.reception.admit(letterTo(id, { messageId: 'same', text: 'once' }))
      assert.deepEqual(again, { ...first, duplicate: true })
      assert.ok(await hand.idle())
    })
  })

  test('IN-1 concurrent duplicates are one message', async () => {
    const id = await bench.workspace()
    const all = await Promise.all(
      Array.from({ length: 20 }, () => bench.local.reception.admit(letterTo(id, { messageId: 'storm', text: 'x' }))),
    )
    assert.equal(new Set(all.map(({ taskId }) => taskId)).size, 1)
    assert.equal(all.filter(({ duplicate }) => !duplicate).length, 1)
    assert.deepEqual(await bench.load(id), { running: 0, waiting: 1 })
  })

  test('IN-1 the same key with other content is a conflict; from another principal it is another message', async () => {
    const id = await bench.workspace()
    await bench.local.reception.admit(letterTo(id, { messageId: 'key', text: 'one' }))
    await assert.rejects(
      bench.local.reception.admit(letterTo(id, { messageId: 'key', text: 'two' })),
      code('idempotency_conflict'),
    )
    const other = await bench.local.reception.admit(letterTo(id, { messageId: 'key', text: 'two', principal: 'ws:x' }))
    assert.equal(other.duplicate, false)
    const byKey = await bench.local.reception.admit(letterTo(id, { messageId: 'a', idempotencyKey: 'k1', text: 'z' }))
    const again = await bench.local.reception.admit(letterTo(id, { messageId: 'b', idempotencyKey: 'k1', text: 'z' }))
    assert.deepEqual(again, { ...byKey, duplicate: true })
  })

  test('a task is found by its own principal only, and a context that does not fit is refused', async () => {
    const id = await bench.workspace()
    const { taskId } = await bench.local.reception.admit(letterTo(id, { principal: 'ws:a' }))
    await assert.rejects(bench.local.reception.admit(letterTo(id, { taskId, principal: 'ws:b' })), code('not_found'))
    await assert.rejects(
      bench.local.reception.admit(letterTo(id, { taskId, contextId: 'elsewhere', principal: 'ws:a' })),
      code('invalid_request'),
    )
    assert.equal(await bench.local.reception.task(taskId, { principal: 'ws:b' }), undefined)
    assert.equal((await bench.local.reception.task(taskId, { principal: 'ws:a' }))?.id, taskId)
  })

  test('a task is called like the message that opened it, and that like its request; later ones have names of their own', async () => {
    const id = await bench.workspace()
    const { reception, inbox } = bench.local
    await bench.withHand(id, async (hand) => {
      const request = ulid()
      const { taskId } = await reception.admit({ ...letterTo(id), id: request })
      const later = { ...letterTo(id, { taskId }), id: ulid() }
      await reception.admit(later)
      const opening = await hand.lease()
      assert.deepEqual([taskId, opening.taskId, opening.messageId], [request, request, request])
      await inbox.settle(opening, done('first'))
      assert.equal(await bench.state(taskId), 'TASK_STATE_WORKING')
      const next = await hand.lease()
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

  test('a context that we made is continued by its name, and one that a sender named is one conversation', async () => {
    const id = await bench.workspace()
    const { reception } = bench.local
    const { contextId } = await reception.admit(letterTo(id))
    assert.equal((await reception.admit(letterTo(id, { contextId }))).contextId, contextId)
    await reception.admit(letterTo(id, { contextId: 'mine' }))
    await reception.admit(letterTo(id, { contextId: 'mine' }))
    // What a conversation is called inside is no name of its context.
    const [mine] = await conversations(id, 'mine')
    await reception.admit(letterTo(id, { contextId: String(mine?.['id']) }))
    assert.deepEqual(await depths(id, contextId), [2])
    assert.deepEqual(await depths(id, 'mine'), [2])
    assert.deepEqual(await depths(id, String(mine?.['id'])), [1])
  })

  test('whoever names a context that we made for somebody else has a conversation of his own', async () => {
    const [id, elsewhere] = [await bench.workspace(), await bench.workspace()]
    const { reception } = bench.local
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

  test('a full queue refuses with a time to come again, and an unknown workspace is not found', async () => {
    const id = await bench.workspace()
    await bench.store.write(function* () {
      yield* sql('update workspace_load set waiting = 1000 where workspace_id = $1', [id])
    })
    await assert.rejects(bench.local.reception.admit(letterTo(id)), (error) => {
      return code('queue_full')(error) && Number((error as MoleculeError).details['retryAfterMs']) > 0
    })
    await assert.rejects(bench.local.reception.admit(letterTo('ws_none')), code('not_found'))
  })
}
