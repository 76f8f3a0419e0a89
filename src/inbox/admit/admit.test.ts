/** Admission: who may continue what, which message is leased at once, and what the rows and the lease say. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { letterTo, SENDER } from '../../../test/fakes/letters.ts'
import { hasCodeAndText } from '../../../test/harness/check-error.ts'
import { done, leasesIn, openInboxOnClock } from '../../../test/harness/inbox-on-clock.ts'
import type { MoleculeError } from '../../errors.ts'
import type { Lease, Outcome } from '../inbox.ts'
import { isLargeLetter, prepareLargeLetter, prepareLetter } from './admit.ts'

const HOUR_MS = 3600_000

test('a message that a waiting worker takes at once has the same lease as one from the queue', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace({ slots: 2 })
  const queued = { ...letterTo(id, { contextId: 'queued' }), id: '01QUEUED000000000000000000' }
  assert.deepEqual(await inbox.local.reception.admit(queued), {
    taskId: queued.id,
    contextId: 'queued',
    duplicate: false,
  })
  assert.deepEqual(await inbox.load(id), { running: 0, waiting: 1, suspended: 0 })
  assert.equal(await inbox.state(queued.id), 'TASK_STATE_SUBMITTED')
  const worker = inbox.worker([id])
  const [fromQueue] = leasesIn(await worker.take())
  const direct = { ...letterTo(id, { contextId: 'direct' }), id: '01DIRECT000000000000000000' }
  assert.deepEqual(await inbox.local.reception.admit(direct), {
    taskId: direct.id,
    contextId: 'direct',
    duplicate: false,
  })
  const [atOnce] = leasesIn(await worker.take())
  const expected = (letter: typeof direct, conversationId: string | undefined) => ({
    workspaceId: id,
    conversationId,
    messageId: letter.id,
    taskId: letter.id,
    epoch: 1,
    contextId: letter.envelope.message.contextId,
    principal: 'people',
    sender: SENDER,
    envelope: letter.envelope,
    idempotencyKey: letter.envelope.message.messageId,
    failures: 0,
    losses: 0,
    interrupted: false,
    sessionRetried: false,
  })
  assert.deepEqual(fromQueue, expected(queued, fromQueue?.conversationId))
  assert.deepEqual(atOnce, expected(direct, atOnce?.conversationId))
  assert.equal(await inbox.state(direct.id), 'TASK_STATE_WORKING')
  assert.deepEqual(await inbox.load(id), { running: 2, waiting: 0, suspended: 0 })
  const row = async (messageId: string) => {
    const [found] = await inbox.sql(
      `select m.state, m.begun, m.n, m.settled_at, m.reply_to, m.admitted_at, m.ready_at, m.expires_at,
         c.worker, c.lease_epoch, c.last_n, c.ready_at as conversation_ready_at, c.lease_until
       from messages m join conversations c on c.id = m.conversation_id where m.id = $1`,
      messageId,
    )
    return { ...found }
  }
  const nowMs = inbox.clock.nowMs()
  assert.deepEqual(await row(direct.id), {
    state: 'leased',
    begun: 0,
    n: 1,
    settled_at: null,
    reply_to: null,
    admitted_at: nowMs,
    ready_at: nowMs,
    expires_at: nowMs + 24 * HOUR_MS,
    worker: worker.id,
    lease_epoch: 1,
    last_n: 1,
    conversation_ready_at: null,
    lease_until: nowMs + 30_000,
  })
  const replyTo = { door: 'discord', channel: 'c1' }
  const later = {
    ...letterTo(id, { contextId: 'direct' }),
    id: '01LATER0000000000000000000',
    replyTo,
    expiresInMs: 500.4,
  }
  await inbox.local.reception.admit(later)
  assert.deepEqual(await row(later.id), {
    state: 'queued',
    begun: 0,
    n: 2,
    settled_at: null,
    reply_to: JSON.stringify(replyTo),
    admitted_at: nowMs,
    ready_at: nowMs,
    expires_at: nowMs + 500,
    worker: worker.id,
    lease_epoch: 1,
    last_n: 2,
    conversation_ready_at: null,
    lease_until: nowMs + 30_000,
  })
  // The conversation is free again: its next message is leased at once, with the next epoch.
  await inbox.local.inbox.settle(atOnce as Lease, done('ok'))
  const [second] = leasesIn(await worker.take())
  await inbox.local.inbox.settle(second as Lease, done('ok'))
  const third = { ...letterTo(id, { contextId: 'direct' }), id: '01THIRD0000000000000000000' }
  await inbox.local.reception.admit(third)
  const [again] = leasesIn(await worker.take())
  assert.deepEqual(again, { ...expected(third, atOnce?.conversationId), epoch: 3 })
  const { state, n, lease_epoch: epoch, last_n: last } = await row(third.id)
  assert.deepEqual([state, n, epoch, last], ['leased', 3, 3, 3])
})

test('in a hosted workspace only the hosted worker takes a message at once, and its turn has begun', async (t) => {
  const inbox = openInboxOnClock(t)
  const [hosted, remote] = [await inbox.workspace({ hosted: true }), await inbox.workspace({ slots: 2 })]
  const worker = inbox.worker('hosted')
  const named = inbox.worker([hosted])
  const [first, second] = [
    await inbox.local.reception.admit(letterTo(hosted)),
    await inbox.local.reception.admit(letterTo(remote)),
  ]
  const begun = async () => {
    const rows = await inbox.sql('select id, state, begun from messages order by id')
    return rows.map((row) => [row['id'], row['state'], row['begun']])
  }
  assert.deepEqual(await begun(), [
    [first.taskId, 'leased', 1],
    [second.taskId, 'queued', 0],
  ])
  assert.deepEqual(
    leasesIn(await worker.take()).map(({ taskId }) => taskId),
    [first.taskId],
  )
  assert.deepEqual(await named.take(), [])
  const bridge = inbox.worker([remote])
  assert.equal((await bridge.lease()).taskId, second.taskId)
  const third = await inbox.local.reception.admit(letterTo(remote))
  assert.deepEqual((await begun()).at(-1), [third.taskId, 'leased', 0])
})

test('IN-2 a message is leased at once only with a free slot, a free conversation, an open queue, and nothing older ready', async (t) => {
  const inbox = openInboxOnClock(t)
  const [id, other] = [await inbox.workspace(), await inbox.workspace()]
  const worker = inbox.worker([id, other])
  await inbox.pass()
  const admit = async (contextId: string, workspaceId = id) => {
    const { taskId } = await inbox.local.reception.admit(letterTo(workspaceId, { contextId }))
    const [row] = await inbox.sql('select state from messages where id = $1', taskId)
    return row?.['state']
  }
  assert.equal(await admit('one'), 'leased')
  assert.equal(await admit('two'), 'queued', 'no free slot')
  await inbox.sql('update workspace_load set slots = 3 where workspace_id = $1', id)
  assert.equal(await admit('three'), 'queued', 'an older message is ready')
  await inbox.sql(`update conversations set ready_at = now_ms() + 1 where ready_at is not null`)
  assert.equal(await admit('four'), 'leased', 'the older ones are not ready yet')
  assert.equal(await admit('four'), 'queued', 'its conversation runs')
  assert.equal(await admit('two'), 'queued', 'an older message of its conversation waits')
  await inbox.sql('update workspace_load set paused = 1 where workspace_id = $1', id)
  assert.equal(await admit('five'), 'queued', 'the queue is paused')
  // What is ready in one workspace does not hold back another one.
  assert.equal(await admit('six', other), 'leased')
  await worker.take()
})

test('IN-1 a conflict names the task that has the key', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace()
  const key = { messageId: 'm', idempotencyKey: 'k', text: 'x' }
  const first = await inbox.local.reception.admit(letterTo(id, { ...key, contextId: 'c' }))
  const other = await inbox.local.reception.admit(letterTo(id, { messageId: 'n', text: 'x', contextId: 'o' }))
  const again = (options: object) => inbox.local.reception.admit(letterTo(id, { ...key, ...options }))
  for (const same of [{}, { contextId: 'c' }, { taskId: first.taskId }, { taskId: first.taskId, contextId: 'c' }]) {
    assert.deepEqual(await again(same), { ...first, duplicate: true })
  }
  const isConflict = (error: unknown) => {
    hasCodeAndText('idempotency_conflict', /^this idempotency key was used before with other content$/)(error)
    assert.deepEqual((error as MoleculeError).details, { taskId: first.taskId })
    return true
  }
  for (const changed of [{ text: 'y' }, { contextId: 'd' }, { taskId: other.taskId }]) {
    await assert.rejects(again(changed), isConflict)
  }
  await assert.rejects(again({ text: 'y', contextId: 'c', taskId: first.taskId }), isConflict)
})

test('a message continues only a task of its own sender and workspace, in the context of that task, until it has ended', async (t) => {
  const inbox = openInboxOnClock(t)
  const [a, b] = [await inbox.workspace({ slots: 3 }), await inbox.workspace()]
  const worker = inbox.worker([a])
  const open = await inbox.local.reception.admit(letterTo(a))
  await worker.lease()
  const stranger = await inbox.local.reception.admit(letterTo(a, { principal: 'other' }))
  const continuing = (options: object, workspaceId = a) =>
    inbox.local.reception.admit(letterTo(workspaceId, { taskId: open.taskId, ...options }))
  const isMissing = (taskId: string) => hasCodeAndText('not_found', new RegExp(`^there is no task ${taskId}$`))
  await assert.rejects(continuing({ taskId: 'gone' }), isMissing('gone'))
  await assert.rejects(continuing({ taskId: stranger.taskId }), isMissing(stranger.taskId))
  await assert.rejects(continuing({}, b), isMissing(open.taskId))
  await assert.rejects(
    continuing({ contextId: 'else' }),
    hasCodeAndText('invalid_request', new RegExp(`^task ${open.taskId} belongs to another context than else$`)),
  )
  for (const context of [{}, { contextId: open.contextId }]) {
    assert.deepEqual(await continuing(context), { ...open, duplicate: false })
  }
  assert.equal(await inbox.state(open.taskId), 'TASK_STATE_WORKING')
  const conversations = await inbox.sql('select conversation_id from messages where task_id = $1', open.taskId)
  assert.equal(new Set(conversations.map((row) => row['conversation_id'])).size, 1)
  await inbox.local.reception.cancel(open.taskId)
  const isOver = hasCodeAndText(
    'unsupported_operation',
    new RegExp(`^task ${open.taskId} has ended and takes no more messages$`),
  )
  await assert.rejects(continuing({}), isOver)
})

test('a task that waits for its caller works again with the next message, and one that waits for an owner does not', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace({ slots: 3 })
  const worker = inbox.worker([id])
  const asked = await inbox.local.reception.admit(letterTo(id))
  await inbox.local.inbox.settle(await worker.lease(), { ...done('which?'), finality: 'input_required' } as Outcome)
  assert.equal(await inbox.state(asked.taskId), 'TASK_STATE_INPUT_REQUIRED')
  await worker.leave()
  const { taskId } = await inbox.local.reception.admit(letterTo(id, { taskId: asked.taskId }))
  assert.deepEqual([taskId, await inbox.state(taskId)], [asked.taskId, 'TASK_STATE_WORKING'])
  const status = (await inbox.local.reception.task(taskId))?.status
  assert.equal(status?.message, undefined, 'its question is answered')
  const other = inbox.worker([id])
  await other.take()
  const waiting = await inbox.local.reception.admit(letterTo(id))
  const lease = await other.lease()
  const ask = { kind: 'permission', id: '1', parts: [{ text: 'may I?' }], tool: 'Bash', subject: 'make' } as const
  await inbox.local.inbox.ask(lease, ask)
  await inbox.local.reception.admit(letterTo(id, { taskId: waiting.taskId }))
  const kept = (await inbox.local.reception.task(waiting.taskId))?.status
  assert.deepEqual([kept?.state, kept?.message?.parts], ['TASK_STATE_AUTH_REQUIRED', [{ text: 'may I?' }]])
})

test('an answer to a question is the next message of its conversation, and is never queued', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace({ slots: 3 })
  const worker = inbox.worker([id])
  await inbox.local.reception.admit(letterTo(id))
  const lease = await worker.lease()
  await inbox.local.reception.admit(letterTo(id))
  const other = await worker.lease()
  await inbox.local.inbox.ask(lease, { kind: 'question', id: 'q', parts: [{ text: 'which?' }] })
  const answer = {
    ...letterTo(id, { taskId: lease.taskId, contextId: lease.contextId }),
    id: '01ANSWER000000000000000000',
  }
  const admitted = { taskId: lease.taskId, contextId: lease.contextId, duplicate: false }
  assert.deepEqual(await inbox.local.reception.admit(answer), admitted)
  const [row] = await inbox.sql('select state, n, begun, settled_at from messages where id = $1', answer.id)
  assert.deepEqual({ ...row }, { state: 'answer', n: 2, begun: 0, settled_at: inbox.clock.nowMs() })
  const rows = await inbox.sql('select id, last_n from conversations')
  assert.deepEqual(Object.fromEntries(rows.map((each) => [each['id'], each['last_n']])), {
    [lease.conversationId]: 2,
    [other.conversationId]: 1,
  })
  await inbox.local.reception.admit(letterTo(id, { taskId: lease.taskId }))
  const numbers = await inbox.sql('select n from messages where task_id = $1 order by n', lease.taskId)
  assert.deepEqual(
    numbers.map((each) => each['n']),
    [1, 2, 3],
  )
})

test('a context belongs to one sender and one workspace: the same name elsewhere is another conversation', async (t) => {
  const inbox = openInboxOnClock(t)
  const [a, b] = [await inbox.workspace(), await inbox.workspace()]
  const conversationOf = async (workspaceId: string, principal: string, contextId?: string) => {
    const letter = letterTo(workspaceId, { principal, ...(contextId !== undefined && { contextId }) })
    const admitted = await inbox.local.reception.admit(letter)
    const [row] = await inbox.sql('select conversation_id, n from messages where id = $1', admitted.taskId)
    return { id: row?.['conversation_id'], n: row?.['n'], contextId: admitted.contextId }
  }
  const made = await conversationOf(a, 'ana')
  assert.equal(made.id, made.contextId, 'a context that we create')
  const named = await conversationOf(a, 'ana', 'c')
  const conversations = [
    made,
    named,
    await conversationOf(a, 'bo', 'c'),
    await conversationOf(b, 'ana', 'c'),
    await conversationOf(a, 'bo', made.contextId),
    await conversationOf(b, 'ana', made.contextId),
    await conversationOf(a, 'ana', 'd'),
  ]
  assert.equal(new Set(conversations.map(({ id }) => id)).size, 7)
  for (const [index, [workspaceId, principal, contextId]] of [
    [a, 'ana', made.contextId],
    [a, 'ana', 'c'],
    [a, 'bo', 'c'],
    [b, 'ana', 'c'],
    [a, 'bo', made.contextId],
    [b, 'ana', made.contextId],
    [a, 'ana', 'd'],
  ].entries()) {
    const { id } = conversations[index] as typeof made
    const next = await conversationOf(workspaceId as string, principal as string, contextId)
    assert.deepEqual(next, { id, n: 2, contextId })
  }
})

test('a workspace that does not exist is not found, and a message that comes back to a workspace is refused', async (t) => {
  const inbox = openInboxOnClock(t)
  const id = await inbox.workspace()
  const { admit } = inbox.local.reception
  await assert.rejects(admit(letterTo('ws_gone')), hasCodeAndText('not_found', /^there is no workspace ws_gone$/))
  const letter = letterTo(id)
  const message = { ...letter.envelope.message, metadata: { molecule_path: [id] } }
  const circle = hasCodeAndText('forbidden', new RegExp(`^the message goes in a circle: ${id} -> ${id}$`))
  await assert.rejects(admit({ ...letter, envelope: { ...letter.envelope, message } }), circle)
  assert.deepEqual(await inbox.sql('select id from messages'), [])
})

test('a letter of more than 256 KiB is prepared in steps, and other callers run in between', async () => {
  const letter = letterTo('ws_1')
  assert.deepEqual(
    [{}, { bytes: 262_144 }, { bytes: 262_145 }].map((size) => isLargeLetter({ ...letter, ...size })),
    [false, false, true],
  )
  const order: string[] = []
  const prepared = prepareLargeLetter(letter).then((result) => {
    order.push('prepared')
    return result
  })
  const others = nextTurn().then(async () => {
    order.push('first caller')
    await nextTurn()
    order.push('second caller')
  })
  assert.deepEqual(await prepared, prepareLetter(letter))
  await others
  assert.deepEqual(order, ['first caller', 'prepared', 'second caller'])
})
