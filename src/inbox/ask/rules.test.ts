/** Rules of one workspace: which asks they allow, how they are listed and counted, and what revokes them. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { letterTo } from '../../../test/fakes/letters.ts'
import { hasCodeAndText } from '../../../test/harness/check-error.ts'
import { keyOf, openInboxOnClock } from '../../../test/harness/inbox-on-clock.ts'
import type { MoleculeError } from '../../errors.ts'
import { type Lease, leaseId } from '../inbox.ts'

const ana = { name: 'Ana', principal: 'token:ana', door: 'http' }
const bo = { name: 'Bo', principal: 'token:bo', door: 'discord' }
const RULES_MAX = 500

interface PlantedRule {
  readonly id: string
  readonly tool?: string
  readonly scope?: string
  readonly pattern: string
  readonly madeAtMs?: number
}

async function openTeam(t: TestContext) {
  const inbox = openInboxOnClock(t)
  const [a, b] = [await inbox.workspace({ slots: 9 }), await inbox.workspace({ slots: 9 })]
  const workers = new Map([a, b].map((id) => [id, inbox.worker([id])]))
  const begin = async (id: string): Promise<Lease> => {
    await inbox.local.reception.admit(letterTo(id))
    return (await workers.get(id)?.lease()) as Lease
  }
  const ask = (lease: Lease, subject: string, { tool = 'Bash', id = '1' } = {}) =>
    inbox.local.inbox.ask(keyOf(lease), { kind: 'permission', id, parts: [{ text: 'waiting' }], tool, subject })
  const plant = (workspaceId: string, { id, tool = 'Bash', scope = 'exact', pattern, madeAtMs = 1 }: PlantedRule) =>
    inbox.sql(
      `insert into permission_rules (id, workspace_id, tool, scope, pattern, made_by, made_principal, made_door, made_at)
       values ($1, $2, $3, $4, $5, 'Ana', 'token:ana', 'http', $6)`,
      ...[id, workspaceId, tool, scope, pattern, madeAtMs],
    )
  const used = async () => {
    const rows = await inbox.sql('select id, used, last_used_at from permission_rules order by id')
    return rows.map((row) => [row['id'], row['used'], row['last_used_at']])
  }
  const directives = async (id: string) => (await workers.get(id)?.take()) ?? []
  const changes = async (workspaceId: string, type: string) => {
    const { entries } = await inbox.local.activity.read({ workspaceId, sinceSeq: 0, type, limit: 50 })
    return entries.map(({ taskId, name, subject, text, by, door }) => ({ taskId, name, subject, text, by, door }))
  }
  return { inbox, a, b, begin, ask, plant, used, directives, changes }
}

test('PL-24 an ask is allowed by the oldest rule of its workspace and its tool that covers it, and only that one counts', async (t) => {
  const { inbox, a, b, begin, ask, plant, used, directives, changes } = await openTeam(t)
  await plant(b, { id: 'of-b', pattern: 'make', madeAtMs: 1 })
  await plant(a, { id: 'other-tool', tool: 'shell', pattern: 'make', madeAtMs: 2 })
  await plant(a, { id: 'other-use', pattern: 'make clean', madeAtMs: 3 })
  await plant(a, { id: 'wide', scope: 'prefix', pattern: 'make *', madeAtMs: 5 })
  await plant(a, { id: 'exact', pattern: 'make', madeAtMs: 4 })
  const lease = await begin(a)
  inbox.notified.length = 0
  assert.equal(await ask(lease, 'make'), 'held')
  assert.deepEqual(inbox.notified, [a])
  assert.deepEqual(await directives(a), [{ type: 'answer', key: keyOf(lease), askId: '1', parts: [] }])
  const nowMs = inbox.clock.nowMs()
  const unused = (id: string) => [id, 0, null]
  const counted = [['exact', 1, nowMs], unused('of-b'), unused('other-tool'), unused('other-use'), unused('wide')]
  assert.deepEqual(await used(), counted)
  // The turn did not wait, and no person sees the ask.
  assert.deepEqual(await inbox.load(a), { running: 1, waiting: 0, suspended: 0 })
  assert.equal(await inbox.state(lease.taskId), 'TASK_STATE_WORKING')
  assert.deepEqual((await inbox.local.pendingAsks.list({})).rows, [])
  const [stored] = await inbox.sql('select state, answered_by, answered_principal, answered_door from asks')
  assert.deepEqual(
    { ...stored },
    {
      state: 'answered',
      answered_by: 'Ana',
      answered_principal: 'token:ana',
      answered_door: 'rule',
    },
  )
  assert.deepEqual(await changes(a, 'permission'), [
    { taskId: lease.taskId, name: 'Bash', subject: 'make', text: 'allowed by rule', by: 'Ana', door: 'rule' },
  ])
  // A worker that missed the answer gets it again with the next sweep.
  await inbox.pass(5000)
  assert.equal((await directives(a)).length, 1)
  // A turn that must stop is allowed nothing more.
  const stopped = await begin(a)
  await inbox.local.reception.cancel(stopped.taskId)
  assert.equal(await ask(stopped, 'make'), 'stop')
  assert.deepEqual(await used(), counted)
  // No rule of this tool covers it.
  assert.equal(await ask(lease, 'make', { tool: 'terminal', id: '2' }), 'held')
  assert.equal(await inbox.state(lease.taskId), 'TASK_STATE_AUTH_REQUIRED')
  assert.deepEqual(await used(), counted)
})

test('PL-24 "always allow" makes one rule, answers the open asks that it covers, and leaves the others', async (t) => {
  const { inbox, a, b, begin, ask, plant, directives, changes } = await openTeam(t)
  await plant(a, { id: 'shell', tool: 'shell', pattern: 'make' })
  await plant(a, { id: 'clean', pattern: 'make clean' })
  await plant(b, { id: 'of-b', pattern: 'make all' })
  const leases = [await begin(a), await begin(a), await begin(a), await begin(a), await begin(b)] as const
  const [first, same, other, otherTool, stranger] = leases
  await ask(first, 'make all')
  await ask(same, 'make all')
  await ask(other, 'make dist')
  await ask(otherTool, 'make all', { tool: 'bash' })
  await ask(stranger, 'make dist')
  await directives(a)
  await directives(b)
  inbox.notified.length = 0
  inbox.clock.advance(50)
  const rule = await inbox.local.pendingAsks.allowAlways(`${leaseId(first)}.1`, ana)
  assert.deepEqual(inbox.notified, [a, a])
  const { id, ...made } = rule
  assert.match(id, /^[0-9A-Z]{26}$/)
  const madeAtMs = inbox.clock.nowMs()
  const whole = { workspaceId: a, tool: 'Bash', scope: 'exact', pattern: 'make all', maker: ana, madeAtMs, used: 0 }
  assert.deepEqual(made, whole)
  assert.deepEqual(
    (await inbox.local.rules.list(a)).rows.map((row) => row.id),
    ['clean', 'shell', id],
  )
  assert.deepEqual((await inbox.local.rules.list(a)).rows[2], rule)
  const answer = (lease: Lease) => ({ type: 'answer', key: keyOf(lease), askId: '1', parts: [] })
  assert.deepEqual(await directives(a), [answer(first), answer(same)])
  assert.deepEqual(await directives(b), [])
  const open = (await inbox.local.pendingAsks.list({})).rows.map(({ taskId }) => taskId).sort()
  assert.deepEqual(open, [other.taskId, otherTool.taskId, stranger.taskId].sort())
  const by = { name: 'Bash', by: 'Ana' }
  assert.deepEqual(await changes(a, 'rule'), [
    { ...by, taskId: first.taskId, subject: 'make all', text: 'made', door: 'http' },
  ])
  assert.deepEqual(await changes(a, 'permission'), [
    { ...by, taskId: first.taskId, subject: undefined, text: 'allowed', door: 'http' },
    { ...by, taskId: same.taskId, subject: 'make all', text: 'allowed by rule', door: 'rule' },
  ])
  // The same call again gives the same rule; nothing is sent twice.
  assert.deepEqual(await inbox.local.pendingAsks.allowAlways(`${leaseId(first)}.1`, ana), rule)
  assert.deepEqual(await directives(a), [])
  assert.equal((await inbox.local.rules.list(a)).rows.length, 3)
})

test('PL-24 an ask that was allowed once makes no rule afterwards, and a rule that is there answers the ask', async (t) => {
  const { inbox, a, begin, ask, plant, directives } = await openTeam(t)
  const { answer, allowAlways } = inbox.local.pendingAsks
  const [first, second] = [await begin(a), await begin(a)]
  await ask(first, 'make all')
  await ask(second, 'make dist')
  await answer(`${leaseId(first)}.1`, 'allowed', ana)
  await assert.rejects(
    allowAlways(`${leaseId(first)}.1`, ana),
    hasCodeAndText('unsupported_operation', /^this was allowed already, and no rule was made of it$/),
  )
  assert.deepEqual((await inbox.local.rules.list(a)).rows, [])
  await plant(a, { id: 'known', pattern: 'make dist' })
  await directives(a)
  assert.equal((await allowAlways(`${leaseId(second)}.1`, bo)).id, 'known')
  assert.deepEqual(await directives(a), [{ type: 'answer', key: keyOf(second), askId: '1', parts: [] }])
})

test('PL-24 a refused pattern says whether another one would help, and names the field', async (t) => {
  const { inbox, a, begin, ask } = await openTeam(t)
  const { allowAlways } = inbox.local.pendingAsks
  const [clear, unclear] = [await begin(a), await begin(a)]
  await ask(clear, 'npm test')
  await ask(unclear, '(no input)')
  const [clearId, unclearId] = [`${leaseId(clear)}.1`, `${leaseId(unclear)}.1`]
  const isOfPattern = (text: RegExp) => (error: unknown) =>
    hasCodeAndText('invalid_request', text)(error) && (error as MoleculeError).details?.['path'] === 'pattern'
  const never = isOfPattern(/^no rule can be made of this: .* allow it once$/)
  const another = isOfPattern(/^this pattern does not cover .* use a pattern that the pending ask shows$/)
  await assert.rejects(allowAlways(unclearId, ana), never)
  await assert.rejects(allowAlways(unclearId, ana, '(no input)'), never)
  await assert.rejects(allowAlways(unclearId, ana, 'npm *'), another)
  await assert.rejects(allowAlways(clearId, ana, 'yarn *'), another)
  // `npm *` would cover `npm exec`, which runs any program.
  await assert.rejects(allowAlways(clearId, ana, 'npm *'), another)
  assert.equal((await allowAlways(clearId, ana, 'npm test *')).pattern, 'npm test *')
})

test('PL-24 a revoke removes one rule of its own workspace, tells the readers, and is in the activity', async (t) => {
  const { inbox, a, b, plant, changes } = await openTeam(t)
  for (const id of ['r1', 'r2']) await plant(a, { id, pattern: `make ${id}` })
  await plant(b, { id: 'r3', pattern: 'make' })
  const { revoke, list } = inbox.local.rules
  const kept = async () => (await inbox.sql('select id from permission_rules order by id')).map((row) => row['id'])
  await assert.rejects(revoke(b, 'r1', bo), hasCodeAndText('not_found', /^there is no rule "r1"$/))
  assert.deepEqual(await kept(), ['r1', 'r2', 'r3'])
  inbox.notified.length = 0
  await revoke(a, 'r1', bo)
  assert.deepEqual(inbox.notified, [a])
  assert.deepEqual(await kept(), ['r2', 'r3'])
  assert.deepEqual(
    (await list(b)).rows.map(({ id }) => id),
    ['r3'],
  )
  assert.deepEqual(await changes(a, 'rule'), [
    { taskId: undefined, name: 'Bash', subject: 'make r1', text: 'revoked', by: 'Bo', door: 'discord' },
  ])
})

test('PL-24 a page of rules ends at 1 MiB and has each rule once; a workspace keeps 500 rules', async (t) => {
  const { inbox, a, b, begin, ask, plant } = await openTeam(t)
  for (const id of ['r2', 'r1', 'r3']) await plant(a, { id, pattern: id.repeat(300_000), madeAtMs: 0 })
  await plant(b, { id: 'r4', pattern: 'make' })
  const pages: string[][] = []
  let after: string | undefined
  do {
    const page = await inbox.local.rules.list(a, after)
    pages.push(page.rows.map(({ id }) => id))
    after = page.next
  } while (after !== undefined && pages.length < 10)
  assert.deepEqual(pages, [['r1'], ['r2'], ['r3']])
  assert.deepEqual(await inbox.local.rules.list('none'), { rows: [] })
  await inbox.sql(
    `insert into permission_rules (id, workspace_id, tool, scope, pattern, made_by, made_principal, made_door, made_at)
     select 'n' || n, $1, 'Bash', 'exact', 'x' || n, 'Ana', 'token:ana', 'http', n from (
       with recursive counted(n) as (select 1 union all select n + 1 from counted where n < $2) select n from counted)`,
    ...[b, RULES_MAX - 2],
  )
  const [last, tooMany] = [await begin(b), await begin(b)]
  await ask(last, 'npm test')
  await ask(tooMany, 'npm run x')
  assert.equal((await inbox.local.pendingAsks.allowAlways(`${leaseId(last)}.1`, ana)).pattern, 'npm test')
  const listed = await inbox.local.rules.list(b)
  assert.deepEqual([listed.rows.length, listed.next], [RULES_MAX, undefined])
  await assert.rejects(
    inbox.local.pendingAsks.allowAlways(`${leaseId(tooMany)}.1`, ana),
    hasCodeAndText(
      'unsupported_operation',
      /^this workspace has 500 rules, and no more are kept: revoke some, or allow this once$/,
    ),
  )
  assert.equal((await inbox.local.pendingAsks.list({})).rows.length, 1, 'the ask is still open')
  assert.equal((await inbox.local.rules.list(b)).rows.length, RULES_MAX)
})
