import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openTestStore, START_MS } from '../../test/harness/sqlite-store.ts'
import { chatPrincipal, createChannels } from './channels.ts'
import { createChatLog } from './chat-log.ts'
import { createPairings } from './pairings.ts'

const plain = (name: string) => ({ name, kind: 'telegram', token: `token of ${name}`, settings: {} })

function openChannels(t: TestContext) {
  const opened = openTestStore(t)
  return { ...opened, channels: createChannels(opened.store) }
}

test('GW-12 a name that principals begin with is refused; a channel that has one keeps apart from them', async (t) => {
  const { channels, run } = openChannels(t)
  const refused = { code: 'invalid_request', message: 'a channel cannot be called token: give it another name' }
  await assert.rejects(channels.add(plain('token'), { replace: true }), refused)
  // An earlier version took this name.
  await channels.add(plain('old'))
  await run("update channels set name = 'token'")
  await channels.add({ ...plain('token'), token: 'new' }, { replace: true })
  assert.equal((await channels.get('token')).token, 'new')
  assert.deepEqual(
    [chatPrincipal('token', '7'), chatPrincipal('ws', 'ws_1'), chatPrincipal('telegram', '-100/4')],
    ['chat:token:7', 'chat:ws:ws_1', 'telegram:-100/4'],
  )
})

test('GW-12 a channel is stored whole, listed by name, and changed only on request', async (t) => {
  const { channels, clock, addWorkspace } = openChannels(t)
  const workspaceId = await addWorkspace()
  const settings = { apiUrl: 'http://localhost', allowedPeople: ['1'], allowedPlaces: ['p'], allowedBots: ['b'] }
  const full = { ...plain('b'), account: { id: '7', name: 'bot' }, workspaceId, settings }
  await channels.add(full)
  clock.advance(5)
  await channels.add(plain('a'))
  const stored = [
    { ...plain('a'), createdAtMs: START_MS + 5 },
    { ...full, createdAtMs: START_MS },
  ]
  assert.deepEqual([await channels.list(), await channels.get('b')], [stored, stored[1]])
  await assert.rejects(channels.add(plain('b')), {
    code: 'unsupported_operation',
    message: 'there is a channel b already: remove it first, or give another name',
  })
  await channels.setProblem('b', 'no connection')
  assert.deepEqual(await channels.list(), [stored[0], { ...full, problem: 'no connection', createdAtMs: START_MS }])
  await channels.add({ ...plain('b'), token: 'new' }, { replace: true })
  await channels.add(plain('c'), { replace: true })
  assert.deepEqual(await channels.get('b'), { ...plain('b'), token: 'new', createdAtMs: START_MS })
  await channels.setProblem('b', 'no connection')
  await channels.setProblem('b', undefined)
  assert.equal((await channels.get('b')).problem, undefined)
  await assert.rejects(channels.get('d'), { code: 'not_found', message: 'there is no channel "d"' })
})

test('GW-12 there are at most 50 channels; at the limit a known one can still be changed', async (t) => {
  const { channels } = openChannels(t)
  for (let n = 0; n < 50; n++) await channels.add(plain(`channel ${n}`))
  await assert.rejects(channels.add(plain('one more')), {
    code: 'unsupported_operation',
    message: 'there are 50 channels: remove some first',
  })
  await channels.add({ ...plain('channel 7'), token: 'new' }, { replace: true })
  const all = await channels.list()
  assert.deepEqual(
    [all.length, all.filter(({ token }) => token === 'new').map(({ name }) => name)],
    [50, ['channel 7']],
  )
})

test('GW-12 a channel and a binding need a workspace that exists', async (t) => {
  const { channels, addWorkspace } = openChannels(t)
  await assert.rejects(channels.add({ ...plain('a'), workspaceId: 'ws_none' }), { code: 'not_found' })
  const workspaceId = await addWorkspace()
  await assert.rejects(channels.add({ ...plain('a'), workspaceId: 'ws_none' }), { code: 'not_found' })
  await channels.add({ ...plain('a'), workspaceId })
  await assert.rejects(channels.bind({ channel: 'a', place: 'p', workspaceId: 'ws_none' }), {
    code: 'not_found',
    message: 'there is no workspace ws_none',
  })
  await assert.rejects(channels.bind({ channel: 'b', place: 'p', workspaceId }), { code: 'not_found' })
  assert.deepEqual(await channels.bindings(), [])
})

test('GW-12 bindings are listed by channel and place, changed in place, and removed one by one', async (t) => {
  const { channels, clock, addWorkspace } = openChannels(t)
  const [first, second] = [await addWorkspace(), await addWorkspace()]
  for (const name of ['a', 'b']) await channels.add(plain(name))
  for (const [channel, place] of [
    ['b', 'p'],
    ['a', 'q'],
    ['a', 'p'],
    ['b', 'q'],
  ] as const)
    await channels.bind({ channel, place, workspaceId: first })
  clock.advance(5)
  await channels.bind({ channel: 'a', place: 'p', workspaceId: second })
  const all = [
    { channel: 'a', place: 'p', workspaceId: second, sinceMs: START_MS },
    { channel: 'a', place: 'q', workspaceId: first, sinceMs: START_MS },
    { channel: 'b', place: 'p', workspaceId: first, sinceMs: START_MS },
    { channel: 'b', place: 'q', workspaceId: first, sinceMs: START_MS },
  ]
  assert.deepEqual([await channels.bindings(), await channels.bindings('a')], [all, all.slice(0, 2)])
  await channels.unbind('a', 'p')
  assert.deepEqual(await channels.bindings(), all.slice(1))
  await assert.rejects(channels.unbind('a', 'p'), {
    code: 'not_found',
    message: 'the place p of a is not bound',
  })
  assert.deepEqual(await channels.bindings(), all.slice(1))
})

test('GW-12 there are at most 2000 bindings, and a bound place can then still be bound to another workspace', async (t) => {
  const { channels, run, addWorkspace } = openChannels(t)
  const workspaceId = await addWorkspace()
  await channels.add(plain('a'))
  await run(`insert into channel_bindings (channel, place, workspace_id, created_at)
    with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 1999)
    select 'a', 'p' || n, 'ws_1', 0 from numbers`)
  await channels.bind({ channel: 'a', place: 'last', workspaceId })
  await assert.rejects(channels.bind({ channel: 'a', place: 'one more', workspaceId }), {
    code: 'unsupported_operation',
    message: 'there are 2000 bindings: remove some first',
  })
  const another = await addWorkspace()
  await channels.add(plain('b'))
  for (const place of ['last', 'p1']) {
    await channels.bind({ channel: 'a', place, workspaceId: another })
    assert.equal(await channels.boundTo('a', { id: place }), another)
    await assert.rejects(channels.bind({ channel: 'b', place, workspaceId }), { code: 'unsupported_operation' })
  }
})

test('GW-12 a place is bound by its own binding, else by that of its parent, in its own channel', async (t) => {
  const { channels, addWorkspace } = openChannels(t)
  const [parent, thread, other] = [await addWorkspace(), await addWorkspace(), await addWorkspace()]
  for (const name of ['a', 'b']) await channels.add(plain(name))
  await channels.bind({ channel: 'a', place: 'parent', workspaceId: parent })
  await channels.bind({ channel: 'a', place: 'thread', workspaceId: thread })
  await channels.bind({ channel: 'b', place: 'elsewhere', workspaceId: other })
  assert.equal(await channels.boundTo('a', { id: 'thread', parentId: 'parent' }), thread)
  assert.equal(await channels.boundTo('a', { id: 'another', parentId: 'parent' }), parent)
  assert.equal(await channels.boundTo('a', { id: 'parent' }), parent)
  assert.equal(await channels.boundTo('a', { id: 'elsewhere' }), undefined)
  assert.equal(await channels.boundTo('b', { id: 'thread', parentId: 'parent' }), undefined)
})

test('GW-12 one holder has a channel until its time is over, it releases it, or a new process of its host comes', async (t) => {
  const { channels, clock } = openChannels(t)
  for (const name of ['one', 'two']) await channels.add(plain(name))
  const claim = (holder: string, name = 'one') => channels.claim(name, holder, 1000)
  assert.deepEqual([await claim('a.1'), await claim('b.1'), await claim('ab.1')], [true, false, false])
  assert.equal(await claim('b.1', 'two'), true, 'a claim holds one channel')
  assert.deepEqual([await claim('a.1', 'two'), await claim('a.1', 'none')], [false, false])
  assert.equal(await claim('a.2'), true, 'a new process of the host')
  clock.advance(1000)
  assert.equal(await claim('b.1'), false, 'the last moment')
  clock.advance(1)
  assert.equal(await claim('b.1'), true)
  await channels.release('one', 'a.2')
  await channels.release('two', 'c.1')
  assert.equal(await claim('a.1'), false, 'only the holder releases')
  await channels.release('one', 'b.1')
  assert.equal(await claim('a.1'), true)
  assert.equal(await claim('b.1', 'two'), true, 'the time of the other channel is over')
  await channels.release('two', 'a.1')
  await channels.release('one', 'b.1')
  assert.deepEqual([await claim('c.1'), await claim('c.1', 'two')], [false, false])
  clock.advance(1001)
  assert.deepEqual([await claim('cd.1'), await claim('c.1')], [true, false], 'the name of a host is compared whole')
})

test('GW-12 a removed channel takes all that is known of its chats and people with it, and no other channel', async (t) => {
  const { channels, run, addWorkspace, store } = openChannels(t)
  const [workspaceId, log, pairings] = [await addWorkspace(), createChatLog(store), createPairings(store)]
  for (const channel of ['a', 'b']) {
    await channels.add(plain(channel))
    await channels.bind({ channel, place: 'p', workspaceId })
    await pairings.request({ channel, person: 'ada', name: 'Ada' })
    await pairings.hold({ channel, person: 'ada' }, { place: 'p', id: '1', message: '{}' })
    await log.place({ channel, place: 'p' }, '{}')
    await log.record({ channel, place: 'p', id: '1', messageId: '1', person: 'ada' })
    await log.addPrompt({ channel, place: 'p', id: channel, taskId: 't', askId: channel, text: 'may it?' })
  }
  await channels.remove('a')
  const left = await run(`select 'channel' as kind, name from channels
    union all select 'binding', channel from channel_bindings union all select 'pairing', channel from pairings
    union all select 'held', channel from held_messages union all select 'place', channel from chat_places
    union all select 'message', channel from chat_messages union all select 'prompt', channel from chat_prompts`)
  assert.deepEqual(
    left.map(({ kind, name }) => `${kind} ${name}`),
    ['channel b', 'binding b', 'pairing b', 'held b', 'place b', 'message b', 'prompt b'],
  )
  await assert.rejects(channels.remove('a'), { code: 'not_found' })
})
