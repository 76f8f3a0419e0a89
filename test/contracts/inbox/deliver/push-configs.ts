/** Push configs: one worker at a time, a cursor that only success moves, and a limit of tries. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../../src/clock.ts'
import { createPushConfigs } from '../../../../src/inbox/deliver/push-configs.ts'
import type { NewPush } from '../../../../src/inbox/delivery.ts'
import { createTokens } from '../../../../src/workspaces/tokens/token-store.ts'
import { grantOf } from '../../../../src/workspaces/tokens.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { done, hasCode, type InboxHarness } from '../harness.ts'

export function pushConfigTests(harness: InboxHarness): void {
  const made = async (more: Partial<NewPush['config']> = {}) => {
    const workspaceId = await harness.workspace()
    const { taskId } = await harness.local.reception.admit(letterTo(workspaceId))
    const config = { taskId, id: 'hook', url: 'https://a.test/', token: 'secret', ...more }
    await harness.local.pushConfigs.put({ workspaceId, version: '1.0', config, afterSeq: 0 })
    return { workspaceId, taskId, config }
  }
  /** For this task only: other tests leave configs behind. */
  const claim = async (taskId: string, configs = harness.local.pushConfigs) =>
    (await configs.claim(1000)).find((push) => push.taskId === taskId)
  const due = (taskId: string) => harness.sql('update push_configs set next_at = 0 where task_id = $1', taskId)

  /** Time passes for the webhooks of this task. */
  const pass = (taskId: string, ms: number) =>
    harness.sql('update push_configs set next_at = next_at - $2 where task_id = $1', taskId, ms)
  const MINUTE_MS = 60_000

  test('PL-5 a webhook is claimed by one worker for a minute, as long as it renews; a restart of its host frees it', async () => {
    const { taskId } = await made()
    const other = createPushConfigs(harness.store, 'other-host')
    const push = await claim(taskId)
    assert.ok(push)
    await pass(taskId, MINUTE_MS / 2)
    assert.equal(await claim(taskId, other), undefined)
    await harness.local.pushConfigs.renew([push])
    await pass(taskId, MINUTE_MS / 2)
    assert.equal(await claim(taskId, other), undefined)
    await other.renew([push])
    await pass(taskId, MINUTE_MS / 2)
    assert.ok(await claim(taskId, other), 'the end of the claim frees it')
    await harness.newInbox().recover()
    assert.equal(await claim(taskId), undefined, 'another host has it')
    await other.release(push)
    assert.ok(await claim(taskId))
    await harness.newInbox().recover()
    assert.ok(await claim(taskId, other), 'a restart of its host frees it')
  })

  test('PL-5 the webhook that has waited longest is sent first', async () => {
    const [first, second] = [await made(), await made()]
    await harness.sql('update push_configs set next_at = -2 where task_id = $1', second.taskId)
    await harness.sql('update push_configs set next_at = -1 where task_id = $1', first.taskId)
    const { pushConfigs } = harness.local
    const claimed = [...(await pushConfigs.claim(1)), ...(await pushConfigs.claim(1))]
    assert.deepEqual(
      claimed.map(({ taskId }) => taskId),
      [second.taskId, first.taskId],
    )
  })

  test('PL-5 a webhook begins behind the entry that its caller knows, belongs to its workspace, and keeps its place when replaced', async () => {
    const { workspaceId, taskId, config } = await made()
    const { pushConfigs } = harness.local
    const put = (id: string, afterSeq: number) =>
      pushConfigs.put({ workspaceId, version: '1.0', config: { ...config, id }, afterSeq })
    const { cursor } = await put('later', 9)
    assert.equal(cursor.seq, 9)
    assert.ok(cursor.k > 10_000, 'behind every event of that entry')
    assert.deepEqual((await put('later', 0)).cursor, cursor)
    const ids = async (of: string) => (await pushConfigs.list(of, taskId)).map(({ id }) => id)
    const other = await harness.workspace()
    assert.deepEqual([await ids(workspaceId), await ids(other)], [['hook', 'later'], []])
    assert.equal(await pushConfigs.remove({ workspaceId: other, taskId, id: 'later' }), false)
    assert.equal(await pushConfigs.remove({ workspaceId, taskId, id: 'later' }), true)
    assert.deepEqual(await ids(workspaceId), ['hook'])
  })

  test('PL-5 a success ends a row of failures, and a change of the task does not hasten the next try after one', async () => {
    const { workspaceId, taskId } = await made()
    const { pushConfigs } = harness.local
    const failAgain = async () => {
      await due(taskId)
      const push = await claim(taskId)
      return push && (await pushConfigs.fail(push, 'HTTP 500'))
    }
    for (let tries = 1; tries < 10; tries++) assert.equal(await failAgain(), 'later')
    await pushConfigs.nudge(workspaceId, taskId)
    assert.equal(await claim(taskId), undefined)
    await due(taskId)
    const push = await claim(taskId)
    assert.ok(push && (await pushConfigs.advance(push, { seq: 1, k: 1 })))
    assert.equal(await failAgain(), 'later', 'it is the first failure again')
  })

  test('two hosts that find the same push config due at the same moment: one claims it', async () => {
    const { taskId } = await made()
    const other = createPushConfigs(harness.store, 'other-host')
    const claims = await Promise.all([claim(taskId), claim(taskId, other)])
    assert.equal(claims.filter((push) => push !== undefined).length, 1)
  })

  test('the cursor moves with each success, and the next claim starts there', async () => {
    const { taskId } = await made()
    const push = await claim(taskId)
    assert.ok(push)
    assert.ok(await harness.local.pushConfigs.advance(push, { seq: 7, k: 2 }))
    await harness.local.pushConfigs.release(push)
    assert.deepEqual((await claim(taskId))?.cursor, { seq: 7, k: 2 })
  })

  test('a push config is given up after ten failures, shows the reason, and starts again when it is put again', async () => {
    const { workspaceId, taskId, config } = await made()
    const { pushConfigs } = harness.local
    for (let tries = 1; tries <= 10; tries++) {
      await due(taskId)
      const push = await claim(taskId)
      assert.ok(push, `try ${tries}`)
      assert.equal(await pushConfigs.fail(push, 'HTTP 500'), tries < 10 ? 'later' : 'given_up')
      assert.equal(await claim(taskId), undefined, 'not before the retry delay')
    }
    await due(taskId)
    assert.equal(await claim(taskId), undefined)
    assert.equal((await pushConfigs.list(workspaceId, taskId))[0]?.failed, 'HTTP 500')
    await pushConfigs.put({ workspaceId, version: '1.0', config, afterSeq: 0 })
    const again = await claim(taskId)
    assert.ok(again)
    assert.equal(again.failed, undefined)
  })

  test('the delay before the next call of a webhook doubles with each failure', async () => {
    const { taskId } = await made()
    const delays: number[] = []
    for (let tries = 1; tries <= 5; tries++) {
      await due(taskId)
      const push = await claim(taskId)
      assert.ok(push, `try ${tries}`)
      await harness.local.pushConfigs.fail(push, 'HTTP 500')
      const [row] = await harness.sql(
        'select next_at - now_ms() as wait_ms from push_configs where task_id = $1',
        taskId,
      )
      delays.push(Number(row?.['wait_ms']))
    }
    // A slow machine takes some of the wait; the next smaller value is half of it.
    for (const [index, expectedMs] of [2000, 4000, 8000, 16_000, 32_000].entries()) {
      const delayMs = delays[index] ?? 0
      assert.ok(delayMs > expectedMs * 0.6 && delayMs <= expectedMs, `${delays}`)
    }
  })

  test('a push config that fails for a day is given up after any number of tries', async () => {
    const { taskId } = await made()
    const first = await claim(taskId)
    assert.ok(first)
    assert.equal(await harness.local.pushConfigs.fail(first, 'x'), 'later')
    await harness.sql('update push_configs set first_failed_at = first_failed_at - 86400000 where task_id = $1', taskId)
    await due(taskId)
    const second = await claim(taskId)
    assert.ok(second)
    assert.equal(await harness.local.pushConfigs.fail(second, 'x'), 'given_up')
  })

  test('the worker of a push config that was replaced or deleted learns it', async () => {
    const { workspaceId, taskId, config } = await made()
    const { pushConfigs } = harness.local
    const push = await claim(taskId)
    assert.ok(push)
    assert.ok(await pushConfigs.isCurrent(push))
    await pushConfigs.put({ workspaceId, version: '1.0', config: { ...config, url: 'https://b.test/' }, afterSeq: 0 })
    assert.ok(!(await pushConfigs.isCurrent(push)))
    assert.ok(!(await pushConfigs.advance(push, { seq: 1, k: 1 })))
    assert.equal(await pushConfigs.fail(push, 'x'), 'later')
    const next = await claim(taskId)
    assert.equal(next?.config.url, 'https://b.test/')
    assert.ok(await pushConfigs.remove(push))
    assert.ok(!(await pushConfigs.remove(push)))
    assert.ok(next && !(await pushConfigs.isCurrent(next)))
  })

  test('a push config is idle while its task waits, due when nudged, and done with its task', async () => {
    const { workspaceId, taskId } = await made()
    const { pushConfigs } = harness.local
    const push = await claim(taskId)
    assert.ok(push)
    await pushConfigs.idle(push)
    await pass(taskId, MINUTE_MS / 2)
    assert.equal(await claim(taskId), undefined)
    await pass(taskId, MINUTE_MS / 2)
    assert.ok(await claim(taskId), 'it looks again after a minute')
    await pushConfigs.idle(push)
    await pushConfigs.nudge(workspaceId, taskId)
    assert.ok(await claim(taskId))
    await pushConfigs.nudge(workspaceId, taskId)
    assert.equal(await claim(taskId), undefined, 'a worker sends for it')
    await harness.withWorker(workspaceId, async (worker) => {
      await harness.local.inbox.settle(await worker.lease(), done('ok'))
    })
    await pushConfigs.idle(push)
    await due(taskId)
    assert.equal(await claim(taskId), undefined)
    assert.equal((await pushConfigs.list(workspaceId, taskId)).length, 1)
  })

  test('a task has at most ten push configs', async () => {
    const { workspaceId, config } = await made()
    const put = (id: string) =>
      harness.local.pushConfigs.put({ workspaceId, version: '1.0', config: { ...config, id }, afterSeq: 0 })
    for (let count = 2; count <= 10; count++) await put(`hook-${count}`)
    await assert.rejects(put('one-too-many'), hasCode('invalid_request'))
    await put('hook-3')
  })

  test('PL-12 PL-19 a push config ends with the token that set it, and with its secret; it shows why', async () => {
    const { pushConfigs } = harness.local
    const tokens = createTokens({ store: harness.store, clock: systemClock, adminToken: 'the-admin-token' })
    const claimed = async () => {
      const token = await tokens.create({ name: 'program', role: 'member' })
      const identity = await tokens.verify(token.secret)
      assert.ok(identity)
      const { workspaceId, taskId, config } = await made()
      await pushConfigs.put({ workspaceId, version: '1.0', config, afterSeq: 0, setBy: grantOf(identity) })
      const push = await claim(taskId)
      assert.ok(push)
      assert.equal(await pushConfigs.isCurrent(push), true)
      const failed = async () => [
        await pushConfigs.isCurrent(push),
        (await pushConfigs.list(workspaceId, taskId))[0]?.failed,
      ]
      return { tokenId: token.id, failed }
    }
    const [revoked, rotated, expired, other] = [await claimed(), await claimed(), await claimed(), await claimed()]
    await tokens.revoke(revoked.tokenId)
    assert.deepEqual(await revoked.failed(), [false, 'the token was revoked'])
    const { workspaceId, config } = await made()
    const late = { workspaceId, version: '1.0', config, afterSeq: 0 } as const
    const setBy = { tokenId: revoked.tokenId, secretId: 'known to another node' }
    await assert.rejects(pushConfigs.put({ ...late, setBy }), hasCode('unauthenticated'))
    await tokens.rotate(rotated.tokenId, 60_000)
    assert.deepEqual(await rotated.failed(), [true, undefined], 'within the overlap')
    await harness.sql('update tokens set old_until = 1 where id = $1', rotated.tokenId)
    assert.deepEqual(await rotated.failed(), [false, 'the secret of the token was replaced'])
    await harness.sql('update tokens set expires_at = 1 where id = $1', expired.tokenId)
    assert.deepEqual(await expired.failed(), [false, 'the token has expired'])
    assert.deepEqual(await other.failed(), [true, undefined])
  })
}
