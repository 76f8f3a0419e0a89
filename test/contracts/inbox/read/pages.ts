/** Pages of bounded bytes: a reader gets every row once, over several pages, and no page parses more than its budget. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TaskQuery } from '../../../../src/inbox/reception.ts'
import { readActivity } from '../../../../src/views/activity.ts'
import { readDeadLetters } from '../../../../src/views/needs/dead-letters.ts'
import { readStory } from '../../../../src/views/story/story.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { COPIED_TEXT, copiedConversation, copyMessages } from '../../../harness/stores/many-messages.ts'
import { done, failure, type InboxHarness } from '../harness.ts'

/** The budget of a page, as PL-23 says it. */
const PAGE_BYTES = 1024 * 1024
const LARGE = 'x'.repeat(400 * 1024)
const HUGE = 'y'.repeat(3 * 1024 * 1024)

const bytesOf = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

export function pageTests(harness: InboxHarness): void {
  const artifactOf = (text: string, artifactId = 'file') => ({ artifactId, parts: [{ text }] })
  /** Settled tasks whose artifacts have these texts. */
  const tasksWith = async (id: string, texts: readonly string[]): Promise<string[]> => {
    const made: string[] = []
    await harness.withWorker(id, async (worker) => {
      for (const [index, text] of texts.entries()) {
        const { taskId } = await harness.local.reception.admit(letterTo(id, { contextId: `c${index}` }))
        const outcome = { type: 'done', finality: 'completed', parts: [{ text: 'ok' }] } as const
        await harness.local.inbox.settle(await worker.lease(), { ...outcome, artifacts: [artifactOf(text)] })
        await harness.sql('update tasks set updated_at = $1 where id = $2', 1000 + index, taskId)
        made.push(taskId)
      }
    })
    return made
  }

  test('PL-23 a list of tasks ends at 1 MiB, has at least one task, and its cursor goes on', async () => {
    const id = await harness.workspace()
    const made = await tasksWith(id, [LARGE, LARGE, HUGE, LARGE, LARGE, LARGE])
    const pages: string[][] = []
    let after: TaskQuery['after']
    do {
      const page = await harness.local.reception.list({ workspaceId: id, limit: 50, ...(after && { after }) })
      assert.equal(page.total, 6)
      assert.ok(page.tasks.length === 1 || bytesOf(page.tasks) < PAGE_BYTES)
      assert.ok(page.tasks.every((task) => task.artifacts !== undefined))
      pages.push(page.tasks.map((task) => task.id))
      after = page.next
    } while (after !== undefined)
    assert.deepEqual(pages.flat(), made.toReversed())
    assert.deepEqual(
      pages.map(({ length }) => length),
      [2, 1, 1, 2],
    )
    const lean = await harness.local.reception.list({ workspaceId: id, limit: 50, artifacts: false })
    assert.deepEqual([lean.tasks.length, lean.next, lean.tasks[0]?.artifacts], [6, undefined, undefined])
  })

  test('RE-16 PL-23 a list of tasks counts and looks at 10,000 tasks at most, and its cursor goes on', async () => {
    const id = await harness.workspace()
    const old = await harness.local.reception.admit(letterTo(id, { principal: 'token:ana', text: 'old' }))
    const { taskId } = await harness.local.reception.admit(letterTo(id, { text: COPIED_TEXT }))
    await harness.withWorker(id, async (worker) => {
      for (const text of ['one', 'two']) await harness.local.inbox.settle(await worker.lease(), done(text))
    })
    await harness.sql('update tasks set updated_at = 1000 where id = $1', old.taskId)
    await copyMessages(harness.store, { taskId, count: 10_050 })
    const list = (query: Partial<TaskQuery>) =>
      harness.local.reception.list({ workspaceId: id, limit: 50, historyLength: 0, artifacts: false, ...query })
    const all = await list({})
    assert.deepEqual([all.tasks.length, all.tasks[0]?.id, all.total], [50, taskId, 10_000])
    assert.equal((await list({ ...(all.next && { after: all.next }) })).tasks.length, 50)
    // The oldest tasks are behind the first 10,000: a filter finds them on the second page, each once.
    const pagesOf = async (query: Partial<TaskQuery>) => {
      const pages: number[] = []
      const ids = new Set<string>()
      for (let after: TaskQuery['after'], page = await list(query); ; page = await list({ ...query, after })) {
        pages.push(page.tasks.length)
        for (const task of page.tasks) ids.add(task.id)
        if (page.next === undefined) return { pages, ids }
        after = page.next
      }
    }
    const oldest = await pagesOf({ contextId: copiedConversation(0) })
    assert.deepEqual([oldest.pages, oldest.ids.size], [[0, 10], 10])
    const own = await pagesOf({ principal: 'token:ana' })
    assert.deepEqual([own.pages, [...own.ids]], [[0, 1], [old.taskId]])
    const failed = await pagesOf({ state: 'TASK_STATE_FAILED' })
    assert.deepEqual(failed.pages, [0, 0])
    const recent = await list({ contextId: copiedConversation(1004) })
    assert.deepEqual([recent.tasks.length, recent.total], [10, 10])
  })

  test('PL-23 one artifact is read without the others, and in its newest version', async () => {
    const id = await harness.workspace()
    const [taskId = ''] = await tasksWith(id, [HUGE])
    const artifact = await harness.local.reception.artifact(taskId, 'file')
    assert.equal(artifact?.parts[0]?.text?.length, HUGE.length)
    assert.equal((await harness.local.reception.artifact(taskId, `reply-${taskId}`))?.parts[0]?.text, 'ok')
    assert.equal(await harness.local.reception.artifact(taskId, 'other'), undefined)
    assert.equal(await harness.local.reception.artifact(taskId, 'file', { principal: 'stranger' }), undefined)
  })

  test('PL-23 a task shows its newest messages within 8 MiB and says how many it leaves out', async () => {
    const id = await harness.workspace()
    const first = await harness.local.reception.admit(letterTo(id, { contextId: 'c', text: HUGE }))
    await harness.withWorker(id, async (worker) => {
      const lease = await worker.lease()
      for (const text of [HUGE, HUGE, 'the last']) {
        await harness.local.reception.admit(letterTo(id, { contextId: 'c', taskId: first.taskId, text }))
      }
      const task = await harness.local.reception.task(first.taskId)
      assert.deepEqual(
        task?.history?.map(({ parts }) => parts[0]?.text?.length),
        [HUGE.length, HUGE.length, 8],
      )
      assert.deepEqual(task?.metadata, { omitted_messages: 1 })
      const last = await harness.local.reception.task(first.taskId, { historyLength: 1 })
      assert.deepEqual(
        last?.history?.map(({ parts }) => parts[0]?.text),
        ['the last'],
      )
      await harness.local.inbox.settle(lease, { type: 'dead', failure })
    })
  })

  test('PL-23 a replay of a task reads pages of bounded bytes and shows every event and the reply once', async () => {
    const id = await harness.workspace()
    const { taskId } = await harness.local.reception.admit(letterTo(id))
    await harness.withWorker(id, async (worker) => {
      const lease = await worker.lease()
      for (let from = 1; from <= 6; from++) {
        const artifact = artifactOf(LARGE, `a${from}`)
        const events = [{ type: 'artifact', artifact, append: false, lastChunk: true }] as const
        await harness.local.inbox.append(lease, { from, events })
      }
      const running = await harness.local.reception.snapshot(taskId)
      assert.equal(running?.task.artifacts, undefined, 'too large for a snapshot')
      assert.ok((running?.seq ?? 9) < (running?.firstSeq ?? 0), 'the reader follows the log from its start')
      const parts = [{ text: HUGE }]
      await harness.local.inbox.settle(lease, { type: 'done', finality: 'completed', parts, artifacts: [] })
    })
    const sizes: number[] = []
    for await (const { wire } of harness.local.reception.follow(taskId, { afterSeq: 0 }, AbortSignal.timeout(20_000))) {
      for (const { artifactUpdate } of wire) {
        if (artifactUpdate) sizes.push(artifactUpdate.artifact.parts[0]?.text?.length ?? 0)
      }
    }
    assert.deepEqual(sizes, [...Array<number>(6).fill(LARGE.length), HUGE.length])
    const rows = (await harness.logs.page(id, 0)) ?? []
    assert.ok(rows.length > 0 && rows.length < 9, 'a page of the log is cut by its bytes')
  })

  test('PL-23 a page of activity ends at 1 MiB in both directions, and its cursor goes on', async () => {
    const id = await harness.workspace()
    const text = 'n'.repeat(4000)
    for (let note = 0; note < 400; note++) {
      await harness.local.activity.addNote(id, { type: 'noted', text: `${note} ${text}`, by: 'me' })
    }
    const first = await readActivity(harness.local.store, { workspaceId: id, limit: 500 })
    assert.ok(first.activity.length > 200 && first.activity.length < 270, `${first.activity.length} entries`)
    assert.ok(bytesOf(first.activity) < PAGE_BYTES * 1.1)
    const rest = await readActivity(harness.local.store, { workspaceId: id, since: first.next, limit: 500 })
    assert.equal(first.activity.length + rest.activity.length, 400)
    const newest = await readActivity(harness.local.store, { workspaceId: id, limit: 500, newest: true })
    assert.equal(newest.activity.length, first.activity.length)
    assert.match(newest.activity.at(-1)?.text ?? '', /^399 /)
  })

  test('PL-23 dead letters are listed in pages of 1 MiB, each once', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      for (let count = 0; count < 5; count++) {
        await harness.local.reception.admit(letterTo(id, { contextId: `d${count}`, text: LARGE }))
        await harness.local.inbox.settle(await worker.lease(), { type: 'dead', failure })
      }
    })
    const seen: string[] = []
    const sizes: number[] = []
    for (let after: string | undefined, more = true; more; ) {
      const { dead_letters: rows, next } = await readDeadLetters(harness.local.store, {
        workspaceId: id,
        after: after,
        detail: true,
      })
      seen.push(...rows.map((dead) => dead.id))
      sizes.push(rows.length)
      after = next
      more = next !== undefined
    }
    assert.deepEqual([sizes, new Set(seen).size], [[2, 2, 1], 5])
    await assert.rejects(
      readDeadLetters(harness.local.store, { workspaceId: id, after: 'x', detail: true }),
      /after must be/,
    )
  })

  test('PL-23 dead letters of the same moment are listed in pages of 200, each once', async () => {
    const id = await harness.workspace()
    for (let count = 0; count < 205; count++) await harness.local.reception.admit(letterTo(id))
    await harness.sql(`update messages set state = 'dead', settled_at = 1000 where workspace_id = $1`, id)
    const first = await readDeadLetters(harness.local.store, { workspaceId: id, detail: true })
    const second = await readDeadLetters(harness.local.store, { workspaceId: id, after: first.next, detail: true })
    assert.deepEqual([first.dead_letters.length, second.dead_letters.length, second.next], [200, 5, undefined])
    assert.equal(new Set([...first.dead_letters, ...second.dead_letters].map((dead) => dead.id)).size, 205)
  })

  test('PL-23 a long story is told in parts, and the attempts are counted on', async () => {
    const id = await harness.workspace()
    const { taskId } = await harness.local.reception.admit(letterTo(id))
    await harness.withWorker(id, async (worker) => {
      const lease = await worker.lease()
      for (let from = 1; from <= 4; from++) {
        const events = [{ type: 'status', text: `${from} ${LARGE}` }] as const
        await harness.local.inbox.append(lease, { from, events })
      }
      await harness.local.inbox.settle(lease, { type: 'released', interrupted: true })
      await harness.local.inbox.settle(await worker.lease(), { type: 'dead', failure })
    })
    const texts: string[] = []
    let parts = 0
    for (let after: string | undefined; ; ) {
      const story = await readStory(harness.local.store, { id: taskId, scopeOf: () => ({}), after })
      texts.push(...story.steps.map(({ type, text }) => `${type} ${text.slice(0, 1)}`))
      parts++
      after = story.next
      if (after === undefined) break
    }
    assert.ok(parts > 1, 'the log of this message is larger than a page')
    const progress = ['1', '2', '3', '4'].map((n) => `progress ${n}`)
    const second = ['lost a', 'started a', 'ended t']
    assert.deepEqual(texts, ['admitted a', 'started a', ...progress, ...second, 'waiting a'])
    const wrong = readStory(harness.local.store, { id: taskId, scopeOf: () => ({}), after: 'x' })
    await assert.rejects(wrong, /after must be/)
  })

  test('PL-23 followers at the same place share one read of an event, and none misses one', async () => {
    const id = await harness.workspace()
    const stop = new AbortController()
    const followers = Array.from({ length: 20 }, () => harness.logs.follow(id, 0, stop.signal)[Symbol.asyncIterator]())
    for (let note = 1; note <= 5; note++) {
      const waiting = followers.map((follower) => follower.next())
      await harness.local.activity.addNote(id, { type: 'noted', text: `note ${note}`, by: 'me' })
      const rows = (await Promise.all(waiting)).map(({ value }) => value)
      assert.deepEqual(new Set(rows.map((row) => row?.entries[0]?.text)), new Set([`note ${note}`]))
      assert.ok(new Set(rows).size <= 2, 'the followers have the same object, or some woke up in the next turn')
    }
    stop.abort()
    await Promise.all(followers.map((follower) => follower.return?.()))
  })
}
