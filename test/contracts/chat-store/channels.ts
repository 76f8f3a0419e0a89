/** Channels and bindings in the store: their limits, who holds a channel, and what goes with a removed one. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chatPrincipal, createChannels } from '../../../src/doors/chat/store/channels.ts'
import { createChatLog } from '../../../src/doors/chat/store/chat-log.ts'
import { createPairings } from '../../../src/doors/chat/store/pairings.ts'
import { createPromptLog } from '../../../src/doors/chat/store/prompt-log.ts'
import { readPairings } from '../../../src/views/channels.ts'
import { hasCode } from '../inbox/harness.ts'
import type { ChatStoreUnderTest } from './under-test.ts'

const plain = (name: string) => ({ name, kind: 'telegram', token: `token of ${name}`, settings: {} })

export function channelTests(opened: ChatStoreUnderTest): void {
  test('GW-12 a name that principals begin with is refused; a channel that has one keeps apart from them', async () => {
    const channels = createChannels(opened.store)
    const refused = { code: 'invalid_request', message: 'a channel cannot be called token: give it another name' }
    await assert.rejects(channels.add(plain('token'), { replace: true }), refused)
    // An earlier version took this name.
    await channels.add(plain('old name'))
    await opened.sql(`update channels set name = 'token' where name = 'old name'`)
    await channels.add({ ...plain('token'), token: 'new' }, { replace: true })
    assert.equal((await channels.get('token')).token, 'new')
    await channels.remove('token')
    const principals = [chatPrincipal('token', '7'), chatPrincipal('ws', 'ws_1'), chatPrincipal('telegram', '-100/4')]
    assert.deepEqual(principals, ['chat:token:7', 'chat:ws:ws_1', 'telegram:-100/4'])
  })

  test('GW-12 a channel is stored whole and needs a workspace that exists; a replaced one keeps its age and no problem', async () => {
    const channels = createChannels(opened.store)
    const workspaceId = await opened.workspace()
    const lists = { allowedPeople: ['1'], allowedPlaces: ['p'], allowedBots: ['b'] }
    const settings = { apiUrl: 'http://localhost', ...lists, ofKind: { region: 'eu' } }
    const full = {
      ...plain('whole'),
      secrets: { app_token: 's' },
      account: { id: '7', name: 'bot' },
      workspaceId,
      settings,
    }
    await assert.rejects(channels.add({ ...full, workspaceId: 'ws_none' }), hasCode('not_found'))
    await channels.add(full)
    const { createdAtMs } = await channels.get('whole')
    await channels.setProblem('whole', 'no connection')
    assert.deepEqual(await channels.get('whole'), { ...full, problem: 'no connection', createdAtMs })
    await channels.add({ ...plain('whole'), token: 'new' }, { replace: true })
    assert.deepEqual(await channels.get('whole'), { ...plain('whole'), token: 'new', createdAtMs })
    await channels.remove('whole')
    await assert.rejects(channels.get('whole'), { code: 'not_found', message: 'there is no channel "whole"' })
  })

  test('GW-12 there are at most 50 channels and 2000 bindings; at the limit a known one can still be changed', async () => {
    const channels = createChannels(opened.store)
    const [workspaceId, other] = [await opened.workspace(), await opened.workspace()]
    const names: string[] = []
    for (let n = (await channels.list()).length; n < 50; n++) names.push(`limit ${n}`)
    for (const name of names) await channels.add(plain(name))
    const [first = '', second = ''] = names
    await assert.rejects(channels.add(plain('one more')), {
      code: 'unsupported_operation',
      message: 'there are 50 channels: remove some first',
    })
    await channels.add({ ...plain(first), token: 'new' }, { replace: true })
    const known = (await channels.bindings()).length
    await opened.sql(
      `insert into channel_bindings (channel, place, workspace_id, created_at)
       with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${2000 - known})
       select '${first}', 'p' || n, '${workspaceId}', 0 from numbers`,
    )
    await assert.rejects(channels.bind({ channel: first, place: 'one more', workspaceId }), {
      code: 'unsupported_operation',
      message: 'there are 2000 bindings: remove some first',
    })
    await channels.bind({ channel: first, place: 'p1', workspaceId: other })
    assert.equal(await channels.boundTo(first, { id: 'p1' }), other)
    await assert.rejects(channels.bind({ channel: second, place: 'p1', workspaceId }), hasCode('unsupported_operation'))
    for (const name of names) await channels.remove(name)
  })

  test('GW-12 a place that has another id keeps its binding, and its rights; one that is bound there already stays', async () => {
    const channels = createChannels(opened.store)
    const [first, second] = [await opened.workspace(), await opened.workspace()]
    const settings = { allowedPlaces: ['old', 'x'] }
    await channels.add({ name: 'moves', kind: 'telegram', token: 't', settings })
    await channels.bind({ channel: 'moves', place: 'old', workspaceId: first })
    await channels.bind({ channel: 'moves', place: 'x', workspaceId: second })
    await channels.move('moves', 'old', 'new')
    const listed = async () => (await channels.bindings('moves')).map(({ place, workspaceId }) => [place, workspaceId])
    const expected = [
      ['new', first],
      ['x', second],
    ]
    assert.deepEqual(await listed(), expected)
    assert.deepEqual((await channels.get('moves')).settings.allowedPlaces, ['new', 'x'])
    await channels.move('moves', 'x', 'new')
    assert.deepEqual(await listed(), [['new', first]])
    await channels.remove('moves')
  })

  test('GW-12 a bot has one name: the same account of the same service is refused under another', async () => {
    const channels = createChannels(opened.store)
    const bot = (name: string, id: string, apiUrl?: string) => ({
      ...{ name, kind: 'telegram', token: 't', account: { id, name: 'Bot' } },
      settings: { apiUrl },
    })
    await channels.add(bot('one bot', '7'))
    await assert.rejects(channels.add(bot('same bot', '7')), {
      code: 'unsupported_operation',
      message: /^this bot is the channel one bot already/,
    })
    await channels.add(bot('one bot', '7'), { replace: true })
    await channels.add(bot('other bot', '8'))
    await channels.add(bot('elsewhere', '7', 'https://telegram.test'))
    await assert.rejects(channels.add(bot('other bot', '7'), { replace: true }), { code: 'unsupported_operation' })
    for (const name of ['one bot', 'other bot', 'elsewhere']) await channels.remove(name)
  })

  test('GW-12 a place is bound by its own binding, else by that of its parent; bindings are changed and removed one by one', async () => {
    const channels = createChannels(opened.store)
    const [first, second] = [await opened.workspace(), await opened.workspace()]
    for (const name of ['bind a', 'bind b']) await channels.add(plain(name))
    const bind = (channel: string, place: string, workspaceId: string) => channels.bind({ channel, place, workspaceId })
    await assert.rejects(bind('bind a', 'p', 'ws_none'), hasCode('not_found'))
    await assert.rejects(bind('none', 'p', first), hasCode('not_found'))
    await bind('bind a', 'thread', first)
    await bind('bind a', 'parent', first)
    await bind('bind b', 'elsewhere', first)
    await bind('bind a', 'parent', second)
    const bound = (id: string, parentId = 'parent') => channels.boundTo('bind a', { id, parentId })
    assert.deepEqual(
      [await bound('thread'), await bound('new'), await bound('elsewhere', 'none')],
      [first, second, undefined],
    )
    const listed = async () => (await channels.bindings('bind a')).map(({ place, workspaceId }) => [place, workspaceId])
    assert.deepEqual(await listed(), [
      ['parent', second],
      ['thread', first],
    ])
    await channels.unbind('bind a', 'parent')
    assert.deepEqual(await listed(), [['thread', first]])
    await assert.rejects(channels.unbind('bind a', 'parent'), hasCode('not_found'))
    for (const name of ['bind a', 'bind b']) await channels.remove(name)
  })

  test('GW-12 one holder has a channel until its time is over, it releases it, or a new process of its host comes', async () => {
    const channels = createChannels(opened.store)
    for (const name of ['held', 'held too']) await channels.add(plain(name))
    const claim = (holder: string, name = 'held') => channels.claim(name, holder, 60_000)
    const runOut = () => opened.sql('update channels set holder_until = holder_until - 60001')
    assert.deepEqual([await claim('a.1'), await claim('b.1'), await claim('ab.1')], [true, false, false])
    assert.deepEqual([await claim('b.1', 'held too'), await claim('a.1', 'none')], [true, false])
    assert.equal(await claim('a.2'), true, 'a new process of the host')
    await runOut()
    assert.equal(await claim('b.1'), true)
    await channels.release('held', 'a.2')
    assert.equal(await claim('a.1'), false, 'only the holder releases')
    await channels.release('held', 'b.1')
    assert.equal(await claim('a.1'), true)
    for (const name of ['held', 'held too']) await channels.remove(name)
  })

  test('GW-12 a removed channel takes all that is known of its chats and people with it, and no other channel', async () => {
    const { store } = opened
    const [channels, log, pairings] = [createChannels(store), createChatLog(store), createPairings(store)]
    const workspaceId = await opened.workspace()
    const [gone, kept] = ['gone', 'kept']
    for (const channel of [gone, kept]) {
      await channels.add(plain(channel))
      await channels.bind({ channel, place: 'p', workspaceId })
      await pairings.request({ channel, person: 'ada', name: 'Ada' })
      await pairings.hold({ channel, person: 'ada' }, { place: 'p', id: '1', message: '{}' })
      await log.place({ channel, place: 'p' }, '{}')
      await log.record({ channel, place: 'p', id: '1', messageId: '1', person: 'ada', taskId: channel })
      await createPromptLog(store).add({
        channel,
        place: 'p',
        id: channel,
        taskId: channel,
        askId: channel,
        text: 'may it?',
      })
    }
    await channels.remove(gone)
    const left = async (channel: string) => [
      (await channels.bindings(channel)).length,
      (await pairings.find({ channel, person: 'ada' }))?.person,
      (await readPairings(opened.store)).pairings.find((one) => one.channel === channel)?.held,
      (await log.open(channel)).length,
      (await createPromptLog(store).find(channel))?.id,
    ]
    assert.deepEqual(await left(gone), [0, undefined, undefined, 0, undefined])
    assert.deepEqual(await left(kept), [1, 'ada', 1, 1, kept])
    await assert.rejects(channels.remove(gone), hasCode('not_found'))
    await channels.remove(kept)
  })
}
