/** The results of delegations: which of them the conversation of the parent gets as a message, and when. */
import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { settle } from '../../../../src/inbox/commands/settle.ts'
import type { Lease, Outcome } from '../../../../src/inbox/worker.ts'
import type { Task } from '../../../../src/protocol/a2a.ts'
import type { Transaction } from '../../../../src/store/store.ts'
import { keepSession } from '../../../../src/workspaces/sessions.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { waitUntil } from '../../../harness/wait.ts'
import { done, failure, HOST, type InboxHarness } from '../harness.ts'
import { childOf, createTeams, retry, textOf } from './team.ts'

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

  const readerOf = ({ workspaceId, conversationId }: Lease) => ({
    principal: `ws:${workspaceId}/${conversationId}`,
    conversationId,
  })
  /** The conversation of the lease reads the task, or another reader does. */
  const read = async (lease: Lease, taskId: string, other?: string) => {
    const task = (await harness.local.reception.task(taskId)) as Task
    const reader = readerOf(lease)
    await harness.local.reception.markRead(task, { ...reader, principal: other ?? reader.principal })
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

  test('TW-3 a result whose answer did not reach the turn is unread again, and one that did stays read; people have no list of unread results', async () => {
    await withTeam(2, async ({ ids, workers: [home, away], lease }) => {
      const { reception, inbox } = harness.local
      const reader = readerOf(lease)
      const answerOf = (writableFinished: boolean, destroyed: boolean) =>
        Object.assign(new EventEmitter(), { writableFinished, destroyed })
      const reads = {
        lost: [reader, answerOf(false, false)],
        gone: [reader, answerOf(false, true)],
        seen: [{ principal: reader.principal }, answerOf(true, false)],
        kept: [reader, answerOf(true, false)],
      } as const
      for (const [text, [by, answer]] of Object.entries(reads)) {
        const { taskId } = await admit(childOf(lease, ids[1] ?? '', { text }))
        await inbox.settle(await away.lease(), done(text))
        await reception.markRead((await reception.task(taskId)) as Task, by, answer)
        answer.emit('close')
      }
      const unread = 'select id from messages where root_id = $1 and read_epoch is null'
      await waitUntil(async () => (await harness.sql(unread, lease.messageId)).length === 3, 'three are unread')
      await inbox.settle(lease, done('bye'))
      for (const text of ['lost', 'gone', 'seen']) {
        const result = await home.lease()
        assert.match(textOf(result), new RegExp(`Your task was: ${text}\n`))
        await inbox.settle(result, done('thanks'))
      }
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
      await harness.local.reception.markRead(asked, {
        principal: answer.principal,
        conversationId: lease.conversationId,
      })
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
}
