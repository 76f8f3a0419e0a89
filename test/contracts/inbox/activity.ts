/** Activity: the log of a workspace as people read it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { prune } from '../../../src/inbox/upkeep/retention.ts'
import { diffOfFile } from '../../../src/protocol/file-diff.ts'
import { letterTo } from '../../fakes/letters.ts'
import { done, failure, hasCode, type InboxHarness } from './harness.ts'

const HOUR_MS = 3600_000
const PAGE = { limit: 10, detail: false }
const NOW_AND_THEN = { taskMs: 1000 * HOUR_MS, eventMs: HOUR_MS, deltaMs: HOUR_MS }

export function activityTests(harness: InboxHarness): void {
  test('CV-2 CV-4 a chat has the tools of a message with their diffs, and says when there are more than a page holds', async () => {
    const id = await harness.workspace()
    const { reception, inbox, conversations } = harness.local
    await harness.withWorker(id, async (worker) => {
      await reception.admit(letterTo(id))
      const lease = await worker.lease()
      const diffs = [diffOfFile('a', 'created', 'x\n'.repeat(3000))]
      const toolsOf = async () => {
        const page = await conversations.read({ workspaceId: id, conversation: lease.conversationId, ...PAGE })
        return page.messages[0] ?? assert.fail('no message')
      }
      const edited = { type: 'tool', name: 'Edit', state: 'finished', diffs } as const
      await inbox.append(lease, { from: 1, events: [edited] })
      const few = await toolsOf()
      assert.deepEqual([few.tools.map((tool) => tool.diffs), few.hasMoreTools], [[diffs], undefined])
      for (let from = 2; from <= 40; from++) await inbox.append(lease, { from, events: [edited] })
      const many = await toolsOf()
      assert.equal(many.hasMoreTools, true)
      assert.ok(many.tools.length > 10 && many.tools.length < 40)
      await inbox.settle(lease, done('hello'))
    })
  })

  test('CV-2 a message that was cancelled has its end at once, also while its processes are being stopped', async () => {
    const id = await harness.workspace()
    const { reception, inbox, conversations } = harness.local
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await reception.admit(letterTo(id))
      const lease = await worker.lease()
      const read = async () => {
        const page = await conversations.read({ workspaceId: id, conversation: lease.conversationId, ...PAGE })
        const { state, startedAtMs, endedAtMs } = page.messages[0] ?? assert.fail('no message')
        return [state, startedAtMs !== undefined, endedAtMs !== undefined]
      }
      assert.deepEqual(await read(), ['running', true, false])
      await reception.cancel(taskId)
      assert.deepEqual(await read(), ['stopped', true, true])
      assert.equal((await worker.next()).type, 'stop')
      await inbox.settle(lease, { type: 'stopped' })
      assert.deepEqual(await read(), ['stopped', true, true])
    })
  })

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
      const { entries, nextSeq } = await log.read({ workspaceId: id, sinceSeq: 0, limit: 100 })
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
      assert.ok(entries.every((entry) => (entry.taskId === taskId) === (entry.type !== 'deployed')))
      let cursor = 0
      const paged: string[] = []
      for (let page = 0; page < 20; page++) {
        const next = await log.read({ workspaceId: id, sinceSeq: cursor, limit: 1 })
        paged.push(...next.entries.map(({ type }) => type))
        cursor = next.nextSeq
      }
      assert.deepEqual([paged, cursor], [entries.map(({ type }) => type), nextSeq])
      const newest = await log.read({ workspaceId: id, sinceSeq: 0, limit: 2, newest: true })
      assert.deepEqual([newest.entries, newest.nextSeq], [entries.slice(-3), nextSeq])
      const notes = await log.read({ workspaceId: id, sinceSeq: 0, type: 'deployed', limit: 10 })
      assert.deepEqual(
        notes.entries.map(({ text }) => text),
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
    await assert.rejects(log.read({ workspaceId: id, sinceSeq: first, limit: 10 }), hasCode('pruned'))
    for (const sinceSeq of [0, second]) {
      const { entries } = await log.read({ workspaceId: id, sinceSeq, limit: 10 })
      assert.deepEqual(
        entries.map(({ seq }) => seq),
        [third],
      )
    }
    await assert.rejects(log.read({ workspaceId: 'ws_none', sinceSeq: 0, limit: 10 }), hasCode('not_found'))
    await assert.rejects(log.addNote('ws_none', note), hasCode('not_found'))
  })

  test('PL-7 a follower gets every row once, in order, stored and new ones, and ends with the workspace', async () => {
    const id = await harness.workspace()
    const { reception, inbox, activity: log, queues } = harness.local
    const seen: { seq: number; types: string[] }[] = []
    const following = (async () => {
      for await (const { seq, entries } of log.follow(id, 0, AbortSignal.timeout(60_000))) {
        seen.push({ seq, types: entries.map(({ type }) => type) })
      }
    })()
    await harness.withWorker(id, async (worker) => {
      await reception.admit(letterTo(id))
      const lease = await worker.lease()
      await inbox.append(lease, { from: 1, events: [{ type: 'text', delta: 'he' }] })
      await inbox.settle(lease, done('hello'))
      await log.addNote(id, { type: 'deployed', text: 'x', by: 'ci' })
    })
    const end = await log.resolveCursor(id, undefined)
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
    await assert.rejects(log.resolveCursor(id, 1), hasCode('not_found'))
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
      const page = (await log.page(id, cursor)) ?? []
      seen.push(...page.map(({ seq }) => seq))
      sizes.push(page.length)
    }
    assert.deepEqual(
      seen,
      Array.from({ length: rows }, (_, index) => index + 1),
    )
    assert.ok(Math.max(...sizes) < 70, 'a page holds about 256 KB')
    assert.equal((await log.heads()).get(id), last)
    assert.equal(await log.page('ws_nobody', 0), undefined)
    assert.deepEqual(await log.page(id, last), [])
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
}
