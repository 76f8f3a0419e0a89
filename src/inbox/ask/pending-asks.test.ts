/** The owners' list of pending asks, and what an answer does to its turn and to no other one. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { letterTo } from '../../../test/fakes/letters.ts'
import { hasCodeAndText } from '../../../test/harness/check-error.ts'
import {
  type ClockedInbox,
  type ClockedWorker,
  done,
  keyOf,
  leasesIn,
  openInboxOnClock,
} from '../../../test/harness/inbox-on-clock.ts'
import { type Lease, leaseId } from '../inbox.ts'
import { denyAsk, findTimedOutAsks } from './ask.ts'
import { ruleChoices } from './rule-pattern.ts'

const MINUTE_MS = 60_000
const SWEEP_MS = 5000
const ana = { name: 'Ana', principal: 'token:ana', door: 'http' }

const permission = (subject: string, options: { id?: string; tool?: string; timeoutMs?: number } = {}) => ({
  kind: 'permission' as const,
  id: '1',
  parts: [{ text: 'waiting' }],
  tool: 'Bash',
  subject,
  ...options,
})
const question = { kind: 'question' as const, id: 'q', parts: [{ text: 'how many?' }] }

async function begin(inbox: ClockedInbox, id: string, worker: ClockedWorker): Promise<Lease> {
  await inbox.local.reception.admit(letterTo(id))
  return await worker.lease()
}

/** Two workspaces with a worker each. */
async function openTeam(t: TestContext) {
  const inbox = openInboxOnClock(t)
  const [a, b] = [await inbox.workspace({ slots: 9 }), await inbox.workspace({ slots: 9 })]
  return { inbox, a, b, workerA: inbox.worker([a]), workerB: inbox.worker([b]) }
}

/** More asks than a person would wait for, of one turn and one after another: `p1`, `p2` and so on. */
async function plantAsks(inbox: ClockedInbox, lease: Lease, { count, isLate }: { count: number; isLate: boolean }) {
  await inbox.sql(
    `insert into asks (message_id, id, workspace_id, task_id, epoch, state, question, tool, subject, asked_at, expires_at)
     select $1, 'p' || n, $2, 'task-' || n, $3, 'open', '[]', 'Bash', 'make', n - 1, now_ms() + $5 from (
       with recursive counted(n) as (select 1 union all select n + 1 from counted where n < $4) select n from counted)`,
    ...[lease.messageId, lease.workspaceId, lease.epoch, count, isLate ? -1 : MINUTE_MS],
  )
}

test('AG-16 the list has the open permissions of running turns, the oldest first, with everything an owner decides by', async (t) => {
  const { inbox, a, b, workerA, workerB } = await openTeam(t)
  const { ask, settle } = inbox.local.inbox
  const list = async (workspaceId?: string) =>
    (await inbox.local.pendingAsks.list(workspaceId === undefined ? {} : { workspaceId })).rows
  const startMs = inbox.clock.nowMs()
  const [first, second, asking, stopped] = [
    await begin(inbox, a, workerA),
    await begin(inbox, a, workerA),
    await begin(inbox, a, workerA),
    await begin(inbox, a, workerA),
  ]
  const other = await begin(inbox, b, workerB)
  assert.equal(await ask(first, permission('npm test')), 'held')
  assert.equal(await ask(asking, question), 'held')
  assert.equal(await ask(stopped, permission('make')), 'held')
  await inbox.local.reception.cancel(stopped.taskId)
  inbox.clock.advance(1000)
  assert.equal(await ask(other, permission('(no input)', { tool: 'Write', timeoutMs: 1 })), 'held')
  inbox.clock.advance(1000)
  assert.equal(await ask(second, permission('rm -rf build', { timeoutMs: 90_000 })), 'held')
  const entry = (lease: Lease, values: object) => ({
    id: `${leaseId(lease)}.1`,
    workspaceId: lease.workspaceId,
    taskId: lease.taskId,
    messageId: lease.messageId,
    tool: 'Bash',
    ...values,
  })
  const { exact, wider } = ruleChoices({ tool: 'Bash', subject: 'npm test' })
  const removal = ruleChoices({ tool: 'Bash', subject: 'rm -rf build' })
  const oldest = entry(first, {
    subject: 'npm test',
    askedAtMs: startMs,
    expiresInMs: 30 * MINUTE_MS - 2000,
    wouldCover: exact,
    wouldCoverMore: wider,
  })
  // Its time is over, and no sweep has denied it yet.
  const late = entry(other, { tool: 'Write', subject: '(no input)', askedAtMs: startMs + 1000, expiresInMs: 0 })
  const newest = entry(second, {
    subject: 'rm -rf build',
    askedAtMs: startMs + 2000,
    expiresInMs: 90_000,
    wouldCover: removal.exact,
    wouldCoverMore: removal.wider,
  })
  assert.deepEqual(await list(), [oldest, late, newest])
  assert.deepEqual(await list(a), [oldest, newest])
  assert.deepEqual(await list(b), [late])
  assert.deepEqual(await list('none'), [])
  // A new attempt asks again under the same id: the ask of the attempt before is void.
  const failure = { code: 'exit', message: 'it broke' }
  await settle(first, { type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: false })
  const again = await workerA.lease()
  assert.deepEqual(
    (await list(a)).map(({ id }) => id),
    [newest.id],
  )
  inbox.clock.advance(1)
  await ask(again, permission('npm test'))
  assert.deepEqual(
    (await list(a)).map(({ id }) => id),
    [newest.id, `${leaseId(again)}.1`],
  )
  await assert.rejects(
    inbox.local.pendingAsks.answer(oldest.id, 'allowed', ana),
    hasCodeAndText('unsupported_operation', /^no turn waits for this answer any more$/),
  )
  await settle(again, done('bye'))
  assert.deepEqual(
    (await list(a)).map(({ id }) => id),
    [newest.id],
  )
})

test('AG-16 pages of the list have each ask once, also where asks of one moment are on two pages', async (t) => {
  const { inbox, a, b, workerA, workerB } = await openTeam(t)
  const pages = async (workspaceId?: string) => {
    const found: string[][] = []
    let after: string | undefined
    do {
      const query = { ...(workspaceId !== undefined && { workspaceId }), ...(after !== undefined && { after }) }
      const page = await inbox.local.pendingAsks.list(query)
      found.push(page.rows.map(({ id }) => id))
      after = page.next
    } while (after !== undefined && found.length < 10)
    return found
  }
  assert.deepEqual(await pages(), [[]])
  const leases: Lease[] = []
  for (let count = 0; count < 3; count++) leases.push(await begin(inbox, a, workerA))
  for (const lease of leases) await inbox.local.inbox.ask(lease, permission('x'.repeat(600_000)))
  const ids = leases.map((lease) => `${leaseId(lease)}.1`).sort()
  // A page ends at 1 MiB.
  assert.deepEqual(
    await pages(),
    ids.map((id) => [id]),
  )
  // A page ends at 500 asks.
  const other = await begin(inbox, b, workerB)
  await plantAsks(inbox, other, { count: 501, isLate: false })
  const [full, rest, ...more] = await pages(b)
  assert.deepEqual([full?.length, full?.[0], rest, more], [500, `${leaseId(other)}.p1`, [`${leaseId(other)}.p501`], []])
})

test('AG-16 an answer goes to exactly its turn, and all other asks stay open', async (t) => {
  const { inbox, a, b, workerA, workerB } = await openTeam(t)
  const { ask } = inbox.local.inbox
  const open = async () => (await inbox.local.pendingAsks.list({})).rows.map(({ id }) => id).sort()
  const [first, second] = [await begin(inbox, a, workerA), await begin(inbox, a, workerA)]
  const other = await begin(inbox, b, workerB)
  for (const lease of [first, second, other]) await ask(lease, permission('make'))
  const idOf = (lease: Lease, id = '1') => `${leaseId(lease)}.${id}`
  assert.deepEqual(await inbox.load(a), { running: 0, waiting: 0, suspended: 2 })
  inbox.notified.length = 0
  await inbox.local.pendingAsks.answer(idOf(second), 'allowed', ana)
  assert.deepEqual(inbox.notified, [a])
  const answer = { type: 'answer', key: keyOf(second), askId: '1', parts: [] }
  assert.deepEqual(await workerA.take(), [answer])
  assert.deepEqual(await workerB.take(), [])
  assert.deepEqual(await open(), [idOf(first), idOf(other)].sort())
  assert.deepEqual(await inbox.load(a), { running: 1, waiting: 0, suspended: 1 })
  const states = await Promise.all([first, second, other].map(({ taskId }) => inbox.state(taskId)))
  assert.deepEqual(states, ['TASK_STATE_AUTH_REQUIRED', 'TASK_STATE_WORKING', 'TASK_STATE_AUTH_REQUIRED'])
  // The worker may have missed it: the sweep repeats the answer until the turn settles.
  await inbox.pass(SWEEP_MS)
  assert.deepEqual(await workerA.take(), [answer])
  // The same turn asks again; its first answer stays as it is.
  await ask(second, permission('make clean', { id: '2' }))
  await inbox.local.pendingAsks.answer(idOf(second, '2'), 'denied', ana)
  assert.deepEqual(await workerA.take(), [{ ...answer, askId: '2', parts: undefined }])
  const rows = await inbox.sql(
    'select id, state, answered_by from asks where message_id = $1 order by id',
    second.messageId,
  )
  assert.deepEqual(
    rows.map((row) => ({ ...row })),
    [
      { id: '1', state: 'answered', answered_by: 'Ana' },
      { id: '2', state: 'denied', answered_by: 'Ana' },
    ],
  )
  assert.deepEqual(await open(), [idOf(first), idOf(other)].sort())
  // The same answer again sends nothing; another one is refused with what was decided.
  inbox.notified.length = 0
  await inbox.local.pendingAsks.answer(idOf(second), 'allowed', ana)
  assert.deepEqual([await workerA.take(), inbox.notified], [[], []])
  const { answer: decide } = inbox.local.pendingAsks
  await assert.rejects(
    decide(idOf(second), 'denied', ana),
    hasCodeAndText('unsupported_operation', /^this was allowed already$/),
  )
  await assert.rejects(
    decide(idOf(second, '2'), 'allowed', ana),
    hasCodeAndText('unsupported_operation', /^this was denied already, or not answered in time$/),
  )
})

test('AG-16 only a permission of that very turn can be answered by its id', async (t) => {
  const { inbox, a, workerA } = await openTeam(t)
  const { answer, allowAlways } = inbox.local.pendingAsks
  const [lease, asking] = [await begin(inbox, a, workerA), await begin(inbox, a, workerA)]
  await inbox.local.inbox.ask(lease, permission('make'))
  await inbox.local.inbox.ask(asking, question)
  const { messageId, epoch } = lease
  for (const unknown of [`${messageId}.${epoch}.2`, `${messageId}.${epoch + 1}.1`, `${asking.messageId}.${epoch}.1`]) {
    await assert.rejects(answer(unknown, 'allowed', ana), hasCodeAndText('not_found', new RegExp(`"${unknown}" waits`)))
    await assert.rejects(allowAlways(unknown, ana), hasCodeAndText('not_found', /waits for an answer$/))
  }
  await assert.rejects(
    answer(`${leaseId(asking)}.q`, 'allowed', ana),
    hasCodeAndText('not_found', /waits for an answer$/),
  )
  assert.deepEqual(await workerA.take(), [])
  assert.equal(await inbox.state(asking.taskId), 'TASK_STATE_INPUT_REQUIRED')
})

test('AG-16 an ask is denied half an hour after it was asked, a hundred in one sweep, and no earlier', async (t) => {
  const { inbox, a, b, workerA, workerB } = await openTeam(t)
  const [lease, shorter] = [await begin(inbox, a, workerA), await begin(inbox, a, workerA)]
  await inbox.local.inbox.ask(lease, permission('make'))
  await inbox.local.inbox.ask(shorter, { ...question, timeoutMs: 10 * MINUTE_MS })
  await inbox.pass(10 * MINUTE_MS)
  await inbox.pass(SWEEP_MS)
  const denied = (of: Lease, askId: string) => ({ type: 'answer', key: keyOf(of), askId, parts: undefined })
  const [first] = await workerA.take()
  assert.deepEqual(first, denied(shorter, 'q'))
  assert.equal(await inbox.state(shorter.taskId), 'TASK_STATE_WORKING')
  await inbox.local.inbox.settle(shorter, done('bye'))
  await inbox.pass(20 * MINUTE_MS - SWEEP_MS)
  assert.deepEqual(await workerA.take(), [])
  assert.equal(await inbox.state(lease.taskId), 'TASK_STATE_AUTH_REQUIRED')
  inbox.notified.length = 0
  await inbox.pass(SWEEP_MS)
  assert.deepEqual((await workerA.take())[0], denied(lease, '1'))
  assert.ok(inbox.notified.includes(a))
  assert.equal(await inbox.state(lease.taskId), 'TASK_STATE_WORKING')
  const other = await begin(inbox, b, workerB)
  await plantAsks(inbox, other, { count: 101, isLate: true })
  const openAsks = async () => (await inbox.sql(`select id from asks where state = 'open'`)).length
  await inbox.pass(SWEEP_MS)
  for (let turn = 0; turn < 5; turn++) await inbox.pass()
  assert.equal(await openAsks(), 1)
  await inbox.pass(SWEEP_MS)
  assert.equal(await openAsks(), 0)
})

test('AG-16 an answer that comes just before the denial counts, and the turn gets no denial', async (t) => {
  const { inbox, a, workerA } = await openTeam(t)
  const lease = await begin(inbox, a, workerA)
  await inbox.local.inbox.ask(lease, permission('make', { timeoutMs: 1 }))
  inbox.clock.advance(10)
  const [late] = await inbox.store.read(findTimedOutAsks)
  assert.ok(late !== undefined)
  await inbox.local.pendingAsks.answer(`${leaseId(lease)}.1`, 'allowed', ana)
  assert.equal(await inbox.store.write(() => denyAsk(late)), false)
  await inbox.pass(SWEEP_MS)
  const answer = { type: 'answer', key: keyOf(lease), askId: '1', parts: [] }
  assert.deepEqual(await workerA.take(), [answer, answer])
})

test('AG-16 an answer that comes while the sweep denies another ask counts, and its turn gets no denial', async (t) => {
  const { inbox, a, workerA } = await openTeam(t)
  const [first, second] = [await begin(inbox, a, workerA), await begin(inbox, a, workerA)]
  for (const lease of [first, second]) await inbox.local.inbox.ask(lease, permission('make', { timeoutMs: 1 }))
  const { answer } = inbox.local.pendingAsks
  let answered: Promise<unknown> | undefined
  inbox.failWrites(() => {
    // The denial of one ask is stored before both answers, and that of the other one after them.
    answered ??= Promise.allSettled([first, second].map((lease) => answer(`${leaseId(lease)}.1`, 'allowed', ana)))
    return undefined
  })
  await inbox.pass(SWEEP_MS)
  await answered
  const stored = await inbox.sql('select message_id, state from asks')
  const expected = stored.map((row) => `${row['message_id']} ${row['state'] === 'answered' ? 'allowed' : 'denied'}`)
  const received = (await workerA.take()).map((directive) => {
    assert.ok(directive.type === 'answer')
    return `${directive.key.messageId} ${directive.parts === undefined ? 'denied' : 'allowed'}`
  })
  assert.deepEqual(new Set(received), new Set(expected))
  assert.deepEqual(stored.map((row) => row['state']).sort(), ['answered', 'denied'])
})

test('AG-16 a turn asks one thing at a time; a repeated call asks nothing twice, and a stopped turn asks nothing', async (t) => {
  const { inbox, a, workerA } = await openTeam(t)
  const { ask } = inbox.local.inbox
  const [lease, other, stopped] = [
    await begin(inbox, a, workerA),
    await begin(inbox, a, workerA),
    await begin(inbox, a, workerA),
  ]
  assert.equal(await ask(other, question), 'held')
  assert.equal(await ask(lease, permission('make')), 'held')
  assert.equal(await ask(lease, permission('make')), 'held')
  assert.equal(await ask(lease, permission('make clean', { id: '2' })), 'refused')
  assert.equal(await ask(lease, question), 'refused')
  await inbox.local.reception.cancel(stopped.taskId)
  assert.equal(await ask(stopped, permission('make')), 'stop')
  assert.equal(await ask({ ...lease, epoch: lease.epoch + 1 }, permission('make')), 'stale')
  assert.equal((await inbox.sql('select id from asks')).length, 2)
  await inbox.local.pendingAsks.answer(`${leaseId(lease)}.1`, 'denied', ana)
  assert.equal(await ask(lease, question), 'held')
  const task = await inbox.local.reception.task(lease.taskId)
  assert.equal(task?.status.state, 'TASK_STATE_INPUT_REQUIRED')
  assert.deepEqual(task?.status.message?.parts, [{ text: 'how many?' }])
})

test('AG-16 a waiting turn gives its slot to the next message, and takes it back with the answer', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace({ slots: 1 })
  const worker = inbox.worker([id])
  const lease = await begin(inbox, id, worker)
  await inbox.local.reception.admit(letterTo(id))
  await inbox.local.inbox.ask(lease, permission('make'))
  const [next] = leasesIn(await worker.take())
  assert.ok(next !== undefined)
  assert.deepEqual(await inbox.load(id), { running: 1, waiting: 0, suspended: 1 })
  await inbox.local.pendingAsks.answer(`${leaseId(lease)}.1`, 'allowed', ana)
  assert.deepEqual(await inbox.load(id), { running: 2, waiting: 0, suspended: 0 })
})
