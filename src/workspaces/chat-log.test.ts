import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openTestStore, START_MS } from '../../test/harness/sqlite-store.ts'
import { createChatLog, type Prompt } from './chat-log.ts'

const DAY_MS = 24 * 3600_000
/** The same ids in two channels and two places. */
const KEYS = ['a', 'b'].flatMap((channel) => ['p', 'q'].map((place) => ({ channel, place })))
const P = { channel: 'a', place: 'p' }
const nameOf = ({ channel, place, id = '' }: { channel: string; place: string; id?: string }) =>
  `${channel}${place}${id}`

function openLog(t: TestContext) {
  const opened = openTestStore(t)
  const bind = (channel: string, place: string) =>
    opened.run(
      'insert into channel_bindings (channel, place, workspace_id, created_at) values ($1, $2, $3, 0)',
      ...[channel, place, 'ws_1'],
    )
  return { ...opened, bind, log: createChatLog(opened.store) }
}

test('GW-5 a new place has a conversation and no message; its description is replaced, its conversation stays', async (t) => {
  const { log } = openLog(t)
  const first = await log.place(P, 'old')
  assert.match(first.contextId, /^[0-9A-Z]{26}$/)
  assert.deepEqual(first, {
    channel: 'a',
    place: 'p',
    description: 'old',
    contextId: first.contextId,
    guard: { bots: 0, said: false },
  })
  assert.deepEqual(await log.place(P, 'new'), { ...first, description: 'new' })
})

test('GW-10 a new conversation, a guard and a seen message are written to one place of one channel', async (t) => {
  const { log } = openLog(t)
  const all = () => Promise.all(KEYS.map((key) => log.place(key, '{}')))
  const before = await all()
  await log.newContext(P)
  await log.setGuard(P, { bots: 3, said: true })
  await log.markSeen(P, { id: 'm', atMs: 5 })
  const [changed, ...others] = await all()
  assert.ok(changed)
  assert.notEqual(changed.contextId, before[0]?.contextId)
  assert.deepEqual(
    { ...changed, contextId: '' },
    { ...P, description: '{}', contextId: '', seen: { id: 'm', atMs: 5 }, guard: { bots: 3, said: true } },
  )
  assert.deepEqual(others, before.slice(1))
})

test('GW-5 the last message seen is the latest one: an older one does not replace it, one of the same time does', async (t) => {
  const { log } = openLog(t)
  await log.place(P, '{}')
  const seen: unknown[] = []
  for (const [id, atMs] of [
    ['m1', -1],
    ['m2', 2000],
    ['m3', 1999],
    ['m4', 2000],
    ['m5', 2001],
  ] as const) {
    await log.markSeen(P, { id, atMs })
    seen.push((await log.place(P, '{}')).seen)
  }
  assert.deepEqual(seen, [
    { id: 'm1', atMs: -1 },
    { id: 'm2', atMs: 2000 },
    { id: 'm2', atMs: 2000 },
    { id: 'm4', atMs: 2000 },
    { id: 'm5', atMs: 2001 },
  ])
})

test('GW-10 a channel lists its places with a message and its bound places, the latest first', async (t) => {
  const { log, bind } = openLog(t)
  for (const channel of ['a', 'b'])
    for (const place of ['early', 'late', 'bound', 'unseen', 'elsewhere']) await log.place({ channel, place }, '{}')
  await log.markSeen({ channel: 'a', place: 'early' }, { id: '1', atMs: 1 })
  await log.markSeen({ channel: 'a', place: 'late' }, { id: '2', atMs: 2 })
  await log.markSeen({ channel: 'b', place: 'early' }, { id: '3', atMs: 3 })
  await bind('a', 'bound')
  await bind('b', 'elsewhere')
  const names = async (channel: string) => (await log.places(channel)).map(nameOf)
  assert.deepEqual(await names('a'), ['alate', 'aearly', 'abound'])
  assert.deepEqual(await names('b'), ['bearly', 'belsewhere'])
})

test('GW-10 a channel lists at most 5000 places', async (t) => {
  const { log, run } = openLog(t)
  await run(`insert into chat_places (channel, place, description, context_id, seen_id, seen_at)
    with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 5001)
    select 'a', 'p' || n, '{}', 'c' || n, 'm', n from numbers`)
  const places = await log.places('a')
  assert.deepEqual([places.length, places[0]?.place, places.at(-1)?.place], [5000, 'p5001', 'p2'])
})

test('GW-5 a handled message is known by channel, place and id together', async (t) => {
  const { log } = openLog(t)
  const message = { ...P, id: '1' }
  await log.record({ ...message, messageId: 'x', person: 'ada' })
  const asked = KEYS.flatMap((key) => ['1', '2'].map((id) => ({ ...key, id })))
  const handled = await Promise.all(asked.map((key) => log.handled(key)))
  assert.deepEqual(handled, [true, ...asked.slice(1).map(() => false)])
})

test('GW-5 a message without a task is closed; its task, recorded later, opens it once', async (t) => {
  const { log, clock, run } = openLog(t)
  const message = { ...P, id: '1', messageId: 'x', person: 'ada' }
  await log.record(message)
  assert.deepEqual([await log.open('a'), await log.openIn(P), await log.lastOf(P)], [[], [], undefined])
  assert.deepEqual(await run('select state from chat_messages'), [{ state: 'closed' }])
  clock.advance(10)
  await log.record({ ...message, taskId: 't1' })
  const open = { ...message, taskId: 't1', receivedAtMs: START_MS }
  assert.deepEqual(await log.open('a'), [open])
  // The same message again, with another task or with none, changes nothing.
  await log.record({ ...message, taskId: 't2' })
  await log.record(message)
  assert.deepEqual([await log.open('a'), await log.openIn(P), await log.lastOf(P)], [[open], [open], open])
})

test('GW-10 progress and the end of a message are written to that message alone', async (t) => {
  const { log } = openLog(t)
  const messages = KEYS.flatMap((key) => ['1', '2'].map((id) => ({ ...key, id })))
  for (const message of messages)
    await log.record({ ...message, messageId: 'x', person: 'ada', taskId: nameOf(message) })
  const all = async () => [...(await log.open('a')), ...(await log.open('b'))]
  const [first] = messages
  assert.ok(first)
  const before = await all()
  assert.equal(before.length, 8)
  await log.setProgress(first, 'progress')
  assert.deepEqual(
    await all(),
    before.map((one) => (nameOf(one) === 'ap1' ? { ...one, progressId: 'progress' } : one)),
  )
  await log.close(first)
  assert.deepEqual(
    await all(),
    before.filter((one) => nameOf(one) !== 'ap1'),
  )
  assert.deepEqual((await log.openIn(P)).map(nameOf), ['ap2'])
})

test('GW-10 open messages are listed by time and then by id, at most 1000 of them', async (t) => {
  const { log, run, clock } = openLog(t)
  for (const id of ['2', '1']) await log.record({ ...P, id, messageId: 'x', person: 'ada', taskId: 't' })
  clock.advance(-1)
  await log.record({ ...P, id: '3', messageId: 'x', person: 'ada', taskId: 't' })
  assert.deepEqual(
    (await log.ofTask('t')).map(({ id }) => id),
    ['3', '1', '2'],
  )
  await run(`insert into chat_messages (channel, place, id, message_id, person, task_id, state, received_at)
    with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 1001)
    select 'many', 'p', n, 'x', 'ada', 't2', 'open', n from numbers`)
  const open = await log.open('many')
  assert.deepEqual([open.length, open[0]?.id, open.at(-1)?.id], [1000, '1', '1000'])
})

test('GW-10 the last message of a place is its latest one with a task', async (t) => {
  const { log, clock } = openLog(t)
  const record = (key: typeof P, id: string, taskId?: string) =>
    log.record({ ...key, id, messageId: id, person: 'ada', ...(taskId !== undefined && { taskId }) })
  await record(P, '9', 'early')
  clock.advance(1)
  await record(P, '2', 'second')
  await record(P, '1', 'first')
  clock.advance(1)
  await record(P, '8')
  for (const key of KEYS.slice(1)) await record(key, '7', 'elsewhere')
  assert.equal((await log.lastOf(P))?.taskId, 'second')
})

test('GW-10 the places of owners: approved owners of this channel, in the places where they wrote, the latest first', async (t) => {
  const { log, run, clock } = openLog(t)
  for (const key of KEYS) await log.place(key, nameOf(key))
  const pair = (channel: string, person: string, [state, role]: readonly [string, string]) =>
    run(
      `insert into pairings (channel, person, name, code, state, role, created_at) values ($1, $2, '', $3, $4, $5, 0)`,
      ...[channel, person, `${channel}-${person}`, state, role],
    )
  for (const person of ['ada', 'bob']) await pair('a', person, ['approved', 'owner'])
  await pair('a', 'user', ['approved', 'user'])
  await pair('a', 'denied', ['denied', 'owner'])
  await pair('b', 'eve', ['approved', 'owner'])
  const writes = [
    ...([
      ['a', 'p', 'bob'],
      ['a', 'p', 'ada'],
      ['a', 'q', 'ada'],
      ['a', 'p', 'user'],
      ['a', 'p', 'denied'],
    ] as const),
    ...([
      ['a', 'p', 'eve'],
      ['b', 'p', 'ada'],
      ['b', 'p', 'eve'],
      ['a', 'p', 'bob'],
    ] as const),
  ]
  for (const [index, [channel, place, person]] of writes.entries()) {
    clock.advance(1)
    await log.record({ channel, place, id: String(index), messageId: 'x', person })
  }
  assert.deepEqual(await log.placesOfOwners('a'), [
    { person: 'bob', place: 'p', description: 'ap' },
    { person: 'ada', place: 'q', description: 'aq' },
    { person: 'ada', place: 'p', description: 'ap' },
  ])
  assert.deepEqual(await log.placesOfOwners('b'), [{ person: 'eve', place: 'p', description: 'bp' }])
  for (let n = 0; n < 101; n++) {
    const place = `place ${n}`
    await log.place({ channel: 'b', place }, '{}')
    await log.record({ channel: 'b', place, id: place, messageId: 'x', person: 'eve' })
  }
  assert.equal((await log.placesOfOwners('b')).length, 100)
})

test('GW-10 a prompt is found by its id and by its ask, whole; a second prompt for an ask is not made', async (t) => {
  const { log } = openLog(t)
  const permission: Prompt = { id: 'x1', ...P, taskId: 't', askId: 'ask 1', text: 'may it?' }
  const budget = { id: 'b', askedAtMs: 1, isAsked: true, toUsd: 2 }
  const spent: Prompt = { id: 'x2', channel: 'b', place: 'q', taskId: 't', askId: 'ask 2', text: 'more?', budget }
  assert.deepEqual([await log.addPrompt(permission), await log.addPrompt(spent)], [permission, spent])
  assert.deepEqual(await log.addPrompt({ ...permission, id: 'x3', text: 'again?' }), permission)
  assert.equal(await log.prompt('x3'), undefined)
  await log.setPromptMessage('x2', 'sent')
  assert.deepEqual([await log.prompt('x1'), await log.promptOfAsk('ask 1')], [permission, permission])
  const sent = { ...spent, messageId: 'sent' }
  assert.deepEqual([await log.prompt('x2'), await log.promptOfAsk('ask 2')], [sent, sent])
  await log.addPrompt({ ...permission, id: 'x0', askId: 'ask 3' })
  assert.deepEqual(
    (await log.promptsOf('t')).map(({ id }) => id),
    ['x0', 'x1'],
  )
  assert.deepEqual([await log.removePrompt('x1'), await log.removePrompt('x1')], [true, false])
  assert.deepEqual([(await log.promptsOf('t')).map(({ id }) => id), await log.prompt('x2')], [['x0'], sent])
})

test('the budget prompts of a channel are those that need an answer', async (t) => {
  const { log } = openLog(t)
  const prompt = { ...P, taskId: 't', text: 'more?' }
  const budget = { id: 'b', askedAtMs: 1, isAsked: true }
  await log.addPrompt({ ...prompt, id: '2', askId: 'ask 2', budget })
  await log.addPrompt({ ...prompt, id: '1', askId: 'ask 1', budget })
  await log.addPrompt({ ...prompt, id: '3', askId: 'ask 3', budget: { ...budget, isAsked: false } })
  await log.addPrompt({ ...prompt, id: '4', askId: 'ask 4' })
  await log.addPrompt({ ...prompt, id: '5', askId: 'ask 5', channel: 'b', budget })
  assert.deepEqual(
    (await log.budgetPrompts('a')).map(({ id }) => id),
    ['1', '2'],
  )
})

test('GW-10 closed messages and prompts are forgotten after seven days, not earlier; open messages are kept', async (t) => {
  const { log, clock } = openLog(t)
  const closed = { ...P, id: 'closed', messageId: 'x', person: 'ada' }
  const open = { ...closed, id: 'open', taskId: 't' }
  for (const message of [closed, open]) await log.record(message)
  await log.addPrompt({ id: 'x', ...P, taskId: 't', askId: 'ask', text: 'may it?' })
  const known = async () => [await log.handled(closed), await log.handled(open), (await log.prompt('x'))?.id]
  clock.advance(7 * DAY_MS)
  await log.prune()
  assert.deepEqual(await known(), [true, true, 'x'])
  clock.advance(1)
  await log.prune()
  assert.deepEqual(await known(), [false, true, undefined])
})

test('GW-10 a place is forgotten after 180 days without a message, not earlier, and never while it is bound', async (t) => {
  const { log, clock, bind } = openLog(t)
  for (const key of [...KEYS, { channel: 'a', place: 'late' }]) {
    await log.place(key, '{}')
    await log.markSeen(key, { id: 'm', atMs: START_MS + (key.place === 'late' ? 1 : 0) })
  }
  await bind('a', 'p')
  const names = async () => [...(await log.places('a')), ...(await log.places('b'))].map(nameOf).sort()
  clock.advance(180 * DAY_MS)
  await log.prune()
  assert.deepEqual(await names(), ['alate', 'ap', 'aq', 'bp', 'bq'])
  clock.advance(1)
  await log.prune()
  assert.deepEqual(await names(), ['alate', 'ap'])
})
