/** The results of delegations: which of them the conversation of the parent gets as a message, and when. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease, Outcome } from '../../../src/inbox/inbox.ts'
import { settle } from '../../../src/inbox/settle/settle.ts'
import type { Task } from '../../../src/protocol/a2a.ts'
import { keepSession } from '../../../src/sessions/sessions.ts'
import type { Transaction } from '../../../src/store/store.ts'
import { letterTo } from '../../fakes/letters.ts'
import { done, failure, HOST, type InboxHarness, type TestWorker } from './harness.ts'
import { childOf, createTeams, limitsOf, pathOf, retry, textOf, withLimits } from './team.ts'

export function delegationResultTests(harness: InboxHarness): void {
  const { admit, withTeam, relatives } = createTeams(harness)

  test('TW-3 a child that ends after the turn of its parent is admitted once to the conversation of the parent', async () => {
    await withTeam(2, async ({ ids, workers: [home, away], lease }) => {
      const { taskId } = await admit(childOf(lease, ids[1] ?? '', { text: 'count the files' }))
      const childLease = await away.lease()
      await harness.local.inbox.settle(lease, done('later'))
      await harness.local.inbox.settle(childLease, done('there are 7'))
      const result = await home.lease()
      assert.equal(result.conversationId, lease.conversationId)
      assert.match(
        textOf(result),
        new RegExp(`task ${taskId} .* completed.\nYour task was: count the files\n.*\n\nthere are 7`),
      )
      assert.deepEqual(await relatives(result.messageId), { parent_id: null, root_id: lease.messageId })
      await harness.sql('update messages set child_open = 1 where id = $1', childLease.messageId)
      await harness.local.children.lookAfter()
      assert.ok(await home.idle(), 'a repeated report changes nothing')
      await harness.local.inbox.settle(result, done('thanks'))
      assert.ok(await home.idle())
    })
  })

  /** The conversation of the lease reads the task, or another reader does. */
  const read = async ({ workspaceId, conversationId }: Lease, taskId: string, other?: string) => {
    const task = (await harness.local.reception.task(taskId)) as Task
    await harness.local.reception.markRead(task, other ?? `ws:${workspaceId}/${conversationId}`)
  }

  test('TW-3 a child that ends unread during the turn of its parent is reported once, when that turn is done; one that was read is not', async () => {
    await withTeam(2, async ({ ids, workers: [home, away], lease }) => {
      const delegate = (text: string) => admit(childOf(lease, ids[1] ?? '', { text }))
      const running = [await delegate('read'), await delegate('seen by others'), await delegate('not read')]
      const leases = [await away.lease(), await away.lease(), await away.lease()]
      await read(lease, running[2]?.taskId ?? '')
      for (const child of leases) await harness.local.inbox.settle(child, done(textOf(child)))
      await read(lease, running[0]?.taskId ?? '')
      for (const reader of ['people', `ws:${lease.workspaceId}`, 'ws:other/c1']) {
        await read(lease, running[1]?.taskId ?? '', reader)
      }
      await harness.local.children.lookAfter()
      assert.ok(await home.idle(), 'nothing is reported while the turn runs')
      await harness.local.inbox.settle(lease, done('bye'))
      for (const text of ['seen by others', 'not read']) {
        const result = await home.lease()
        assert.equal(result.conversationId, lease.conversationId)
        assert.match(textOf(result), new RegExp(`completed.\nYour task was: ${text}\n.*\n\n${text}`))
        assert.deepEqual(await relatives(result.messageId), { parent_id: null, root_id: lease.messageId })
        await harness.local.inbox.settle(result, done('thanks'))
      }
      await harness.local.children.lookAfter()
      assert.ok(await home.idle())
      const open = await harness.sql('select id from messages where child_open = 1 and root_id = $1', lease.messageId)
      assert.deepEqual(open, [])
    })
  })

  test('TW-3 nothing is reported of a child that its own sender cancels, or of a parent that was cancelled or has failed', async () => {
    for (const ending of ['done', 'canceled', 'dead'] as const) {
      await withTeam(2, async ({ ids, workers: [home, away], rootTask, lease }) => {
        const letter = childOf(lease, ids[1] ?? '')
        const { taskId } = await admit(letter)
        const child = await away.lease()
        if (ending === 'done') await harness.local.reception.cancel(taskId, { principal: letter.principal })
        else await harness.local.inbox.settle(child, done('7'))
        if (ending === 'canceled') await harness.local.reception.cancel(rootTask)
        await harness.local.inbox.settle(lease, ending === 'dead' ? { type: 'dead', failure } : done('bye'))
        await harness.local.children.lookAfter()
        if (ending === 'canceled') assert.equal((await home.next()).type, 'stop')
        assert.ok(await home.idle(), ending)
        const open = await harness.sql('select id from messages where child_open = 1 and root_id = $1', lease.messageId)
        assert.deepEqual(open, [], ending)
      })
    }
  })

  test('TW-3 a child that an owner cancels after the turn of its parent is reported', async () => {
    await withTeam(2, async ({ ids, workers: [home, away], lease }) => {
      const { taskId } = await admit(childOf(lease, ids[1] ?? ''))
      const child = await away.lease()
      await harness.local.inbox.settle(lease, done('later'))
      await harness.local.reception.cancel(taskId)
      await harness.local.inbox.settle(child, { type: 'stopped' })
      await harness.local.children.lookAfter()
      const result = await home.lease()
      assert.match(textOf(result), new RegExp(`task ${taskId} .*cancel`))
      await harness.local.inbox.settle(result, done('thanks'))
    })
  })

  test('TW-3 IN-4 the replay of a delegation stays below a parent that goes on, and is a tree of its own below one that failed', async () => {
    for (const ending of ['runs', 'done', 'canceled', 'dead']) {
      await withTeam(2, async ({ ids, workers: [, away], rootTask, lease }) => {
        const { taskId } = await admit(childOf(lease, ids[1] ?? ''))
        await harness.local.inbox.settle(await away.lease(), { type: 'dead', failure })
        if (ending === 'canceled') await harness.local.reception.cancel(rootTask)
        if (ending === 'done') await harness.local.inbox.settle(lease, done('bye'))
        if (ending === 'dead') await harness.local.inbox.settle(lease, { type: 'dead', failure })
        const replayed = await harness.local.deadLetters.replay(ids[1] ?? '', taskId)
        const parent = ending === 'runs' || ending === 'done' ? lease.messageId : null
        assert.deepEqual(await relatives(replayed), { parent_id: parent, root_id: parent }, ending)
        assert.equal((await away.lease()).taskId, replayed)
      })
    }
  })

  test('TW-3 TW-6 a child that a new attempt meets again is unread again, with a key and without', async () => {
    await withTeam(2, async ({ ids, workers: [home, away], lease }) => {
      const delegate = (of: Lease, text: string, idempotencyKey?: string) =>
        admit(childOf(of, ids[1] ?? '', { text, ...(idempotencyKey !== undefined && { idempotencyKey }) }))
      for (const [text, key] of [['plain'], ['keyed', 'k1']] as const) {
        const { taskId } = await delegate(lease, text, key)
        await harness.local.inbox.settle(await away.lease(), done(text))
        await read(lease, taskId)
      }
      await harness.local.inbox.settle(lease, retry)
      const again = await home.lease()
      assert.ok((await delegate(again, 'plain')).duplicate)
      assert.ok((await delegate(again, 'keyed', 'k1')).duplicate)
      await harness.local.inbox.settle(again, done('bye'))
      for (const text of ['plain', 'keyed']) {
        const result = await home.lease()
        assert.match(textOf(result), new RegExp(`Your task was: ${text}\n`))
        await harness.local.inbox.settle(result, done('thanks'))
      }
      await harness.local.children.lookAfter()
      assert.ok(await home.idle())
    })
  })

  test('TW-3 a result whose answer did not reach the turn is unread again, and one that did stays read', async () => {
    await withTeam(2, async ({ ids, workers: [home, away], lease }) => {
      const { reception, inbox } = harness.local
      for (const text of ['lost', 'kept']) {
        const { taskId } = await admit(childOf(lease, ids[1] ?? '', { text }))
        await inbox.settle(await away.lease(), done(text))
        const task = (await reception.task(taskId)) as Task
        const forget = await reception.markRead(task, `ws:${lease.workspaceId}/${lease.conversationId}`)
        if (text === 'lost') await forget?.()
      }
      await inbox.settle(lease, done('bye'))
      const result = await home.lease()
      assert.match(textOf(result), /Your task was: lost\n/)
      await inbox.settle(result, done('thanks'))
      await harness.local.children.lookAfter()
      assert.ok(await home.idle())
    })
  })

  const ENDS_OF_AN_ATTEMPT: Readonly<Record<string, (lease: Lease) => Promise<unknown>>> = {
    lost: () => harness.local.recover(),
    retried: (lease) => harness.local.inbox.settle(lease, retry),
    released: (lease) => harness.local.inbox.settle(lease, { type: 'released', interrupted: true }),
    stopped: (lease) => harness.local.inbox.settle(lease, { type: 'stopped' }),
  }
  for (const [how, endAttempt] of Object.entries(ENDS_OF_AN_ATTEMPT)) {
    test(`TW-3 RE-1 what an attempt has read is unread again when that attempt is ${how}, and is reported once unless a later attempt reads it`, async () => {
      await withTeam(2, async ({ ids, workers: [home, away], lease }) => {
        const tasks: string[] = []
        for (const text of ['first', 'both']) {
          const { taskId } = await admit(childOf(lease, ids[1] ?? '', { text }))
          await harness.local.inbox.settle(await away.lease(), done(`answer to ${text}`))
          await read(lease, taskId)
          tasks.push(taskId)
        }
        await endAttempt(lease)
        const again = await home.lease()
        assert.equal(again.messageId, lease.messageId)
        await read(again, tasks[1] ?? '')
        await harness.local.inbox.settle(again, done('bye'))
        const result = await home.lease()
        assert.match(textOf(result), /Your task was: first\n.*\n\nanswer to first$/)
        await harness.local.inbox.settle(result, done('thanks'))
        await harness.local.children.lookAfter()
        assert.ok(await home.idle())
      })
    })
  }

  test('TW-3 a task with another open message is reported when all have ended, and an unread question is reported', async () => {
    await withTeam(2, async ({ ids, workers: [home, away], lease }) => {
      const [, to = ''] = ids
      const { taskId } = await admit(childOf(lease, to, { text: 'one' }))
      const first = await away.lease()
      await admit(childOf(lease, to, { taskId, text: 'two' }))
      await harness.local.inbox.settle(first, done('1'))
      const second = await away.lease()
      await harness.local.inbox.settle(lease, done('bye'))
      await harness.local.children.lookAfter()
      assert.ok(await home.idle())
      await harness.local.inbox.settle(second, { ...done('how many?'), finality: 'input_required' } as Outcome)
      for (const text of ['one', 'two']) {
        const result = await home.lease()
        assert.match(textOf(result), new RegExp(`input required.\nYour task was: ${text}\nIt asks: how many\\?`))
        await harness.local.inbox.settle(result, done('thanks'))
      }
    })
  })

  test('TW-3 a task that goes on after it was read, and then ends, is unread', async () => {
    await withTeam(2, async ({ ids, workers: [home, away], lease }) => {
      const { taskId } = await admit(childOf(lease, ids[1] ?? '', { text: 'count' }))
      await harness.local.inbox.settle(await away.lease(), { ...done('what?'), finality: 'input_required' } as Outcome)
      const asked = (await harness.local.reception.task(taskId)) as Task
      await read(lease, taskId)
      const answer = childOf(lease, ids[1] ?? '', { taskId, text: 'the files' })
      await admit(answer)
      await harness.local.inbox.settle(await away.lease(), done('7'))
      await harness.local.reception.markRead(asked, answer.principal)
      await harness.local.inbox.settle(lease, done('bye'))
      const result = await home.lease()
      assert.match(textOf(result), /Your task was: the files\n.*\n\n7$/)
      await harness.local.inbox.settle(result, done('thanks'))
      await harness.local.children.lookAfter()
      assert.ok(await home.idle(), 'the question was read')
    })
    await withTeam(2, async ({ ids, workers: [home, away], lease }) => {
      const { taskId } = await admit(childOf(lease, ids[1] ?? ''))
      const child = await away.lease()
      await harness.local.inbox.ask(child, { id: 'q', kind: 'question', parts: [{ text: 'what?' }] })
      await read(lease, taskId)
      await harness.local.inbox.settle(child, done('8'))
      await harness.local.inbox.settle(lease, done('bye'))
      assert.match(textOf(await home.lease()), /\n\n8$/, 'its running turn asked')
    })
  })

  test('TW-3 the settle of a parent looks after its children at once, with the statements of any settle; after a crash the sweep does it', async () => {
    await withTeam(2, async ({ ids, workers: [home, away], lease }) => {
      await admit(letterTo(ids[0] ?? ''))
      const plain = await home.lease()
      await admit(childOf(lease, ids[1] ?? ''))
      await harness.local.inbox.settle(await away.lease(), done('7'))
      /** As a process does that is killed right after the commit. */
      const settleAndDie = async (key: Lease) => {
        let statements = 0
        const input = { key, outcome: done('bye'), unsent: undefined, accepts: () => false }
        const output = await harness.store.write(function* (): Transaction<{ endsDelegation?: boolean }> {
          statements = 0
          const settling = settle({ ...input, keepSession: (of, token) => keepSession(HOST, of, token) })
          for (let step = settling.next(); ; ) {
            if (step.done === true) return step.value
            statements += step.value.length
            step = settling.next(yield step.value)
          }
        }, key.workspaceId)
        return { statements, looksAfter: output.endsDelegation }
      }
      const { statements, looksAfter } = await settleAndDie(plain)
      assert.equal(looksAfter, false)
      assert.deepEqual(await settleAndDie(lease), { statements, looksAfter: true })
      await harness.local.children.lookAfter()
      assert.match(textOf(await home.lease()), /\n\n7$/)
    })
  })

  test('TW-3 TW-4 a child that fails late is reported as a failed delegation with three ways on', async () => {
    await withTeam(2, async ({ ids, workers: [home, away], lease }) => {
      await admit(childOf(lease, ids[1] ?? ''))
      const childLease = await away.lease()
      await harness.local.inbox.settle(lease, done('later'))
      await harness.local.inbox.settle(childLease, { type: 'dead', failure })
      assert.match(textOf(await home.lease()), /\[A2A_ERROR\] DELEGATION FAILED: test gave no answer \(it broke\)/)
    })
  })

  test('TW-3 results come in the order of their ends, and none while the parent waits for its next attempt', async () => {
    await withTeam(2, async ({ ids, workers: [home, away], lease }) => {
      const children: Lease[] = []
      for (const text of ['one', 'two', 'running']) {
        await admit(childOf(lease, ids[1] ?? '', { text }))
        children.push(await away.lease())
      }
      for (const child of children.slice(0, 2)) await harness.local.inbox.settle(child, done(textOf(child)))
      const earlier = children[1]?.messageId ?? ''
      await harness.sql('update messages set settled_at = settled_at - 1000 where id = $1', earlier)
      await harness.local.inbox.settle(lease, { ...retry, afterMs: 3600_000 })
      await harness.local.children.lookAfter()
      assert.ok(await home.idle())
      assert.equal(await harness.state(children[2]?.taskId ?? ''), 'TASK_STATE_WORKING')
      for (const table of ['messages', 'conversations'])
        await harness.sql(
          `update ${table} set ready_at = 0 where workspace_id = $1 and ready_at > 0`,
          lease.workspaceId,
        )
      await harness.local.queues.limitsChanged(lease.workspaceId)
      await harness.local.inbox.settle(await home.lease(), done('bye'))
      for (const text of ['two', 'one']) {
        const result = await home.lease()
        assert.match(textOf(result), new RegExp(`Your task was: ${text}\n`))
        await harness.local.inbox.settle(result, done('thanks'))
      }
    })
  })

  test('TW-3 a result waits while the queue of the parent is full, and goes nowhere when the parent is deleted', async () => {
    await withTeam(2, async ({ ids, workers: [home, away], lease }) => {
      const [id = '', to = ''] = ids
      await admit(childOf(lease, to))
      const child = await away.lease()
      await harness.local.inbox.settle(lease, done('later'))
      await harness.sql('update workspace_load set waiting = 1000 where workspace_id = $1', id)
      await harness.local.inbox.settle(child, done('7'))
      await harness.local.children.lookAfter()
      assert.ok(await home.idle())
      await harness.sql('update workspace_load set waiting = 0 where workspace_id = $1', id)
      await harness.local.children.lookAfter()
      const result = await home.lease()
      assert.match(textOf(result), /\n\n7$/)
      await admit(childOf(result, to))
      const orphan = await away.lease()
      await harness.local.inbox.settle(result, done('thanks'))
      await harness.sql('delete from messages where id = $1', result.messageId)
      await harness.local.inbox.settle(orphan, done('8'))
      await harness.local.children.lookAfter()
      assert.ok(await home.idle())
    })
  })

  test('TW-3 a result comes from the child, shortens the task, has the whole answer, and is answered where the parent was', async () => {
    await withTeam(2, async ({ ids, workers: [home, away] }) => {
      const [id = '', to = ''] = ids
      const replyTo = { door: `results-${id}`, channel: 'c1' }
      await admit({ ...letterTo(id, { principal: 'discord:c1', contextId: 'talk' }), replyTo })
      const root = await home.lease()
      await admit(childOf(root, to, { text: `count ${'x'.repeat(400)}` }))
      await harness.local.inbox.settle(root, done('later'))
      const artifacts = [{ artifactId: 'f', parts: [{ text: 'file' }] }]
      const child = await away.lease()
      await harness.local.inbox.settle(child, { ...done('there are 7'), artifacts } as Outcome)
      const result = await home.lease()
      assert.deepEqual([result.contextId, result.principal], ['talk', 'discord:c1'])
      assert.deepEqual(result.sender, { kind: 'agent', id: to, name: 'test', door: 'delegation' })
      const about = `The task ${child.taskId} that you gave to test is completed.`
      assert.deepEqual(result.envelope.message.parts, [
        { text: `${about}\nYour task was: count ${'x'.repeat(293)}…\nIts answer:\n\n` },
        ...[{ text: 'there are 7' }, { text: 'file' }],
      ])
      await harness.local.inbox.settle(result, done('there are 7 files'))
      const { deliveries } = harness.local
      const sent: unknown[] = []
      for (
        let delivery = await deliveries.take(replyTo.door);
        delivery;
        delivery = await deliveries.take(replyTo.door)
      ) {
        sent.push([delivery.channel, delivery.body.parts])
        await deliveries.finish(delivery.id, { type: 'sent' })
      }
      assert.deepEqual(sent, [
        ['c1', [{ text: 'later' }]],
        ['c1', [{ text: 'there are 7 files' }]],
      ])
    })
  })

  test('TW-3 TW-4 a child that asks for a login, or rejects its task, is reported with its words', async () => {
    await withTeam(2, async ({ ids, workers: [home, away], lease }) => {
      const endings = [
        ['auth_required', /is auth required\.\n.*\nIt asks: please$/],
        ['rejected', /is rejected\.\n.*\n\[A2A_ERROR\] DELEGATION FAILED: test gave no answer \(please\)/],
      ] as const
      const children: Lease[] = []
      for (const _ of endings) {
        await admit(childOf(lease, ids[1] ?? ''))
        children.push(await away.lease())
      }
      await harness.local.inbox.settle(lease, done('later'))
      for (const [index, [finality, text]] of endings.entries()) {
        await harness.local.inbox.settle(children[index] as Lease, { ...done('please'), finality } as Outcome)
        const result = await home.lease()
        assert.match(textOf(result), text)
        await harness.local.inbox.settle(result, done('thanks'))
      }
    })
  })

  test('TW-9 a result renews no limit: it has the place, the path and the turns of its parent, less those that were used', async () => {
    await withTeam(3, async ({ ids, workers, lease: root }) => {
      const [, away, far] = workers as [TestWorker, TestWorker, TestWorker]
      const [a = '', b = '', c = ''] = ids
      await admit(withLimits(childOf(root, b), { turns_left: 2 }))
      const middle = await away.lease()
      await admit(childOf(middle, c))
      await harness.local.inbox.settle(middle, done('later'))
      await harness.local.inbox.settle(await far.lease(), done('7'))
      const result = await away.lease()
      const { turns_left: turnsLeft, depth_left: depthLeft, root_task: rootTask } = limitsOf(result)
      assert.deepEqual([turnsLeft, depthLeft, rootTask], [1, limitsOf(middle).depth_left, root.taskId])
      assert.deepEqual(pathOf(result), [a])
      assert.deepEqual(await relatives(result.messageId), { parent_id: root.messageId, root_id: root.messageId })
    })
  })
}
