/** What readers see of tasks: snapshots, and lists. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TaskQuery } from '../../../src/inbox/inbox.ts'
import { letterTo } from '../../fakes/letters.ts'
import { done, type InboxHarness } from './harness.ts'

export function readTaskTests(harness: InboxHarness): void {
  test('IN-5 a reader that follows from a snapshot sees every later event and no earlier one', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await harness.local.reception.admit(letterTo(id))
      const lease = await worker.lease()
      await harness.local.inbox.append(lease, { from: 1, events: [{ type: 'text', delta: 'before' }] })
      const snapshot = await harness.local.reception.snapshot(taskId)
      assert.equal(snapshot?.task.id, taskId)
      await harness.local.inbox.append(lease, { from: 2, events: [{ type: 'text', delta: 'after' }] })
      await harness.local.inbox.settle(lease, done('whole'))
      const seen: string[] = []
      for await (const { wire } of harness.local.reception.follow(
        taskId,
        { afterSeq: snapshot?.seq ?? 0 },
        AbortSignal.timeout(5000),
      )) {
        for (const { artifactUpdate } of wire)
          if (artifactUpdate) seen.push(artifactUpdate.artifact.parts[0]?.text ?? '')
      }
      assert.deepEqual(seen, ['after', 'whole'])
    })
  })

  test('PL-5 the history of a task has the questions and the last words of the agent, each before what it got for it', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await reception.admit(letterTo(id, { text: 'paint it' }))
      const say = (text: string) => reception.admit(letterTo(id, { taskId, text }))
      const texts = async (view: object = {}) =>
        ((await reception.task(taskId, view))?.history ?? []).map(
          ({ role, parts }) => `${role === 'ROLE_AGENT' ? 'agent' : 'user'}: ${parts[0]?.text}`,
        )
      const lease = await worker.lease()
      for (const [question, answer] of [
        ['which colour?', 'red'],
        ['how red?', 'very'],
      ]) {
        await inbox.ask(lease, { kind: 'question', id: `${question}`, parts: [{ text: `${question}` }] })
        await say(`${answer}`)
      }
      const asked = ['user: paint it', 'agent: which colour?', 'user: red', 'agent: how red?', 'user: very']
      assert.deepEqual(await texts(), asked)
      const reply = [{ text: 'two coats?' }]
      await inbox.settle(lease, { type: 'done', finality: 'input_required', parts: reply, artifacts: [] })
      assert.deepEqual(await texts(), asked, 'the open question is the status')
      await say('one')
      const all = [...asked, 'agent: two coats?', 'user: one']
      assert.deepEqual(await texts(), all)
      assert.deepEqual(await texts({ artifacts: false }), all)
      assert.deepEqual(await texts({ historyLength: 3 }), all.slice(-3))
      assert.deepEqual(await texts({ historyLength: 0 }), [])
      await inbox.settle(await worker.lease(), done('painted'))
      assert.deepEqual(await texts(), all, 'a reply is an artifact')
      const task = await reception.task(taskId)
      assert.deepEqual(Object.keys(task?.artifacts?.[0] ?? {}), ['artifactId', 'parts'])
      const ids = task?.history?.map(({ messageId }) => messageId) ?? []
      assert.equal(new Set(ids).size, ids.length, 'each message has its own id')
    })
  })

  test('tasks are listed with the last changed first, filtered, in pages, each once', async () => {
    const id = await harness.workspace()
    const made: string[] = []
    for (let count = 0; count < 7; count++) {
      const principal = ['people', 'ws:other/c1', 'people', 'ws:other/c2', 'people', 'ws:other', 'ws:other2'][count]
      const { taskId } = await harness.local.reception.admit(
        letterTo(id, { contextId: `c${count}`, ...(principal && { principal }) }),
      )
      await harness.sql('update tasks set updated_at = $1 where id = $2', 1000 + Math.floor(count / 2), taskId)
      made.push(taskId)
    }
    const ask = async (more: Partial<TaskQuery>) => {
      const seen: string[] = []
      let after: TaskQuery['after']
      do {
        const query = { workspaceId: id, limit: 2, ...more, ...(after && { after }) }
        const page = await harness.local.reception.list(query)
        seen.push(...page.tasks.map((task) => task.id))
        after = page.next
      } while (after !== undefined)
      return seen
    }
    assert.deepEqual(await ask({}), made.toReversed())
    assert.deepEqual(await ask({ principal: 'people' }), [made[4], made[2], made[0]])
    assert.deepEqual(await ask({ principal: 'ws:other' }), [made[5], made[3], made[1]], 'with its conversations')
    assert.deepEqual(await ask({ principal: 'ws:other/c1' }), [made[1]])
    assert.deepEqual(await ask({ contextId: 'c4' }), [made[4]])
    assert.deepEqual(await ask({ changedSinceMs: 1003 }), [made[6]])
    assert.deepEqual(await ask({ state: 'TASK_STATE_COMPLETED' }), [])
    assert.equal((await harness.local.reception.list({ workspaceId: id, limit: 1 })).total, 7)
  })

  test('PL-10 the load report has the queue of a workspace, its age, and the running turns', async () => {
    const id = await harness.workspace()
    for (let count = 0; count < 3; count++) await harness.local.reception.admit(letterTo(id))
    await harness.sql('update conversations set ready_at = ready_at - 5000 where workspace_id = $1', id)
    const before = await harness.local.load()
    const queue = before.workspaces.find((workspace) => workspace.id === id)
    assert.deepEqual([queue?.waiting, queue?.running], [3, 0])
    assert.ok((queue?.oldestWaitingMs ?? 0) >= 5000)
    assert.ok(before.waiting >= 3)
    await harness.withWorker(id, async (worker) => {
      const lease = await worker.lease()
      const during = (await harness.local.load()).workspaces.find((workspace) => workspace.id === id)
      assert.deepEqual([during?.waiting, during?.running], [2, 1])
      await harness.local.inbox.settle(lease, done('one'))
    })
  })
}
