/** What happens when a message comes in: once, in its conversation, within the limits. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { MoleculeError } from '../../../src/errors.ts'
import { sql } from '../../../src/store/store.ts'
import { letterTo } from '../../fakes/letters.ts'
import { code, done, type InboxBench } from './harness.ts'

export function admission(bench: InboxBench): void {
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
