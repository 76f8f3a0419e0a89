/** What readers see of tasks: snapshots, and lists. */

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWorkspaceLogs } from '../../../../src/doors/workspace-logs.ts'
import type { TaskQuery } from '../../../../src/inbox/reception.ts'
import type { Outcome, TurnEvent } from '../../../../src/inbox/worker.ts'
import type { Part } from '../../../../src/protocol/a2a.ts'
import { readLoad } from '../../../../src/views/load.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { manualClock } from '../../../fakes/manual-clock.ts'
import { waitUntil } from '../../../harness/wait.ts'
import { done, failure, hasCode, type InboxHarness } from '../harness.ts'

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
    const before = await readLoad(harness.local.store)
    const queue = before.workspaces.find((workspace) => workspace.id === id)
    assert.deepEqual([queue?.waiting, queue?.running], [3, 0])
    assert.ok((queue?.oldest_waiting_ms ?? 0) >= 5000)
    assert.ok(before.waiting >= 3)
    await harness.withWorker(id, async (worker) => {
      const lease = await worker.lease()
      const during = (await readLoad(harness.local.store)).workspaces.find((workspace) => workspace.id === id)
      assert.deepEqual([during?.waiting, during?.running], [2, 1])
      await harness.local.inbox.settle(lease, done('one'))
    })
  })

  test('PL-5 a task has its messages in order, and the last version of each artifact at the place of the first', async () => {
    const id = await harness.workspace()
    const other = await harness.workspace()
    const artifact = (text: string) => ({ artifactId: 'a1', parts: [{ text }] })
    const reply = (text: string, version: string): Outcome => ({
      type: 'done',
      finality: 'input_required',
      parts: [{ text }],
      artifacts: [artifact(version)],
    })
    const { taskId } = await harness.run(letterTo(id, { text: 'one' }), reply('first', 'old'))
    const { messageId } = await harness.run(letterTo(id, { taskId, text: 'two' }), reply('second', 'new'))
    const whole = await harness.local.reception.task(taskId)
    assert.deepEqual(
      whole?.artifacts?.map(({ artifactId, parts }) => [artifactId, parts[0]?.text]),
      [
        ['a1', 'new'],
        [`reply-${taskId}`, 'first'],
        [`reply-${messageId}`, 'second'],
      ],
    )
    const read = (name: string, view?: object) => harness.local.reception.artifact(taskId, name, view)
    assert.deepEqual(await read('a1'), artifact('new'))
    assert.equal((await read(`reply-${taskId}`))?.parts[0]?.text, 'first')
    assert.deepEqual([await read('reply-none'), await read('a1', { workspaceId: other })], [undefined, undefined])
    const [listed] = (await harness.local.reception.list({ workspaceId: id, limit: 1, historyLength: 1 })).tasks
    assert.deepEqual([listed?.history?.length, listed?.artifacts?.length], [1, 3])
  })

  test('PL-12 a view shows the tasks of its workspace, of its principal and of the conversations below', async () => {
    const id = await harness.workspace()
    const { taskId } = await harness.local.reception.admit(letterTo(id, { principal: 'ws:A/c1' }))
    const views = [{}, { workspaceId: id }, { principal: 'ws:A' }, { principal: 'ws:A/c1' }]
    const others = [{ workspaceId: 'ws_2' }, { principal: 'ws:A/c' }, { principal: 'ws' }, { principal: 'people' }]
    const seen = await Promise.all(
      [...views, ...others].map(async (view) => (await harness.local.reception.task(taskId, view)) !== undefined),
    )
    assert.deepEqual(seen, [true, true, true, true, false, false, false, false])
  })

  test('PL-5 a failed task says why, with the words of the program only for the owner', async () => {
    const id = await harness.workspace()
    const dead: Outcome = { type: 'dead', failure: { ...failure, sentence: 'the program failed' } }
    const { taskId } = await harness.run(letterTo(id), dead)
    const said = async (view: object) => (await harness.local.reception.task(taskId, view))?.status.message
    assert.deepEqual((await said({}))?.parts, [{ text: 'the program failed' }])
    assert.deepEqual((await said({}))?.metadata?.['code'], failure.code)
    assert.match((await said({ detail: true }))?.parts[0]?.text ?? '', /^the program failed\nit broke$/)
  })

  test('IN-7 a task that waits says for what: an older message of its conversation, or a free slot', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    const hear = `insert into presence (workspace_id, registered_at, heard_at, report) values ($1, now_ms(), now_ms(), '{}')`
    await harness.sql(hear, id)
    await harness.withWorker(id, async (worker) => {
      await reception.admit(letterTo(id, { contextId: 'a' }))
      const lease = await worker.lease()
      const behind = await reception.admit(letterTo(id, { contextId: 'a' }))
      const other = await reception.admit(letterTo(id, { contextId: 'b' }))
      const why = async (taskId: string) => (await reception.task(taskId))?.status.message?.parts[0]?.text
      const head = `waiting behind message ${lease.messageId} of the same conversation`
      assert.equal(await why(behind.taskId), head)
      assert.equal(await why(other.taskId), 'waiting for a free slot: 1 of 1 in use, 2 waiting')
      const retry = { type: 'retry', failure, reason: 'failure', interrupted: false, afterMs: 60_000 } as const
      await inbox.settle(lease, retry)
      assert.equal(await why(behind.taskId), `${head}, next try in 1 min`)
      await inbox.settle(await worker.lease(), done('other'))
    })
  })

  test('IN-5 a snapshot of a running turn has its artifacts so far; the chunks of each are joined', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await reception.admit(letterTo(id))
      const lease = await worker.lease()
      const chunk = (parts: readonly Part[], append: boolean): TurnEvent => ({
        type: 'artifact',
        artifact: { artifactId: 'a1', parts },
        append,
        lastChunk: false,
      })
      const events = [
        ...[chunk([{ text: 'old' }], false), chunk([{ data: 0 }, { text: 'a' }], false)],
        ...[chunk([{ text: 'b' }, { data: 1 }], true), chunk([{ text: 'c' }], true)],
        { type: 'text', delta: 'he' } as const,
        { type: 'text', delta: 'llo' } as const,
      ]
      for (const [index, event] of events.entries()) await inbox.append(lease, { from: index + 1, events: [event] })
      const artifacts = async () =>
        (await reception.snapshot(taskId))?.task.artifacts?.map(({ artifactId, parts }) => [artifactId, parts])
      const reply = `reply-${lease.messageId}`
      assert.deepEqual(await artifacts(), [
        ['a1', [{ data: 0 }, { text: 'ab' }, { data: 1 }, { text: 'c' }]],
        [reply, [{ text: 'hello' }]],
      ])
      const whole = { artifactId: 'a1', parts: [{ text: 'whole' }] }
      const outcome = { type: 'done', finality: 'input_required', parts: [{ text: 'hello' }] } as const
      await inbox.settle(lease, { ...outcome, artifacts: [whole] })
      const settled = [
        ['a1', whole.parts],
        [reply, [{ text: 'hello' }]],
      ]
      assert.deepEqual(await artifacts(), settled, 'none is there twice')
    })
  })

  test('IN-5 followers learn of progress as a status, and of each chunk of an artifact', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    const lease = await harness.withWorker(id, async (worker) => {
      await reception.admit(letterTo(id))
      const leased = await worker.lease()
      const artifact = { artifactId: 'a1', parts: [{ text: 'x' }] }
      const events: TurnEvent[] = [
        { type: 'status', text: 'for the log' },
        { type: 'status', text: 'for the log', said: { parts: [{ text: 'reading' }] } },
        { type: 'artifact', artifact, append: true, lastChunk: false },
      ]
      await inbox.append(leased, { from: 1, events })
      await inbox.settle(leased, { type: 'dead', failure })
      return leased
    })
    const seen: unknown[] = []
    for await (const { wire } of reception.follow(lease.taskId, { afterSeq: 0 }, AbortSignal.timeout(5000)))
      for (const { statusUpdate, artifactUpdate } of wire) {
        const { state, message } = statusUpdate?.status ?? {}
        if (state !== undefined) seen.push([state, message?.parts[0]?.text, message?.metadata?.['code']])
        else seen.push([artifactUpdate?.artifact.artifactId, artifactUpdate?.append, artifactUpdate?.lastChunk])
      }
    assert.deepEqual(seen, [
      ['TASK_STATE_WORKING', undefined, undefined],
      ['TASK_STATE_WORKING', 'reading', undefined],
      ['a1', true, false],
      ['TASK_STATE_FAILED', failure.message, failure.code],
    ])
    const gone = reception.follow('none', { afterSeq: 0 }, AbortSignal.timeout(5000))[Symbol.asyncIterator]()
    await assert.rejects(gone.next(), hasCode('not_found'))
  })

  test('IN-7 PL-7 readers that missed a hint look at the store again after five seconds', async () => {
    const id = await harness.workspace()
    const clock = manualClock()
    const node = harness.newInbox(clock, { ...harness.store, listen: () => () => undefined })
    const stop = new AbortController()
    const ended = await harness.withWorker(id, async (worker) => {
      const { taskId } = await harness.local.reception.admit(letterTo(id))
      const lease = await worker.lease()
      const afterSeq = (await node.reception.snapshot(taskId))?.seq ?? 0
      let answered = 0
      const reads = [
        node.reception.waitForResult(taskId, 60_000, stop.signal),
        node.reception.follow(taskId, { afterSeq }, stop.signal)[Symbol.asyncIterator]().next(),
        createWorkspaceLogs(node).follow(id, afterSeq, stop.signal)[Symbol.asyncIterator]().next(),
      ].map((read: Promise<unknown>) => read.then(() => (answered += 1)))
      for (let turn = 0; turn < 5; turn++) await node.reception.task(taskId)
      await harness.local.inbox.settle(lease, done('ok'))
      for (let turn = 0; turn < 5; turn++) await node.reception.task(taskId)
      assert.equal(answered, 0)
      let looks = 0
      await waitUntil(() => {
        if (looks++ < 4) clock.advance(5000)
        return answered === 3
      }, 'three readers')
      return Promise.all(reads)
    })
    assert.equal(ended.length, 3)
    node.close()
  })
}
