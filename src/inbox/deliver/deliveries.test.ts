/** Each call of a door changes the delivery that it names and no other, and the log says what a person must know. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Changes, openInboxRows, START_MS } from '../../../test/harness/inbox-rows.ts'
import { MoleculeError } from '../../errors.ts'
import type { Value } from '../../store/store.ts'
import type { DeliveryBody } from '../delivery.ts'

const DAY_MS = 24 * 3600_000

function openDeliveries(t: TestContext) {
  const rows = openInboxRows(t)
  const deliver = (id: string, row: Readonly<Record<string, Value>> = {}) =>
    rows.plant('deliveries', {
      id,
      workspace_id: 'w',
      task_id: `task-${id}`,
      message_id: `message-${id}`,
      door: 'chat',
      channel: id,
      body: JSON.stringify({ state: 'TASK_STATE_COMPLETED', parts: [{ text: `a b of ${id}` }] }),
      state: 'pending',
      next_at: START_MS,
      created_at: START_MS,
      ...row,
    })
  /** The parts of a delivery, by their states. */
  const parts = async (id: string, ...states: string[]) => {
    for (const [n, state] of states.entries())
      await rows.plant('delivery_parts', { delivery_id: id, n, content: `part ${n}`, state, tried_at: START_MS - 5 })
  }
  /** In every state, in both doors, each with parts in every state; their ids sort before all others. */
  const bystanders = async () => {
    for (const door of ['chat', 'mail'])
      for (const state of ['sending', 'sent', 'failed', 'unknown']) {
        const id = `0-${door}-${state}`
        await deliver(id, { door, state, ...(state !== 'sending' && { finished_at: START_MS }) })
        await parts(id, 'sent', 'sending', 'pending')
      }
  }
  return { ...rows, all: rows.local.deliveries, deliver, parts, bystanders }
}

const note = (id: string, { text, by = 'platform' }: { text: string; by?: string }): Changes => ({
  'workspace_load w': { seq: 1 },
  'events w 1': {
    task_id: `task-${id}`,
    message_id: `message-${id}`,
    at_ms: START_MS,
    delta: 0,
    items: [{ t: 'note', type: 'delivery', text, by }],
  },
})

const bodyOf = (id: string) => ({ state: 'TASK_STATE_COMPLETED', parts: [{ text: `a b of ${id}` }] })

test('GW-6 a door takes its oldest due delivery; one that waits or is being sent holds back its own channel only', async (t) => {
  const { all, deliver, bystanders, changes } = openDeliveries(t)
  await bystanders()
  await deliver('1-mail', { door: 'mail', channel: 'd' })
  await deliver('2-later', { channel: 'a', next_at: START_MS + 1 })
  await deliver('3-behind-later', { channel: 'a' })
  await deliver('4-behind-sending', { channel: '0-chat-sending' })
  await deliver('5-behind-sent', { channel: '0-chat-sent', tries: 3 })
  await deliver('6-same-channel-of-another-door', { channel: 'd' })
  const taken: unknown[] = []
  const changed = await changes(async () => taken.push(await all.take('chat')))
  const first = { id: '5-behind-sent', workspaceId: 'w', taskId: 'task-5-behind-sent', channel: '0-chat-sent' }
  assert.deepEqual(taken, [{ ...first, body: bodyOf('5-behind-sent'), tries: 3 }])
  assert.deepEqual(changed, { 'deliveries 5-behind-sent': { state: 'sending', sender: 'host', tries: 4 } })
  assert.equal((await all.take('chat'))?.id, '6-same-channel-of-another-door')
  assert.equal(await all.take('chat'), undefined)
})

test('GW-6 the parts of a delivery are made once, and each step of a part changes that part only', async (t) => {
  const { all, deliver, parts, changes, clock, write } = openDeliveries(t)
  await deliver('1')
  await parts('2', 'pending', 'pending')
  const split = (body: DeliveryBody) => (body.parts?.[0]?.text ?? '').split(' ').slice(0, 2)
  const pending = ['a', 'b'].map((content, n) => ({ n, content, state: 'pending' }))
  const delivery = { id: '1', workspaceId: 'w', taskId: 'task-1', channel: '1', body: bodyOf('1') }
  assert.deepEqual(await all.take('chat', split), { ...delivery, tries: 0, parts: pending })
  assert.deepEqual(await changes(() => all.beginPart('1', 0)), {
    'delivery_parts 1 0': { state: 'sending', tried_at: START_MS },
  })
  clock.advance(7)
  assert.deepEqual(await changes(() => all.partSent('1', 0, 'r')), {
    'delivery_parts 1 0': { state: 'sent', receipt: 'r' },
  })
  await all.finish('1', { type: 'failed', error: 'no route', retryAfterMs: 0 })
  assert.deepEqual(await all.take('chat', () => ['never asked again']), {
    ...delivery,
    tries: 1,
    parts: [{ n: 0, content: 'a', state: 'sent', triedAgoMs: 7 }, pending[1]],
  })
  await all.finish('1', { type: 'failed', error: 'no route', retryAfterMs: 0 })
  await write(function* () {
    yield [{ text: `delete from delivery_parts where delivery_id = '1' and n = 1`, values: [] }]
  })
  const whole = await all.take('chat', split)
  assert.deepEqual(whole?.parts?.length, 1, 'one stored part is the whole delivery')
})

test('GW-6 when a door starts, a send of an earlier process may have arrived, unless no part was being sent', async (t) => {
  const { all, deliver, parts, bystanders, changes, workspace } = openDeliveries(t)
  await workspace('w')
  await workspace('other')
  await bystanders()
  await deliver('1-between-parts', { state: 'sending' })
  await parts('1-between-parts', 'sent', 'pending')
  await deliver('2-in-a-part', { state: 'sending', tries: 2 })
  await parts('2-in-a-part', 'sent', 'sending')
  await deliver('3-waiting', { sender: 'host' })
  await deliver('4-unknown', { state: 'unknown' })
  await parts('4-unknown', 'sending')
  await deliver('5-unknown-as-a-whole', { state: 'unknown' })
  await parts('5-unknown-as-a-whole', 'pending')
  await deliver('6-failed', { state: 'failed' })
  await parts('6-failed', 'sending')
  let found: Awaited<ReturnType<typeof all.interrupted>> = []
  const changed = await changes(async () => (found = await all.interrupted('chat')))
  const stopped = { state: 'unknown', error: 'the platform stopped while it was being sent' }
  const { 'events w 1': first, 'events w 2': second, ...others } = changed
  assert.deepEqual(others, {
    'workspace_load w': { seq: 2 },
    'deliveries 0-chat-sending': stopped,
    'deliveries 1-between-parts': { state: 'pending' },
    'deliveries 2-in-a-part': stopped,
  })
  const text = 'the answer to chat may not have arrived'
  for (const [id, event] of [['0-chat-sending', first] as const, ['2-in-a-part', second] as const])
    assert.deepEqual(event, note(id, { text })['events w 1'])
  assert.deepEqual(
    found.map(({ id, tries, parts: states }) => [id, tries, states?.map(({ state }) => state).join(' ')]),
    [
      ['0-chat-sending', 0, 'sent sending pending'],
      ['2-in-a-part', 2, 'sent sending'],
      ['4-unknown', 0, 'sending'],
    ],
  )
})

test('GW-6 a restart of the platform ends the sends of its own host', async (t) => {
  const { local, deliver, parts, changes, workspace } = openDeliveries(t)
  await workspace('w')
  await deliver('1', { state: 'sending', sender: 'host' })
  await deliver('2', { state: 'sending', sender: 'other-host' })
  await deliver('3', { state: 'pending', sender: 'host' })
  await deliver('4', { state: 'sending', sender: 'other-host' })
  await parts('4', 'sent')
  await deliver('5', { state: 'sending', sender: 'host', workspace_id: 'deleted' })
  const error = 'the platform stopped while it was being sent'
  assert.deepEqual(await changes(() => local.recover()), {
    ...note('1', { text: 'the answer to chat may not have arrived' }),
    'deliveries 1': { state: 'unknown', error },
    'deliveries 5': { state: 'unknown', error },
  })
})

test('GW-6 a door that knows what arrived lets its delivery go on, with that part or without it', async (t) => {
  const { all, deliver, parts, bystanders, changes, workspace, hints, clock } = openDeliveries(t)
  await workspace('w')
  await bystanders()
  for (const id of ['1', '2']) {
    await deliver(id, { state: 'unknown' })
    await parts(id, 'sent', 'sending', 'pending')
  }
  await deliver('3', { state: 'failed' })
  clock.advance(50)
  const text = 'the answer to chat goes on where it was cut off'
  const { 'events w 1': event, ...arrived } = await changes(() => all.resume('1', 'r'))
  assert.deepEqual(arrived, {
    'workspace_load w': { seq: 1 },
    'deliveries 1': { state: 'pending', next_at: START_MS + 50 },
    'delivery_parts 1 1': { state: 'sent', receipt: 'r' },
  })
  assert.deepEqual({ ...(event as object), at_ms: START_MS }, note('1', { text })['events w 1'])
  const { 'events w 2': _event, ...lost } = await changes(() => all.resume('2'))
  assert.deepEqual(lost, {
    'workspace_load w': { seq: 2 },
    'deliveries 2': { state: 'pending', next_at: START_MS + 50 },
    'delivery_parts 2 1': { state: 'pending' },
  })
  assert.deepEqual(hints(), ['w', 'w'])
  assert.deepEqual(await changes(() => all.resume('3')), {})
  assert.deepEqual(hints(), [])
})

test('GW-6 a try ends as sent or unknown, once, and only for its own delivery', async (t) => {
  const { all, deliver, parts, bystanders, changes, workspace, hints, clock } = openDeliveries(t)
  await workspace('w')
  await bystanders()
  for (const id of ['1', '2', '3']) await deliver(id, { state: 'sending', error: 'no route', tries: 1 })
  await parts('1', 'sent', 'sending')
  clock.advance(5)
  assert.deepEqual(await changes(() => all.finish('1', { type: 'sent', receipt: 'r' })), {
    'deliveries 1': { state: 'sent', receipt: 'r', error: null, finished_at: START_MS + 5 },
    'delivery_parts 1 0': 'deleted',
    'delivery_parts 1 1': 'deleted',
  })
  assert.deepEqual(await changes(() => all.finish('1', { type: 'unknown', error: 'said twice' })), {})
  assert.deepEqual(hints(), [])
  const { 'events w 1': event, ...unknown } = await changes(() => all.finish('2', { type: 'unknown', error: 'lost' }))
  assert.deepEqual(unknown, { 'workspace_load w': { seq: 1 }, 'deliveries 2': { state: 'unknown', error: 'lost' } })
  const text = 'the answer to chat may not have arrived'
  assert.deepEqual({ ...(event as object), at_ms: START_MS }, note('2', { text })['events w 1'])
  assert.deepEqual(hints(), ['w'])
})

test('GW-6 a failed try waits for the next one, and is given up when it is final, the tenth, or a day old', async (t) => {
  const { all, deliver, parts, bystanders, changes, workspace, hints } = openDeliveries(t)
  await workspace('w')
  await bystanders()
  await deliver('retried', { state: 'sending', tries: 9, created_at: START_MS - DAY_MS + 1 })
  await parts('retried', 'sent', 'sending', 'pending')
  await deliver('told', { state: 'sending', tries: 1 })
  await deliver('final', { state: 'sending', tries: 1 })
  await deliver('tenth', { state: 'sending', tries: 10 })
  await deliver('old', { state: 'sending', tries: 2, created_at: START_MS - DAY_MS })
  const fail = (id: string, more: { final?: boolean; retryAfterMs?: number } = {}) =>
    changes(() => all.finish(id, { type: 'failed', error: 'no route', ...more }))
  assert.deepEqual(await fail('retried'), {
    'deliveries retried': { state: 'pending', error: 'no route', next_at: START_MS + 512_000 },
    'delivery_parts retried 1': { state: 'pending' },
  })
  assert.deepEqual(await fail('told', { retryAfterMs: 70, final: false }), {
    'deliveries told': { state: 'pending', error: 'no route', next_at: START_MS + 70 },
  })
  assert.deepEqual(hints(), [])
  assert.deepEqual(await fail('final', { final: true }), {
    ...note('final', { text: 'the answer to chat could not be sent' }),
    'deliveries final': { state: 'failed', error: 'no route', next_at: START_MS + 2000 },
  })
  assert.deepEqual(hints(), ['w'])
  for (const id of ['tenth', 'old'])
    assert.equal(((await fail(id))[`deliveries ${id}`] as { state: string }).state, 'failed', id)
})

test('GW-6 a removed channel ends its open deliveries, and each workspace reads that once', async (t) => {
  const { all, deliver, bystanders, changes, workspace, hints } = openDeliveries(t)
  for (const id of ['w', 'other']) await workspace(id)
  await bystanders()
  await deliver('1')
  await deliver('2', { state: 'unknown' })
  await deliver('3', { workspace_id: 'other' })
  await deliver('4', { door: 'mail' })
  const changed = await changes(() => all.endDoor('chat'))
  const ended = { state: 'failed', error: 'the channel was removed', finished_at: START_MS }
  const text = 'the channel chat was removed; open answers to it are dropped'
  assert.deepEqual(changed, {
    ...note('2', { text }),
    'workspace_load other': { seq: 1 },
    'events other 1': note('3', { text })['events w 1'],
    'deliveries 0-chat-sending': ended,
    'deliveries 1': ended,
    'deliveries 2': { error: ended.error, state: 'failed', finished_at: START_MS },
    'deliveries 3': ended,
  })
  assert.deepEqual(hints().sort(), ['other', 'w'])
})

test('GW-6 a person sees the deliveries that need a decision, the oldest 200 first', async (t) => {
  const { all, deliver, bystanders } = openDeliveries(t)
  await bystanders()
  const ids = Array.from({ length: 201 }, (_, index) => `1-${String(index).padStart(3, '0')}`)
  await Promise.all(ids.map((id) => deliver(id, { state: 'failed' })))
  await deliver('0-waiting')
  await deliver('0-unknown', { state: 'unknown', error: 'lost', tries: 4 })
  const listed = await all.needingDecision()
  assert.deepEqual(
    listed.map(({ id }) => id),
    ['0-unknown', ...ids.slice(0, 199)],
  )
  const unknown = { id: '0-unknown', workspaceId: 'w', taskId: 'task-0-unknown', channel: '0-unknown', tries: 4 }
  assert.deepEqual(listed[0], { ...unknown, body: bodyOf('0-unknown'), state: 'unknown', error: 'lost' })
  assert.equal(listed[1]?.error, '')
})

test('GW-6 a decision of a person sends the delivery again from its start, or ends it, and the log names the person', async (t) => {
  const { all, deliver, parts, bystanders, changes, workspace, hints } = openDeliveries(t)
  await workspace('w')
  await bystanders()
  for (const id of ['1', '2']) {
    await deliver(id, { state: 'unknown', tries: 3, next_at: 1, created_at: 2 })
    await parts(id, 'sent', 'sending', 'pending')
  }
  await deliver('3')
  assert.deepEqual(await changes(() => all.resolve('1', 'resend', 'Ana')), {
    ...note('1', { text: 'the answer to chat is sent again', by: 'Ana' }),
    'deliveries 1': { state: 'pending', tries: 0, next_at: START_MS, created_at: START_MS },
    'delivery_parts 1 1': { state: 'pending' },
  })
  const { 'events w 2': event, ...dismissed } = await changes(() => all.resolve('2', 'dismiss', 'Ben'))
  assert.deepEqual(dismissed, { 'workspace_load w': { seq: 2 }, 'deliveries 2': { finished_at: START_MS } })
  const text = 'the answer to chat counts as arrived, or is no longer needed'
  assert.deepEqual(event, note('2', { text, by: 'Ben' })['events w 1'])
  assert.deepEqual(hints(), ['w', 'w'])
  for (const id of ['3', '2', '0-chat-failed', 'none'])
    await assert.rejects(
      all.resolve(id, 'dismiss', 'Ana'),
      (error) => error instanceof MoleculeError && error.code === 'not_found' && error.message.includes(id),
    )
})
