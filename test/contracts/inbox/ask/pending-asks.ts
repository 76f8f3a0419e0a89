/** Permissions: a running turn asks, an owner answers once, and a timeout denies. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Lease, leaseId } from '../../../../src/inbox/worker.ts'
import { sql } from '../../../../src/store/store.ts'
import { readPendingAsks } from '../../../../src/views/needs/pending-asks.ts'
import { readStory } from '../../../../src/views/story/story.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { hasCodeAndText } from '../../../harness/check-error.ts'
import { done, hasCode, type InboxHarness, type TestWorker } from '../harness.ts'
import { storeWith, sweepUntil, withNode } from '../nodes.ts'

const answerer = (name: string) => ({ name, principal: `token:${name}`, door: 'http' })

export function pendingAskTests(harness: InboxHarness): void {
  const request = {
    kind: 'permission',
    id: '1',
    parts: [{ text: 'waiting' }],
    tool: 'Bash',
    subject: 'rm -rf build',
  } as const
  const question = { kind: 'question', id: 'q', parts: [{ text: 'how many?' }] } as const
  const idOf = (lease: Lease, id = '1') => `${leaseId(lease)}.${id}`
  const list = async (query: { workspaceId?: string }) => (await readPendingAsks(harness.local.store, query)).pending
  const idsOf = async (workspaceId: string) => (await list({ workspaceId })).map((row) => row.id)
  /** That many running turns of the workspace. */
  const begin = async (id: string, worker: TestWorker, count: number): Promise<Lease[]> => {
    const leases: Lease[] = []
    while (leases.length < count) {
      await harness.local.reception.admit(letterTo(id))
      leases.push(await worker.lease())
    }
    return leases
  }
  const permissions = (workspaceId: string) => harness.activity(workspaceId, 'permission')
  const { ask, answered } = {
    async ask(id: string, worker: TestWorker): Promise<{ lease: Lease; pendingId: string }> {
      await harness.local.reception.admit(letterTo(id))
      const lease = await worker.lease()
      assert.equal(await harness.local.inbox.ask(lease, request), 'held')
      const [asked] = (await readPendingAsks(harness.local.store, { workspaceId: id })).pending
      return { lease, pendingId: asked?.id ?? '' }
    },
    async answered(worker: TestWorker) {
      const directive = await worker.next()
      return directive.type === 'answer' && [directive.askId, directive.parts]
    },
  }

  test("AG-16 a permission is listed with exactly what the agent would do, and an owner's answer reaches the turn", async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { lease, pendingId } = await ask(id, worker)
      assert.equal(await harness.state(lease.taskId), 'TASK_STATE_AUTH_REQUIRED')
      const [asked] = (await readPendingAsks(harness.local.store, {})).pending
      assert.ok((await readPendingAsks(harness.local.store, {})).pending.some((one) => one.id === pendingId))
      assert.ok(asked !== undefined && asked.expires_in > 29 * 60)
      const [own] = (await readPendingAsks(harness.local.store, { workspaceId: id })).pending
      assert.deepEqual([own?.tool, own?.subject, own?.task_id], ['Bash', 'rm -rf build', lease.taskId])
      await harness.local.pendingAsks.answer(pendingId, 'allowed', answerer('Ana'))
      assert.deepEqual(await answered(worker), ['1', []])
      assert.equal(await harness.state(lease.taskId), 'TASK_STATE_WORKING')
      assert.deepEqual((await readPendingAsks(harness.local.store, { workspaceId: id })).pending, [])
      await harness.local.inbox.settle(lease, done('gone'))
    })
    assert.deepEqual(
      (await permissions(id)).map(({ name, text, by, principal, door }) => [name, text, by, principal, door]),
      [['Bash', 'allowed', 'Ana', 'token:Ana', 'http']],
    )
  })

  test('AG-16 PL-23 the story says who answered an ask and through which door, also when the log is pruned', async () => {
    const id = await harness.workspace()
    const story = async (taskId: string, detail: boolean) => {
      const found = await readStory(harness.local.store, { id: taskId, scopeOf: () => ({ detail }) })
      return found.steps.flatMap(({ type, text }) => (type === 'permission' ? [text] : []))
    }
    await harness.withWorker(id, async (worker) => {
      const { lease, pendingId } = await ask(id, worker)
      await harness.local.pendingAsks.answer(pendingId, 'denied', answerer('Ana'))
      await harness.local.inbox.settle(lease, done('left alone'))
      const told = ['"Ana" (token:Ana) denied the use of Bash through http']
      assert.deepEqual(await story(lease.taskId, true), told)
      assert.deepEqual(await story(lease.taskId, false), ['a person denied the use of Bash'])
      await harness.store.write(() => sql('delete from events where task_id = $1', [lease.taskId]))
      assert.deepEqual(await story(lease.taskId, true), told)
    })
  })

  test('AG-16 an answer counts once: the same answer again changes nothing, another one is refused', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { lease, pendingId } = await ask(id, worker)
      const both = await Promise.allSettled([
        harness.local.pendingAsks.answer(pendingId, 'denied', answerer('Ana')),
        harness.local.pendingAsks.answer(pendingId, 'denied', answerer('Bo')),
      ])
      assert.deepEqual(
        both.map(({ status }) => status),
        ['fulfilled', 'fulfilled'],
      )
      await assert.rejects(
        harness.local.pendingAsks.answer(pendingId, 'allowed', answerer('Ana')),
        hasCode('unsupported_operation'),
      )
      assert.deepEqual(await answered(worker), ['1', undefined])
      // The sweep repeats the directive until the turn settles.
      while (!(await worker.idle())) assert.deepEqual(await answered(worker), ['1', undefined])
      await harness.local.inbox.settle(lease, done('left alone'))
      await assert.rejects(
        harness.local.pendingAsks.answer(pendingId, 'allowed', answerer('Ana')),
        hasCode('unsupported_operation'),
      )
    })
    assert.deepEqual(
      (await permissions(id)).map(({ text }) => text),
      ['denied'],
    )
    for (const unknown of ['', 'x', `${'x'.repeat(99)}.1.1`, '01M7FPH65GBDK8DY0646KAE617.1.1']) {
      await assert.rejects(harness.local.pendingAsks.answer(unknown, 'allowed', answerer('Ana')), hasCode('not_found'))
    }
  })

  test('AG-16 a message to the task is no permission: it waits behind the turn, and the task stays auth-required', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { lease, pendingId } = await ask(id, worker)
      await harness.local.reception.admit(letterTo(id, { taskId: lease.taskId, text: 'yes, allowed' }))
      assert.equal(await harness.state(lease.taskId), 'TASK_STATE_AUTH_REQUIRED')
      assert.ok(await worker.idle())
      await harness.local.pendingAsks.answer(pendingId, 'denied', answerer('Ana'))
      assert.deepEqual(await answered(worker), ['1', undefined])
      await harness.local.inbox.settle(lease, done('not done'))
      const behind = await worker.lease()
      assert.deepEqual(behind.envelope.message.parts, [{ text: 'yes, allowed' }])
      await harness.local.inbox.settle(behind, done('heard'))
      assert.equal(await harness.state(lease.taskId), 'TASK_STATE_COMPLETED')
    })
  })

  test('AG-16 an ask without an answer in time is denied, and a late answer is refused', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      await harness.local.reception.admit(letterTo(id))
      const lease = await worker.lease()
      await harness.local.inbox.ask(lease, { ...request, timeoutMs: 1 })
      const [asked] = (await readPendingAsks(harness.local.store, { workspaceId: id })).pending
      // The sweep denies it; it runs every few seconds.
      assert.deepEqual(await answered(worker), ['1', undefined])
      await assert.rejects(
        harness.local.pendingAsks.answer(asked?.id ?? '', 'allowed', answerer('Ana')),
        hasCode('unsupported_operation'),
      )
      await harness.local.inbox.settle(lease, done('not done'))
    })
    const [denied] = await permissions(id)
    assert.deepEqual([denied?.text, denied?.by], ['denied: no answer came in time', undefined])
  })

  test('AG-16 an ask survives a restart of the list, not of its turn: a new attempt asks again', async () => {
    const id = await harness.workspace()
    const worker = harness.worker(id)
    const { pendingId } = await ask(id, worker)
    await worker.leave()
    await harness.local.recover()
    assert.deepEqual((await readPendingAsks(harness.local.store, { workspaceId: id })).pending, [])
    await assert.rejects(
      harness.local.pendingAsks.answer(pendingId, 'allowed', answerer('Ana')),
      hasCode('unsupported_operation'),
    )
    await harness.withWorker(id, async (other) => {
      const again = await other.lease()
      assert.equal(await harness.local.inbox.ask(again, request), 'held')
      const [asked] = (await readPendingAsks(harness.local.store, { workspaceId: id })).pending
      assert.notEqual(asked?.id, pendingId)
      await harness.local.pendingAsks.answer(asked?.id ?? '', 'allowed', answerer('Ana'))
      assert.deepEqual(await answered(other), ['1', []])
      await harness.local.inbox.settle(again, done('done'))
    })
  })

  test('AG-16 an answer on another node reaches the worker of this node', async () => {
    const id = await harness.workspace()
    const elsewhere = harness.newInbox()
    try {
      await harness.withWorker(id, async (worker) => {
        const { lease, pendingId } = await ask(id, worker)
        await elsewhere.pendingAsks.answer(pendingId, 'allowed', answerer('Ana'))
        assert.deepEqual(await answered(worker), ['1', []])
        await harness.local.inbox.settle(lease, done('done'))
      })
    } finally {
      elsewhere.close()
    }
  })

  test('AG-16 the list has the open permissions of running turns, the oldest first; no question, and no turn that stops', async () => {
    const id = await harness.workspace(4)
    const { inbox, reception } = harness.local
    await harness.withWorker(id, async (worker) => {
      const leases = await begin(id, worker, 4)
      const [late, soon, asking, stopped] = leases as [Lease, Lease, Lease, Lease]
      await inbox.ask(late, { ...request, timeoutMs: 3600_000 })
      await inbox.ask(soon, { ...request, tool: 'Write', subject: '(no input)', timeoutMs: 90_000 })
      await inbox.ask(asking, question)
      await inbox.ask(stopped, request)
      await reception.cancel(stopped.taskId)
      await harness.sql('update asks set asked_at = asked_at - 1000 where message_id = $1', soon.messageId)
      const [first, second, ...more] = await list({ workspaceId: id })
      assert.deepEqual([first?.id, second?.id, more], [idOf(soon), idOf(late), []])
      assert.deepEqual([first?.tool, first?.subject, first?.would_cover], ['Write', '(no input)', undefined])
      assert.ok((first?.expires_in ?? 0) > 60 && (first?.expires_in ?? 0) <= 90)
      assert.ok((second?.expires_in ?? 0) > 3000)
      assert.equal(second?.would_cover?.pattern, request.subject)
      const all = (await list({})).map((row) => row.id)
      assert.ok(all.includes(idOf(late)) && !all.includes(idOf(asking, 'q')))
      await inbox.settle(stopped, { type: 'stopped' })
      for (const lease of [late, soon, asking]) await inbox.settle(lease, done('bye'))
    })
  })

  test('AG-16 PL-23 a page of the list ends at 1 MiB, and asks of one moment are each on one page', async () => {
    const id = await harness.workspace(3)
    await harness.withWorker(id, async (worker) => {
      const leases = await begin(id, worker, 3)
      for (const lease of leases) await harness.local.inbox.ask(lease, { ...request, subject: 'x'.repeat(600_000) })
      await harness.sql('update asks set asked_at = 1 where workspace_id = $1', id)
      const pages: string[][] = []
      let after: string | undefined
      do {
        const page = await readPendingAsks(harness.local.store, { workspaceId: id, after })
        pages.push(page.pending.map((row) => row.id))
        after = page.next
      } while (after !== undefined && pages.length < 9)
      const ids = leases.map((lease) => [idOf(lease)])
      assert.deepEqual(pages, ids.sort())
      for (const lease of leases) await harness.local.inbox.settle(lease, done('bye'))
    })
  })

  test('AG-16 an answer reaches exactly its turn, which takes its slot back; all other asks stay open', async () => {
    const [id, other] = [await harness.workspace(2), await harness.workspace()]
    const { inbox, pendingAsks } = harness.local
    await harness.withWorker(other, (elsewhere) =>
      harness.withWorker(id, async (worker) => {
        const leases = [...(await begin(id, worker, 2)), ...(await begin(other, elsewhere, 1))]
        const [first, second, stranger] = leases as [Lease, Lease, Lease]
        for (const lease of leases) await inbox.ask(lease, request)
        assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
        await pendingAsks.answer(idOf(second), 'allowed', answerer('Ana'))
        const directive = await worker.next()
        assert.deepEqual(directive.type === 'answer' && directive.key.messageId, second.messageId)
        assert.deepEqual(await harness.load(id), { running: 1, waiting: 0 })
        assert.deepEqual([await idsOf(id), await idsOf(other)], [[idOf(first)], [idOf(stranger)]])
        assert.ok(await elsewhere.idle())
        // The same turn asks again: its first answer stays as it is.
        await inbox.ask(second, { ...request, id: '2' })
        await pendingAsks.answer(idOf(second, '2'), 'denied', answerer('Ana'))
        const decide = pendingAsks.answer
        const allowed = hasCodeAndText('unsupported_operation', /^this was allowed already$/)
        const denied = hasCodeAndText('unsupported_operation', /^this was denied already, or not answered in time$/)
        await assert.rejects(decide(idOf(second), 'denied', answerer('Ana')), allowed)
        await assert.rejects(decide(idOf(second, '2'), 'allowed', answerer('Ana')), denied)
        for (const lease of leases) await inbox.settle(lease, done('bye'))
      }),
    )
  })

  test('AG-16 a turn asks one thing at a time, a turn that stops asks nothing, and a question is not answered by its id', async () => {
    const id = await harness.workspace(3)
    const { inbox, pendingAsks, reception } = harness.local
    await harness.withWorker(id, async (worker) => {
      const [lease, asking, stopped] = (await begin(id, worker, 3)) as [Lease, Lease, Lease]
      await inbox.ask(asking, question)
      assert.deepEqual([await inbox.ask(lease, request), await inbox.ask(lease, request)], ['held', 'held'])
      assert.equal(await inbox.ask(lease, { ...request, id: '2' }), 'refused')
      assert.equal(await inbox.ask(lease, question), 'refused')
      await reception.cancel(stopped.taskId)
      assert.equal(await inbox.ask(stopped, request), 'stop')
      assert.equal(await inbox.ask({ ...lease, epoch: lease.epoch + 1 }, request), 'stale')
      const unknown = [idOf(lease, '2'), idOf({ ...lease, epoch: lease.epoch + 1 }), idOf(asking), idOf(asking, 'q')]
      for (const each of unknown) {
        await assert.rejects(pendingAsks.answer(each, 'allowed', answerer('Ana')), hasCode('not_found'))
        await assert.rejects(pendingAsks.allowAlways(each, answerer('Ana')), hasCode('not_found'))
      }
      await pendingAsks.answer(idOf(lease), 'denied', answerer('Ana'))
      assert.equal(await inbox.ask(lease, question), 'held')
      await inbox.settle(stopped, { type: 'stopped' })
      for (const each of [lease, asking]) await inbox.settle(each, done('bye'))
    })
  })

  test('AG-16 IN-9 an ask is denied half an hour after it was asked, unless it names another time, and no earlier', async () => {
    const id = await harness.workspace(2)
    for (let count = 0; count < 2; count++) await harness.local.reception.admit(letterTo(id))
    await withNode(harness, async (node, clock) => {
      const worker = harness.worker(id, node)
      const [lease, shorter] = [await worker.lease(), await worker.lease()]
      const pass = (minutes: number) =>
        harness.sql('update asks set expires_at = expires_at - $2 where workspace_id = $1', id, minutes * 60_000)
      const isDenied = async ({ messageId, taskId }: Lease) => {
        await sweepUntil(clock, async () => !(await worker.idle()), 'a denial')
        const directive = await worker.next()
        assert.deepEqual(directive.type === 'answer' && [directive.key.messageId, directive.parts], [
          ...[messageId, undefined],
        ])
        assert.equal(await harness.state(taskId), 'TASK_STATE_WORKING')
      }
      await node.inbox.ask(lease, request)
      await node.inbox.ask(shorter, { ...question, timeoutMs: 10 * 60_000 })
      await pass(10)
      await isDenied(shorter)
      await node.inbox.settle(shorter, done('bye'))
      await pass(19)
      clock.advance(5000)
      // The sweep may have repeated the denial before its turn settled.
      while (!(await worker.idle())) {
        const repeated = await worker.next()
        assert.equal(repeated.type === 'answer' && repeated.key.messageId, shorter.messageId)
      }
      assert.equal(await harness.state(lease.taskId), 'TASK_STATE_AUTH_REQUIRED')
      await pass(1)
      await isDenied(lease)
      await node.inbox.settle(lease, done('bye'))
      await worker.leave()
    })
  })

  test('AG-16 an answer that comes while the sweep is about to deny the ask counts, and its turn gets no denial', async () => {
    const id = await harness.workspace()
    const { taskId: messageId } = await harness.local.reception.admit(letterTo(id))
    const [reached, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let [isLate, isFound] = [false, false]
    const held = storeWith(harness, async () => {
      if (!isFound) return
      reached.resolve()
      await gate.promise
    })
    const read: typeof held.read = async (transaction) => {
      const found = await held.read(transaction)
      isFound ||= isLate && JSON.stringify(found ?? null).includes(messageId)
      return found
    }
    const work: Parameters<typeof withNode>[1] = async (node, clock) => {
      const worker = harness.worker(id, node)
      const lease = await worker.lease()
      await node.inbox.ask(lease, request)
      isLate = true
      await harness.sql('update asks set expires_at = 1 where workspace_id = $1', id)
      clock.advance(5000)
      await reached.promise
      // The sweep of the first process may have denied it in this very moment: then there is no race to see.
      const answering = harness.local.pendingAsks.answer(idOf(lease), 'allowed', answerer('Ana'))
      const decision = await answering.then(
        () => [],
        () => undefined,
      )
      gate.resolve()
      await sweepUntil(clock, async () => !(await worker.idle()), 'the answer')
      while (!(await worker.idle())) assert.deepEqual(await answered(worker), ['1', decision])
      await node.inbox.settle(lease, done('bye'))
      await worker.leave()
    }
    await withNode(harness, work, { ...held, read })
  })
}
