/** Activity: the log of a workspace as people read it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prune } from '../../../../src/inbox/upkeep/retention.ts'
import { type ActivityQuery, readActivity } from '../../../../src/views/activity.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { done, failure, hasCode, type InboxHarness } from '../harness.ts'

const HOUR_MS = 3600_000
const NOW_AND_THEN = { taskMs: 1000 * HOUR_MS, eventMs: HOUR_MS, deltaMs: HOUR_MS }

export function activityTests(harness: InboxHarness): void {
  const read = (query: ActivityQuery) => readActivity(harness.local.store, query)

  test('PL-6 activity comes in order, without text deltas, in pages and by type', async () => {
    const id = await harness.workspace()
    const { reception, inbox, activity: log } = harness.local
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await reception.admit(letterTo(id))
      const first = await worker.lease()
      await inbox.append(first, { from: 1, events: [{ type: 'text', delta: 'he' }] })
      await inbox.append(first, { from: 2, events: [{ type: 'tool', name: 'search', state: 'started' }] })
      await inbox.settle(first, { type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: false })
      const second = await worker.lease()
      assert.equal((await log.addNote(id, { type: 'deployed', text: 'version 2', by: 'ci' })) > 0, true)
      await inbox.settle(second, done('hello'))
      const { activity: entries, next: end } = await read({ workspaceId: id, limit: 100 })
      const shown = entries.map(({ type, state, name, text, by }) => [type, state ?? name ?? by, text])
      assert.deepEqual(shown, [
        ['status', 'TASK_STATE_WORKING', undefined],
        ['tool', 'started', undefined],
        ['status', 'TASK_STATE_WORKING', failure.message],
        ['status', 'TASK_STATE_WORKING', undefined],
        ['retry', undefined, undefined],
        ['deployed', 'ci', 'version 2'],
        ['reply', undefined, 'hello'],
        ['status', 'TASK_STATE_COMPLETED', undefined],
      ])
      const isOfTask = (entry: (typeof entries)[number]) =>
        entry.task_id === taskId && entry.conversation_id === second.conversationId
      assert.ok(
        entries.every((entry) => (entry.type === 'deployed' ? entry.conversation_id === undefined : isOfTask(entry))),
      )
      let cursor = 0
      const paged: string[] = []
      for (let page = 0; page < 20; page++) {
        const { activity, next } = await read({ workspaceId: id, since: cursor, limit: 1 })
        paged.push(...activity.map(({ type }) => type))
        cursor = next
      }
      assert.deepEqual([paged, cursor], [entries.map(({ type }) => type), end])
      const newest = await read({ workspaceId: id, limit: 2, newest: true })
      assert.deepEqual([newest.activity, newest.next], [entries.slice(-3), end])
      const notes = await read({ workspaceId: id, type: 'deployed', limit: 10 })
      assert.deepEqual(
        notes.activity.map(({ text }) => text),
        ['version 2'],
      )
    })
  })

  test('PL-6 a cursor before the pruned entries is refused, and notes are pruned too', async () => {
    const id = await harness.workspace()
    const { activity: log } = harness.local
    const note = { type: 'note', text: 'x', by: 'me' }
    const [first, second] = [await log.addNote(id, note), await log.addNote(id, note)]
    await harness.sql('update events set at_ms = at_ms - $2 where workspace_id = $1', id, 2 * HOUR_MS)
    const third = await log.addNote(id, note)
    await prune(harness.store, NOW_AND_THEN, AbortSignal.timeout(60_000))
    await assert.rejects(read({ workspaceId: id, since: first, limit: 10 }), hasCode('pruned'))
    for (const since of [0, second]) {
      const { activity } = await read({ workspaceId: id, since, limit: 10 })
      assert.deepEqual(
        activity.map(({ seq }) => seq),
        [third],
      )
    }
    await assert.rejects(read({ workspaceId: 'ws_none', limit: 10 }), hasCode('not_found'))
    await assert.rejects(log.addNote('ws_none', note), hasCode('not_found'))
  })

  test('PL-7 a follower gets every row once, in order, stored and new ones, and ends with the workspace', async () => {
    const id = await harness.workspace()
    const { reception, inbox, activity: log, queues } = harness.local
    const seen: { seq: number; types: string[]; conversations: (string | undefined)[] }[] = []
    const following = (async () => {
      for await (const { seq, entries } of harness.logs.follow(id, 0, AbortSignal.timeout(60_000))) {
        const conversations = entries.map(({ conversation_id }) => conversation_id)
        seen.push({ seq, types: entries.map(({ type }) => type), conversations })
      }
    })()
    const ownId = await harness.withWorker(id, async (worker) => {
      await reception.admit(letterTo(id))
      const lease = await worker.lease()
      await inbox.append(lease, { from: 1, events: [{ type: 'text', delta: 'he' }] })
      await inbox.settle(lease, done('hello'))
      await log.addNote(id, { type: 'deployed', text: 'x', by: 'ci' })
      return lease.conversationId
    })
    const end = await harness.logs.resolveCursor(id, undefined)
    await queues.end(id, { code: 'canceled', message: 'gone' })
    await following
    assert.deepEqual(
      seen.map(({ seq }) => seq),
      Array.from({ length: end }, (_, index) => index + 1),
    )
    assert.deepEqual(
      seen.flatMap(({ types }) => types),
      ['status', 'text', 'reply', 'status', 'deployed'],
    )
    assert.deepEqual(
      seen.flatMap(({ conversations }) => conversations),
      [...Array<string>(4).fill(ownId), undefined],
    )
    await assert.rejects(harness.logs.resolveCursor(id, 1), hasCode('not_found'))
  })

  test('PL-7 a page is limited by rows and by size, pages continue each other, and every workspace has its head', async () => {
    const id = await harness.workspace()
    const { activity: log } = harness.local
    const text = 'x'.repeat(4000)
    const rows = 300
    const reports = Array.from({ length: rows }, () => log.addNote(id, { type: 'note', text, by: 'me' }))
    const last = Math.max(...(await Promise.all(reports)))
    const seen: number[] = []
    const sizes: number[] = []
    for (let cursor = 0; cursor < last; cursor = seen.at(-1) ?? last) {
      const page = (await harness.logs.page(id, cursor)) ?? []
      seen.push(...page.map(({ seq }) => seq))
      sizes.push(page.length)
    }
    assert.deepEqual(
      seen,
      Array.from({ length: rows }, (_, index) => index + 1),
    )
    assert.ok(Math.max(...sizes) < 70, 'a page holds about 256 KB')
    assert.equal((await harness.logs.heads()).get(id), last)
    assert.equal(await harness.logs.page('ws_nobody', 0), undefined)
    assert.deepEqual(await harness.logs.page(id, last), [])
  })

  test('PL-7 a watcher of all logs learns which log may have grown', async () => {
    const id = await harness.workspace()
    const { activity: log, reception } = harness.local
    const changed: (string | undefined)[] = []
    const stop = log.onChange((workspaceId) => changed.push(workspaceId))
    await log.addNote(id, { type: 'note', text: 'x', by: 'me' })
    assert.ok(changed.includes(id))
    changed.length = 0
    await reception.admit(letterTo(id))
    assert.ok(changed.includes(id))
    assert.ok(changed.every((one) => one === undefined || one.startsWith('ws_')))
    stop()
    changed.length = 0
    await log.addNote(id, { type: 'note', text: 'x', by: 'me' })
    assert.deepEqual(changed, [])
  })

  test('PL-6 pages of activity go forward from a number or back from the end', async () => {
    const id = await harness.workspace()
    for (let n = 1; n <= 5; n++) await harness.local.activity.addNote(id, { type: 'note', text: `${n}`, by: 'me' })
    const pageOf = async (query: object) => {
      const { activity, first, next } = await read({ workspaceId: id, limit: 2, ...query })
      return [activity.map(({ seq }) => seq).join(' '), first, next]
    }
    assert.deepEqual(await pageOf({}), ['1 2', 1, 2])
    assert.deepEqual(await pageOf({ since: 4 }), ['5', 5, 5])
    assert.deepEqual(await pageOf({ since: 5 }), ['', undefined, 5])
    assert.deepEqual(await pageOf({ newest: true }), ['4 5', 4, 5])
    assert.deepEqual(await pageOf({ newest: true, before: 4 }), ['2 3', 2, 3])
    assert.deepEqual(await pageOf({ before: 2, limit: 9 }), ['1', 1, 1])
    assert.deepEqual(await pageOf({ newest: true, since: 3, limit: 9 }), ['4 5', 4, 5])
  })

  test('PL-6 a type is searched in more rows than a page shows, up to 2000; the reader goes on from there', async () => {
    const id = await harness.workspace()
    const { activity: log } = harness.local
    const add = (type: string) => log.addNote(id, { type, text: 'x', by: 'me' })
    const first = await add('deployed')
    await Promise.all(Array.from({ length: 1998 }, () => add('note')))
    const second = await add('deployed')
    const third = await add('deployed')
    const deployedSince = async (since: number) => {
      const { activity, next } = await read({ workspaceId: id, since, type: 'deployed', limit: 3 })
      return [activity.map(({ seq }) => seq), next]
    }
    assert.deepEqual(await deployedSince(0), [[first, second], second])
    assert.deepEqual(await deployedSince(second), [[third], third])
    assert.equal((await harness.logs.page(id, 0))?.length, 256, 'a page of a follower')
  })

  test('PL-6 activity has the progress and the whole artifacts of a turn, late results, and the titles of tasks', async () => {
    const id = await harness.workspace()
    const { reception, inbox } = harness.local
    const long = 'x'.repeat(501)
    const { taskId } = await reception.admit(letterTo(id, { text: 'paint\n it' }))
    const lost = await harness.withWorker(id, (worker) => worker.lease())
    await harness.newInbox().recover()
    await harness.withWorker(id, async (worker) => {
      const lease = await worker.lease()
      const artifact = { artifactId: 'a1', name: 'a.txt', parts: [{ text: 'a' }] }
      await inbox.append(lease, { from: 1, events: [{ type: 'status', text: long }] })
      await inbox.append(lease, { from: 2, events: [{ type: 'artifact', artifact, append: false, lastChunk: false }] })
      await inbox.append(lease, { from: 3, events: [{ type: 'artifact', artifact, append: true, lastChunk: true }] })
      await inbox.settle(lost, done('too late'))
      await inbox.settle(lease, done('ok'))
      const { activity, titles } = await read({ workspaceId: id, limit: 100, titles: true })
      const found = (type: string) => activity.filter((entry) => entry.type === type)
      assert.deepEqual(
        ['progress', 'artifact', 'late', 'reply'].map((type) => found(type).map(({ name, text }) => name ?? text)),
        [[`${'x'.repeat(499)}…`], ['a.txt'], ['too late'], ['ok']],
      )
      assert.deepEqual(titles, { [taskId]: 'paint it' })
      assert.equal((await read({ workspaceId: id, limit: 100 })).titles, undefined)
    })
  })
}
