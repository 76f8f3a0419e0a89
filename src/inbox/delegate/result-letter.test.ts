/** The message that brings the result of a delegation to the conversation of its parent. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { childOf, textOf } from '../../../test/contracts/inbox/team.ts'
import { letterTo } from '../../../test/fakes/letters.ts'
import { failure, limitsOf, openTeam, withLimits } from '../../../test/harness/delegations.ts'
import { done } from '../../../test/harness/inbox-on-clock.ts'
import type { Lease, Outcome } from '../inbox.ts'

test('TW-3 a result is a message of the child to the conversation of its parent, with the whole answer', async (t) => {
  const { inbox, ids, begin, workers } = await openTeam(t, ['lead', 'counter'])
  const [a = '', b = ''] = ids
  // Other messages of both workspaces must not be taken for the parent or the child.
  await begin(letterTo(a, { principal: 'other' }))
  await begin(letterTo(b))
  const replyTo = { door: 'discord', channel: 'c1' }
  const root = await begin({ ...letterTo(a, { principal: 'discord:c1', contextId: 'talk' }), replyTo })
  const letter = childOf(root, b)
  const parts = [{ text: 'count ' }, { url: 'file:///x', mediaType: 'text/plain' }, { text: 'x'.repeat(400) }]
  const message = { ...letter.envelope.message, parts }
  const raw = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }
  const child = await begin({ ...letter, envelope: { ...letter.envelope, message, raw } })
  await inbox.local.inbox.settle(root, done('later'))
  const artifacts = [{ artifactId: 'f', parts: [{ text: 'file' }] }]
  await inbox.local.inbox.settle(child, { ...done('there are 7'), artifacts })
  const result = (await workers[0]?.lease()) as Lease
  const key = `result-${child.messageId}`
  assert.deepEqual(
    [result.workspaceId, result.conversationId, result.contextId, result.principal, result.idempotencyKey],
    [a, root.conversationId, 'talk', 'discord:c1', key],
  )
  assert.deepEqual(result.sender, { kind: 'agent', id: b, name: 'counter', door: 'delegation' })
  const { metadata, ...rest } = result.envelope.message
  const about = `The task ${child.taskId} that you gave to counter is completed.`
  const asked = `count ${'x'.repeat(293)}…`
  assert.deepEqual(rest, {
    messageId: key,
    role: 'ROLE_USER',
    contextId: 'talk',
    parts: [{ text: `${about}\nYour task was: ${asked}\nIts answer:\n\n` }, { text: 'there are 7' }, { text: 'file' }],
  })
  assert.deepEqual(metadata, {
    molecule_result_of: { task_id: child.taskId, workspace_id: b, state: 'TASK_STATE_COMPLETED' },
    molecule_delegation: { root_task: root.taskId, root_caller: 'discord:c1', turns_max: 50 },
  })
  const [row] = await inbox.sql('select reply_to, parent_id, root_id from messages where id = $1', result.messageId)
  assert.deepEqual({ ...row }, { reply_to: JSON.stringify(replyTo), parent_id: null, root_id: root.messageId })
})

test('TW-3 TW-4 a result says how the task ended: its question, its failure with the reason, or only its state', async (t) => {
  const { inbox, ids, begin, workers } = await openTeam(t, ['lead', 'counter'])
  const [a = '', b = ''] = ids
  const root = await begin(letterTo(a))
  const endings: Outcome[] = [
    { ...done('how many?'), finality: 'input_required' } as Outcome,
    { ...done('please log in'), finality: 'auth_required' } as Outcome,
    { type: 'dead', failure: { ...failure, sentence: 'the agent stopped', details: { stderr: 'secret' } } },
    { ...done('no'), finality: 'rejected' } as Outcome,
  ]
  const children: Lease[] = []
  for (const _ of endings) children.push(await begin(childOf(root, b, { text: 'count' })))
  await inbox.local.inbox.settle(root, done('later'))
  const texts: string[] = []
  for (const [index, child] of children.entries()) {
    await inbox.local.inbox.settle(child, endings[index] as Outcome)
    const result = (await workers[0]?.lease()) as Lease
    texts.push(textOf(result))
    await inbox.local.inbox.settle(result, done('thanks'))
  }
  const about = (index: number, state: string) =>
    `The task ${children[index]?.taskId} that you gave to counter is ${state}.\nYour task was: count\n`
  const failed = (index: number, reason: string) =>
    `[A2A_ERROR] DELEGATION FAILED: counter gave no answer (${reason}). Its task is ${children[index]?.taskId}.\n`
  assert.equal(texts[0], `${about(0, 'input required')}It asks: how many?`)
  assert.equal(texts[1], `${about(1, 'auth required')}It asks: please log in`)
  assert.ok(texts[2]?.startsWith(`${about(2, 'failed')}${failed(2, 'the agent stopped')}Do one of these: `), texts[2])
  assert.ok(texts[3]?.startsWith(`${about(3, 'rejected')}[A2A_ERROR] DELEGATION FAILED: `), texts[3])
})

test('TW-3 a task without a status message, and of a workspace that is gone, is reported with its state and its id', async (t) => {
  const { inbox, ids, begin, workers } = await openTeam(t, ['lead', 'counter'])
  const [a = '', b = ''] = ids
  const root = await begin(letterTo(a))
  const [silent, several] = [await begin(childOf(root, b)), await begin(childOf(root, b))]
  for (const child of [silent, several]) await inbox.local.inbox.settle(child, { type: 'dead', failure })
  const said = JSON.stringify({ parts: [{ text: 'one ' }, { url: 'file:///x' }, { text: 'two' }] })
  await inbox.sql('update tasks set status_message = null where id = $1', silent.taskId)
  await inbox.sql('update tasks set status_message = $2 where id = $1', several.taskId, said)
  await inbox.sql('delete from workspaces where id = $1', b)
  await inbox.local.inbox.settle(root, done('later'))
  const reasons: (string | undefined)[] = []
  for (let count = 0; count < 2; count++) {
    const result = (await workers[0]?.lease()) as Lease
    assert.equal(result.sender.name, b)
    reasons.push(new RegExp(`: ${b} gave no answer \\((.*)\\)`).exec(textOf(result))?.[1])
    await inbox.local.inbox.settle(result, done('thanks'))
  }
  assert.deepEqual(reasons, ['failed', 'one two'])
})

test('TW-9 a result renews no limit: it has the place, the path and the turns of its parent, less those that were used', async (t) => {
  const { inbox, ids, begin, workers } = await openTeam(t, ['a', 'b', 'c'])
  const [a = '', b = '', c = ''] = ids
  const root = await begin(withLimits(letterTo(a), { turns_left: 20, depth_left: 3 }))
  const middle = await begin(withLimits(childOf(root, b), { turns_left: 2 }))
  const child = await begin(childOf(middle, c))
  await inbox.local.inbox.settle(middle, done('later'))
  await inbox.local.inbox.settle(child, done('7'))
  const result = (await workers[1]?.lease()) as Lease
  const first = { root_task: root.taskId, root_caller: 'people', turns_max: 20 }
  assert.deepEqual(limitsOf(result), { ...first, depth_left: 2, turns_left: 1 })
  assert.deepEqual(result.envelope.message.metadata?.['molecule_path'], [a])
  const place = 'select parent_id, root_id, parent_epoch, child_open from messages where id = $1'
  const [row] = await inbox.sql(place, result.messageId)
  const parent = { parent_id: root.messageId, root_id: root.messageId, parent_epoch: 1, child_open: 1 }
  assert.deepEqual({ ...row }, parent)
  // The first message has the limits of the whole tree.
  await inbox.local.inbox.settle(result, done('ok'))
  await inbox.local.inbox.settle(root, done('later'))
  const reported = (await workers[0]?.lease()) as Lease
  assert.deepEqual(limitsOf(reported), { ...first, depth_left: 3 })
  assert.equal(reported.envelope.message.metadata?.['molecule_path'], undefined)
})

test('TW-9 TW-10 a result has no turns below none, and the money that the budgets above it have left', async (t) => {
  const { inbox, ids, begin, workers } = await openTeam(t, ['a', 'b', 'c'])
  const [a = '', b = '', c = ''] = ids
  const root = await begin(withLimits(letterTo(a), { max_cost_usd: 1 }))
  const middle = await begin(withLimits(childOf(root, b), { turns_left: 1, max_cost_usd: 0.5 }))
  const child = await begin(childOf(middle, c))
  await inbox.sql('update messages set failures = 3 where id = $1', child.messageId)
  await inbox.local.inbox.settle(middle, done('later'))
  await inbox.local.inbox.settle(child, { ...done('7'), usage: { durationMs: 1, costUsd: 0.25 } })
  const result = (await workers[1]?.lease()) as Lease
  const limits = (lease: Lease) => {
    const {
      turns_left: turns,
      cost_left_usd: left,
      max_cost_usd: max,
      budgets,
    } = limitsOf(lease) as Record<string, unknown>
    return { turns, left, max, budgets }
  }
  const covering = [root.messageId, middle.messageId]
  assert.deepEqual(limits(result), { turns: 0, left: 0.25, max: undefined, budgets: covering })
  // A budget of the first message stays that one budget too.
  await inbox.local.inbox.settle(result, done('ok'))
  await inbox.local.inbox.settle(root, done('later'))
  const reported = (await workers[0]?.lease()) as Lease
  assert.deepEqual(limits(reported), { turns: undefined, left: 0.75, max: undefined, budgets: [root.messageId] })
})
