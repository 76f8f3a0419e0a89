/** What the web page reads of a real platform about use, delegations and changed files. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import { replyText, startPlatformFor, withPlatform } from '../harness/platform.ts'

test(
  'RT-13 CV-4 use is shown by day, workspace, conversation and message, and the unknown stays unknown',
  withPlatform(async (platform) => {
    const make = async (name: string, usage: boolean) => {
      const body = { name, runtime: 'mock', runtime_config: { usage } }
      return (await platform.request('POST', '/workspaces', body)).body.id as string
    }
    const [counted, silent] = [await make('counted', true), await make('silent', false)]
    for (const contextId of ['one', 'one', 'two']) await platform.send(counted, 'hello', { contextId })
    await platform.send(silent, 'hello')
    const { body: own } = await platform.request('GET', `/workspaces/${counted}/usage`)
    assert.deepEqual([own.total.turns, own.total.cost_usd, own.total.unknown_cost_turns], [3, null, 3])
    assert.ok(own.total.input_tokens > 0)
    assert.deepEqual(
      own.conversations.map((each: Record<string, unknown>) => [each['context_id'], each['turns']]),
      [
        ['two', 1],
        ['one', 2],
      ],
    )
    const { body: all } = await platform.request('GET', '/usage?days=2')
    assert.deepEqual(all.total, own.total)
    assert.deepEqual(
      all.workspaces.map((each: Record<string, unknown>) => [each['workspace_id'], each['name'], each['turns']]),
      [[counted, 'counted', 3]],
    )
    assert.equal(all.days.length, 1)
    await platform.request('DELETE', `/workspaces/${counted}?confirm=counted`)
    const { body: later } = await platform.request('GET', '/usage')
    assert.deepEqual(
      later.workspaces.map(({ name }: { name: string | null }) => name),
      [null],
    )
    assert.equal((await platform.request('GET', '/usage?days=0')).status, 400)
  }),
)

test(
  'CV-4 TW-5 the delegations of a workspace are trees with state and time, from each of its sides',
  withPlatform(async (platform) => {
    const options = { runtime_config: { pass_meta: 'true', timeout: '110s' }, max_attempts: 1 }
    const lead = await platform.exec('a2a delegate helper go', { name: 'lead', ...options })
    const helper = await platform.exec('echo done', { name: 'helper', ...options })
    assert.match(replyText(await platform.send(lead, 'go')) ?? '', /done/)
    await platform.send(helper, 'no delegation')
    await platform.send(lead, 'go again')
    const read = async (id: string, query = '') =>
      (await platform.request('GET', `/workspaces/${id}/delegations${query}`)).body
    const { trees, next } = await read(lead)
    assert.deepEqual([trees.length, next], [2, undefined])
    for (const { tasks, hidden } of trees) {
      assert.deepEqual(
        tasks.map((task: Record<string, unknown>) => [task['workspace_name'], task['depth'], task['state']]),
        [
          ['lead', 0, 'TASK_STATE_COMPLETED'],
          ['helper', 1, 'TASK_STATE_COMPLETED'],
        ],
      )
      assert.equal(hidden, 0)
      const [parent, child] = tasks
      assert.equal(child.parent_task_id, parent.task_id)
      assert.ok(Date.parse(parent.started_at) <= Date.parse(child.started_at))
      assert.ok(Date.parse(child.ended_at) <= Date.parse(parent.ended_at))
    }
    assert.deepEqual((await read(helper)).trees, trees)
    const first = await read(lead, '?limit=1')
    assert.deepEqual(first.trees, [trees[0]])
    assert.deepEqual((await read(lead, `?limit=5&after=${first.next}`)).trees, [trees[1]])
  }),
)

test('CV-4 the files that a tool changed have their diffs in the chat and in the activity, without tokens', async (t) => {
  const platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  const { path: bin } = createFakeProgram('claude')
  const made = await platform.request('POST', '/workspaces', {
    name: 'Ada',
    runtime: 'claude-code',
    runtime_config: { bin },
  })
  await platform.send(made.body.id, `!edit mol_${'x'.repeat(43)}`, { contextId: 'chat' })
  const path = '/home/dev/shop/a.txt'
  const diffs = [
    [{ path, diff: `--- /dev/null\n+++ ${path}\n@@ @@\n+one\n+two\n+[hidden]` }],
    [{ path, diff: `--- ${path}\n+++ ${path}\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n [hidden]` }],
  ]
  const chat = await platform.request('GET', `/workspaces/${made.body.id}/conversations/chat`)
  assert.deepEqual(
    chat.body.messages[0].tools.map((tool: Record<string, unknown>) => [tool['name'], tool['state'], tool['diffs']]),
    [
      ['Write', 'finished', diffs[0]],
      ['Edit', 'finished', diffs[1]],
    ],
  )
  const { activity } = (await platform.request('GET', `/workspaces/${made.body.id}/activity?type=tool`)).body
  assert.deepEqual(
    activity.map((entry: Record<string, unknown>) => [entry['state'], entry['diffs']]),
    [
      ['started', undefined],
      ['finished', diffs[0]],
      ['started', undefined],
      ['finished', diffs[1]],
    ],
  )
})
