/** Rules: an owner's "always allow" answers the asks that it covers, until it is revoked. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Lease } from '../../../../src/inbox/worker.ts'
import { readPendingAsks } from '../../../../src/views/needs/pending-asks.ts'
import { readRules } from '../../../../src/views/needs/rules.ts'
import { readStory } from '../../../../src/views/story/story.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { hasCodeAndText } from '../../../harness/check-error.ts'
import { done, hasCode, type InboxHarness, type TestWorker } from '../harness.ts'

const ana = { name: 'Ana', principal: 'token:Ana', door: 'http' }
const bo = { name: 'Bo', principal: 'token:Bo', door: 'http' }

export function ruleTests(harness: InboxHarness): void {
  const ask = (lease: Lease, subject: string, options: string | { readonly tool: string } = '1') => {
    const { id, tool } = typeof options === 'string' ? { id: options, tool: 'Bash' } : { id: 'other', ...options }
    return harness.local.inbox.ask(lease, { kind: 'permission', id, parts: [{ text: 'waiting' }], tool, subject })
  }
  const { begin, pendingIds, answerOf, activity } = {
    async begin(id: string, worker: TestWorker): Promise<Lease> {
      await harness.local.reception.admit(letterTo(id))
      return await worker.lease()
    },
    async pendingIds(workspaceId: string): Promise<string[]> {
      return (await readPendingAsks(harness.local.store, { workspaceId })).pending.map(({ id }) => id)
    },
    /** Skips repeated answers to earlier asks. */
    async answerOf(worker: TestWorker, askId: string) {
      for (;;) {
        const directive = await worker.next()
        if (directive.type === 'answer' && directive.askId === askId) return directive.parts
      }
    },
    async activity(workspaceId: string, type: string) {
      const entries = await harness.activity(workspaceId, type)
      return entries.map(({ name, subject, text, by, door }) => [name, subject, text, by, door])
    },
  }
  const makeRule = async (lease: Lease, { subject, pattern }: { subject: string; pattern?: string }) => {
    assert.equal(await ask(lease, subject), 'held')
    const [pendingId = ''] = await pendingIds(lease.workspaceId)
    return { pendingId, rule: await harness.local.pendingAsks.allowAlways(pendingId, ana, pattern) }
  }

  test('PL-24 "always allow" answers the next such ask without a person, and the log names the rule', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const lease = await begin(id, worker)
      const { rule } = await makeRule(lease, { subject: 'npm test', pattern: 'npm test *' })
      assert.deepEqual(await answerOf(worker, '1'), [])
      assert.deepEqual([rule.tool, rule.scope, rule.pattern, rule.maker], ['Bash', 'prefix', 'npm test *', ana])
      assert.equal((await readRules(harness.local.store, id)).rules[0]?.used, 0)
      assert.equal(await ask(lease, 'npm test unit', '2'), 'held')
      assert.deepEqual(await answerOf(worker, '2'), [])
      assert.deepEqual(await pendingIds(id), [])
      assert.equal(await harness.state(lease.taskId), 'TASK_STATE_WORKING')
      // The turn did not wait: it still has its slot.
      assert.deepEqual(await harness.load(id), { running: 1, waiting: 0 })
      // A worker whose answer was lost repeats its call.
      assert.equal(await ask(lease, 'npm test unit', '2'), 'held')
      assert.equal(await ask(lease, 'npm test && rm -rf /', '3'), 'held')
      assert.equal((await pendingIds(id)).length, 1)
      assert.equal(await harness.state(lease.taskId), 'TASK_STATE_AUTH_REQUIRED')
      const [listed] = (await readRules(harness.local.store, id)).rules
      assert.equal(listed?.used, 1)
      assert.ok((listed?.last_used_at ?? '') >= (listed?.made_at ?? '~'))
      await harness.local.inbox.settle(lease, done('done'))
      assert.deepEqual(await harness.load(id), { running: 0, waiting: 0 })
      const story = await readStory(harness.local.store, { id: lease.taskId, scopeOf: () => ({ detail: true }) })
      assert.ok(story.steps.some(({ text }) => text === 'a rule of "Ana" (token:Ana) allowed the use of Bash'))
    })
    assert.deepEqual(await activity(id, 'rule'), [['Bash', 'npm test *', 'made', 'Ana', 'http']])
    assert.deepEqual(await activity(id, 'permission'), [
      ['Bash', undefined, 'allowed', 'Ana', 'http'],
      ['Bash', 'npm test *', 'allowed by rule', 'Ana', 'rule'],
    ])
  })

  test('PL-24 a revoked rule allows nothing more, and the log names who revoked it', async () => {
    const id = await harness.workspace()
    const other = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const lease = await begin(id, worker)
      const { rule } = await makeRule(lease, { subject: 'make' })
      await assert.rejects(harness.local.rules.revoke(other, rule.id, bo), hasCode('not_found'))
      await harness.local.rules.revoke(id, rule.id, bo)
      await assert.rejects(harness.local.rules.revoke(id, rule.id, bo), hasCode('not_found'))
      assert.deepEqual((await readRules(harness.local.store, id)).rules, [])
      assert.equal(await ask(lease, 'make', '2'), 'held')
      assert.equal((await pendingIds(id)).length, 1)
      await harness.local.inbox.settle(lease, done('done'))
    })
    assert.deepEqual(
      (await activity(id, 'rule')).map((entry) => entry.slice(2)),
      [
        ['made', 'Ana', 'http'],
        ['revoked', 'Bo', 'http'],
      ],
    )
  })

  test('PL-24 a rule counts in its own workspace only, also where two ask at the same time', async () => {
    const [id, other] = [await harness.workspace(2), await harness.workspace()]
    await harness.withWorker(other, async (elsewhere) => {
      await harness.withWorker(id, async (worker) => {
        const [first, second, stranger] = [
          await begin(id, worker),
          await begin(id, worker),
          await begin(other, elsewhere),
        ]
        await ask(second, 'make')
        await ask(stranger, 'make')
        const firstIds = await pendingIds(id)
        await ask(first, 'make')
        const pendingId = (await pendingIds(id)).find((one) => !firstIds.includes(one)) ?? ''
        await harness.local.pendingAsks.allowAlways(pendingId, ana)
        // Both turns of the workspace go on: the rule covers what the other one asks.
        assert.deepEqual(await pendingIds(id), [])
        assert.equal(await harness.state(second.taskId), 'TASK_STATE_WORKING')
        assert.equal(await harness.state(stranger.taskId), 'TASK_STATE_AUTH_REQUIRED')
        for (const lease of [first, second]) await harness.local.inbox.settle(lease, done('done'))
        await harness.local.inbox.settle(stranger, done('done'))
      })
    })
    assert.deepEqual((await activity(id, 'permission')).map((entry) => entry[2]).sort(), ['allowed', 'allowed by rule'])
  })

  test('PL-24 a rule is made once, only with the answer, and only with a pattern that covers the ask', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const lease = await begin(id, worker)
      await ask(lease, 'npm test')
      const [pendingId = ''] = await pendingIds(id)
      const other = hasCodeAndText(
        'invalid_request',
        /^this pattern does not cover .* use a pattern that the pending ask shows$/,
      )
      for (const pattern of ['*', 'npm', 'yarn *', 'npm test && *']) {
        await assert.rejects(harness.local.pendingAsks.allowAlways(pendingId, ana, pattern), other)
      }
      assert.deepEqual((await readRules(harness.local.store, id)).rules, [])
      assert.deepEqual(await pendingIds(id), [pendingId])
      const rule = await harness.local.pendingAsks.allowAlways(pendingId, ana)
      assert.equal((await harness.local.pendingAsks.allowAlways(pendingId, ana)).id, rule.id)
      // Answered: a second, wider rule would need a new decision.
      await assert.rejects(
        harness.local.pendingAsks.allowAlways(pendingId, ana, 'npm test *'),
        hasCode('unsupported_operation'),
      )
      await ask(lease, 'make', '2')
      const [denied = ''] = await pendingIds(id)
      await harness.local.pendingAsks.answer(denied, 'denied', ana)
      await assert.rejects(harness.local.pendingAsks.allowAlways(denied, ana), hasCode('unsupported_operation'))
      await ask(lease, '(the agent does not say with which input)', '3')
      const [unclear = ''] = await pendingIds(id)
      const never = hasCodeAndText('invalid_request', /^no rule can be made of this: .* allow it once$/)
      await assert.rejects(harness.local.pendingAsks.allowAlways(unclear, ana), never)
      assert.equal((await readRules(harness.local.store, id)).rules.length, 1)
      await harness.local.inbox.settle(lease, done('done'))
    })
  })

  test('PL-24 the list of rules has pages, a workspace has at most 500 rules, and they end with it', async () => {
    const id = await harness.workspace()
    await harness.withWorker(id, async (worker) => {
      const lease = await begin(id, worker)
      await harness.sql(
        `insert into permission_rules (id, workspace_id, tool, scope, pattern, made_by, made_principal, made_door, made_at)
         select 'r' || m.n, $1, 'Bash', 'exact', m.n || $2, 'Ana', 'token:Ana', 'http', m.n from (
           with recursive counted(n) as (select 1 union all select n + 1 from counted where n < 500)
           select n from counted) m`,
        id,
        'x'.repeat(4000),
      )
      const ids: string[] = []
      let after: string | undefined
      do {
        const page = await readRules(harness.local.store, id, after)
        ids.push(...page.rules.map((rule) => rule.id))
        after = page.next
      } while (after !== undefined)
      assert.equal(new Set(ids).size, 500)
      assert.equal(ids.length, 500)
      await ask(lease, 'make')
      const [pendingId = ''] = await pendingIds(id)
      await assert.rejects(harness.local.pendingAsks.allowAlways(pendingId, ana), hasCode('unsupported_operation'))
      assert.deepEqual(await pendingIds(id), [pendingId])
      await harness.local.inbox.settle(lease, done('done'))
    })
    await harness.local.queues.end(id, { code: 'deleted', message: 'gone' })
    assert.deepEqual(await harness.sql('select id from permission_rules where workspace_id = $1', id), [])
  })

  test('PL-24 the oldest rule that covers an ask allows it and is counted; another tool is asked, and a turn that stops is allowed nothing', async () => {
    const id = await harness.workspace(2)
    await harness.withWorker(id, async (worker) => {
      const lease = await begin(id, worker)
      const { rule: exact } = await makeRule(lease, { subject: 'npm test' })
      await ask(lease, 'npm test unit', '2')
      const [widerId = ''] = await pendingIds(id)
      const rules = [exact, await harness.local.pendingAsks.allowAlways(widerId, ana, 'npm test *')]
      await ask(lease, 'npm test', '3')
      await ask(lease, 'npm test all', '4')
      await ask(lease, 'npm test', '5')
      const used = async () => (await readRules(harness.local.store, id)).rules.map((rule) => [rule.id, rule.used])
      const counted = [2, 1].map((count, index) => [rules[index]?.id, count])
      assert.deepEqual(await used(), counted)
      const stopped = await begin(id, worker)
      await harness.local.reception.cancel(stopped.taskId)
      assert.equal(await ask(stopped, 'npm test'), 'stop')
      await ask(lease, 'npm test', { tool: 'terminal' })
      assert.equal((await pendingIds(id)).length, 1)
      assert.deepEqual(await used(), counted)
      await harness.local.inbox.settle(stopped, { type: 'stopped' })
      await harness.local.inbox.settle(lease, done('done'))
    })
  })

  test('PL-24 "always allow" leaves open asks of another use or tool, and an ask that was allowed once makes no rule afterwards', async () => {
    const id = await harness.workspace(4)
    const { allowAlways, answer } = harness.local.pendingAsks
    await harness.withWorker(id, async (worker) => {
      const leases = [await begin(id, worker), await begin(id, worker), await begin(id, worker)] as const
      const [first, otherUse, otherTool] = leases
      await ask(first, 'make all')
      const [firstId = ''] = await pendingIds(id)
      await ask(otherUse, 'make dist')
      await ask(otherTool, 'make all', { tool: 'terminal' })
      await allowAlways(firstId, ana)
      const open = (await readPendingAsks(harness.local.store, { workspaceId: id })).pending
      assert.deepEqual(open.map(({ task_id }) => task_id).sort(), [otherUse.taskId, otherTool.taskId].sort())
      await answer(open[0]?.id ?? '', 'allowed', ana)
      const late = hasCodeAndText('unsupported_operation', /^this was allowed already, and no rule was made of it$/)
      await assert.rejects(allowAlways(open[0]?.id ?? '', ana), late)
      assert.equal((await readRules(harness.local.store, id)).rules.length, 1)
      for (const lease of leases) await harness.local.inbox.settle(lease, done('done'))
    })
  })
}
