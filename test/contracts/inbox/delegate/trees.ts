/** Trees of delegations as owners and other readers see them, and who works for whom now. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readOpenDelegations } from '../../../../src/views/overview.ts'
import { readStory } from '../../../../src/views/story/story.ts'
import { readTrees, type TaskScope, type TreesQuery } from '../../../../src/views/trees.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { COPIED_TEXT, copyMessages } from '../../../harness/stores/many-messages.ts'
import { done, type InboxHarness, type TestWorker } from '../harness.ts'
import { childOf, createTeams } from './team.ts'

export function treeTests(harness: InboxHarness): void {
  const { admit, withTeam } = createTeams(harness)
  const owner: TaskScope = { detail: true }
  const trees = (workspaceId: string, query: Partial<TreesQuery> = {}) =>
    readTrees(harness.local.store, { workspaceId, limit: 10, scopeOf: () => owner, ...query })
  /** The first task of each tree of a page. */
  const roots = async (workspaceId: string, query: Partial<TreesQuery> = {}) => {
    const page = await trees(workspaceId, query)
    return { roots: page.trees.map(({ tasks }) => tasks[0]?.task_id), next: page.next }
  }

  test('CV-4 TW-3 an owner sees what each task of a tree used and what all cost; a peer sees its own task and no cost', async () => {
    await withTeam(2, async ({ ids: [first = '', second = ''], workers, lease }) => {
      const { taskId } = await admit(childOf(lease, second, { text: 'paint\n it' }))
      const child = await (workers[1] as TestWorker).lease()
      const usage = { costUsd: 0.5, durationMs: 4 }
      await harness.local.inbox.settle(child, { ...done('painted'), usage })
      const find = async (scopeOf: (workspaceId: string) => TaskScope) =>
        (await readStory(harness.local.store, { id: taskId, scopeOf })).tree
      const whole = await find(() => owner)
      assert.deepEqual([whole?.cost_usd, whole?.unknown_turns], [0.5, 0])
      const [root, painter] = whole?.tasks ?? []
      assert.deepEqual([root?.ended_at, root?.usage, root?.text.length !== 0], [undefined, undefined, true])
      assert.deepEqual(
        [painter?.text, painter?.workspace_name, painter?.turns, painter?.usage?.cost_usd],
        ['paint it', 'test', 1, 0.5],
      )
      assert.ok((painter?.started_at ?? '') >= (painter?.sent_at ?? 'z') && painter?.ended_at !== undefined)
      const principal = `ws:${first}`
      const peer = await find((id) => (id === first ? { principal: 'token:1' } : { principal }))
      assert.deepEqual(
        [peer?.tasks.map((task) => [task.task_id, task.usage]), peer?.hidden],
        [[[taskId, undefined]], 1],
      )
      assert.equal(peer?.cost_usd, undefined)
      assert.equal(
        (await find((id) => ({ detail: id === second })))?.cost_usd,
        undefined,
        'an owner of one workspace only',
      )
      const { taskId: alone } = await admit(letterTo(second))
      assert.equal((await readStory(harness.local.store, { id: alone, scopeOf: () => owner })).tree, undefined)
    })
  })

  test('CV-4 TW-3 a workspace has its trees, the latest first and each once, page by page', async () => {
    const made: string[] = []
    await withTeam(2, async ({ ids: [first = '', second = ''], workers: [worker], lease, rootTask }) => {
      await admit(childOf(lease, second))
      await admit(childOf(lease, second))
      made.push(rootTask)
      await admit(letterTo(first, { contextId: 'alone' }))
      for (let n = 0; n < 2; n++) {
        made.push((await admit(letterTo(first))).taskId)
        let next = await worker.lease()
        if (next.taskId !== made.at(-1)) next = await worker.lease()
        await admit(childOf(next, second))
      }
      await harness.sql('update tasks set updated_at = 1000 where workspace_id = $1', first)
      const latest = made.toReversed()
      assert.deepEqual((await roots(first)).roots, latest)
      const page = await roots(first, { limit: 2 })
      assert.deepEqual(page.roots, latest.slice(0, 2))
      assert.deepEqual(await roots(first, { after: page.next ?? '' }), { roots: latest.slice(2), next: undefined })
      assert.deepEqual(new Set((await roots(second)).roots), new Set(made))
    })
  })

  test('CV-4 a page of trees looks at 300 tasks, and the reader goes on from there', async () => {
    const id = await harness.workspace()
    const other = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const { taskId } = await admit(letterTo(id))
      const root = await worker.lease()
      await admit(childOf(root, other))
      await harness.local.inbox.settle(root, done('ok'))
      await harness.sql('update tasks set updated_at = 1000 where id = $1', taskId)
      const copied = await admit(letterTo(id, { text: COPIED_TEXT }))
      await harness.local.inbox.settle(await worker.lease(), done('ok'))
      await copyMessages(harness.store, { taskId: copied.taskId, count: 300, after: 30_000 })
      const first = await roots(id)
      assert.deepEqual([first.roots, first.next !== undefined], [[], true])
      assert.deepEqual(await roots(id, { after: first.next ?? '' }), { roots: [taskId], next: undefined })
    })
  })

  test('CV-1 open delegations are counted for each pair of workspaces, the most first', async () => {
    await withTeam(3, async ({ ids: [first = '', second = '', third = ''], workers, lease }) => {
      for (const to of [third, second, second]) await admit(childOf(lease, to))
      const open = async () =>
        (await readOpenDelegations(harness.local.store)).delegations
          .filter(({ from }) => from === first)
          .map(({ to, count }) => [to, count])
      assert.deepEqual(await open(), [
        [second, 2],
        [third, 1],
      ])
      await harness.local.inbox.settle(await (workers[2] as TestWorker).lease(), done('ok'))
      assert.deepEqual(await open(), [[second, 2]])
    })
  })
}
