/** The store of chat channels, on every engine: channels, bindings, claims, pairings, held messages, handled messages. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createChannels } from '../../src/doors/chat/store/channels.ts'
import { createChatLog } from '../../src/doors/chat/store/chat-log.ts'
import { createPairings } from '../../src/doors/chat/store/pairings.ts'
import { workspaceId } from '../../src/ids.ts'
import { sql } from '../../src/store/store.ts'
import { readPairings } from '../../src/views/channels.ts'
import { arrivalTests } from './chat-store/arrivals.ts'
import { channelTests } from './chat-store/channels.ts'
import { chatLogTests } from './chat-store/chat-log.ts'
import { homeTests } from './chat-store/homes.ts'
import { pairingTests } from './chat-store/pairings.ts'
import { promptLogTests } from './chat-store/prompt-log.ts'
import type { ChatStoreUnderTest } from './chat-store/under-test.ts'
import { hasCode } from './inbox/harness.ts'
import type { StoreUnderTest } from './store-contract.ts'

export function chatStoreContract({ name, open }: StoreUnderTest): void {
  describe(`the store of chat channels on ${name}`, () => {
    let opened: Awaited<ReturnType<StoreUnderTest['open']>>
    before(async () => {
      opened = await open()
    })
    after(() => opened.dispose())
    const channel = { name: 'discord', kind: 'discord', token: 'secret', settings: { allowedPeople: ['1'] } }

    test('GW-12 a channel has one name, a thread inherits the binding of its channel, and removing forgets all', async () => {
      const channels = createChannels(opened.store)
      const id = workspaceId()
      await opened.store.write(() =>
        sql('insert into workspace_load (workspace_id, hosted, slots) values ($1, 0, 1)', [id]),
      )
      await channels.add({ ...channel, workspaceId: id })
      await assert.rejects(channels.add(channel), hasCode('unsupported_operation'))
      await channels.add({ ...channel, token: 'new' }, { replace: true })
      assert.deepEqual([(await channels.get('discord')).token, (await channels.list()).length], ['new', 1])
      await assert.rejects(channels.bind({ channel: 'discord', place: 'p', workspaceId: 'ws_x' }), hasCode('not_found'))
      await channels.bind({ channel: 'discord', place: 'p', workspaceId: id })
      assert.equal(await channels.boundTo('discord', { id: 't', parentId: 'p' }), id)
      assert.equal(await channels.boundTo('discord', { id: 'other' }), undefined)
      await channels.setProblem('discord', 'no connection')
      assert.equal((await channels.list())[0]?.problem, 'no connection')
      await channels.remove('discord')
      assert.deepEqual([await channels.list(), await channels.bindings()], [[], []])
    })

    test('GW-12 one platform holds a channel at a time; a new process of its host takes over at once', async () => {
      const channels = createChannels(opened.store)
      await channels.add(channel)
      assert.equal(await channels.claim('discord', 'a.1', 60_000), true)
      assert.equal(await channels.claim('discord', 'b.1', 60_000), false)
      assert.equal(await channels.claim('discord', 'a.2', 60_000), true)
      await channels.release('discord', 'a.2')
      assert.equal(await channels.claim('discord', 'b.1', 0), true)
    })

    test('GW-4 a pairing is made once; at most five messages are held, and they are released by an approval', async () => {
      const pairings = createPairings(opened.store)
      const key = { channel: 'discord', person: 'eve' }
      const first = await pairings.request({ ...key, name: 'Eve' })
      const again = await pairings.request({ ...key, name: 'Eve' })
      assert.deepEqual([first?.isNew, again?.isNew, again?.pairing.code], [true, false, first?.pairing.code])
      const held: string[] = []
      for (const id of ['1', '2', '3', '4', '5', '5', '6'])
        held.push(await pairings.hold(key, { place: 'p', id, message: id }))
      assert.deepEqual(held, ['first', 'later', 'later', 'later', 'later', 'later', 'full'])
      assert.deepEqual(await pairings.released('discord'), [])
      const decision = { state: 'approved', role: 'owner', by: 'admin', mayChangeOwners: true } as const
      await assert.rejects(pairings.decide('NOCODE22', decision), hasCode('not_found'))
      await pairings.decide(String(first?.pairing.code).toLowerCase(), decision)
      assert.equal((await pairings.find(key))?.role, 'owner')
      assert.deepEqual(
        (await pairings.released('discord')).map(({ id }) => id),
        ['1', '2', '3', '4', '5'],
      )
      await pairings.dropHeld('discord', { place: 'p', id: '1' })
      const stillHeld = async () => (await readPairings(opened.store)).pairings[0]?.held
      assert.equal(await stillHeld(), 4)
      await pairings.decide('discord/eve', { ...decision, state: 'denied' })
      assert.deepEqual([await stillHeld(), (await pairings.find(key))?.state], [0, 'denied'])
    })

    test('GW-5 a place remembers its conversation, the last message seen, and the messages that were handled', async () => {
      const log = createChatLog(opened.store)
      const key = { channel: 'discord', place: 'p' }
      const { contextId } = await log.place(key, '{}')
      await log.markSeen(key, { id: 'm2', atMs: 2000 })
      await log.markSeen(key, { id: 'm1', atMs: 1000 })
      assert.deepEqual((await log.places('discord'))[0]?.seen, { id: 'm2', atMs: 2000 })
      await log.newContext(key)
      assert.notEqual((await log.place(key, '{}')).contextId, contextId)
      const { contextId: other } = await log.place({ ...key, place: 'other' }, '{}')
      await log.setContext(key, contextId)
      assert.equal((await log.place(key, '{}')).contextId, contextId)
      assert.equal((await log.place({ ...key, place: 'other' }, '{}')).contextId, other)
      const message = { ...key, id: 'm1', messageId: 'm1', person: 'ada' }
      await log.record(message)
      assert.equal(await log.handled(message), true)
      assert.deepEqual(await log.open('discord'), [])
      await log.record({ ...message, taskId: 'task' })
      await log.setProgress(message, 'progress')
      assert.deepEqual(
        (await log.ofTask('task')).map(({ progressId }) => progressId),
        ['progress'],
      )
      assert.equal((await log.lastOf(key))?.taskId, 'task')
      await log.close(message)
      assert.deepEqual(await log.open('discord'), [])
      await log.setGuard(key, { bots: 3, said: false })
      assert.equal((await log.place(key, '{}')).guard.bots, 3)
      await log.prune()
      assert.equal(await log.handled(message), true)
    })

    test('GW-10 each write of the chat log changes the message, place and channel that it names, and no other', async () => {
      const log = createChatLog(opened.store)
      // The same ids in two channels and two places.
      const keys = ['ka', 'kb'].flatMap((one) => ['p', 'q'].map((place) => ({ channel: one, place })))
      const messages = keys.flatMap((key) => ['1', '2'].map((id) => ({ ...key, id })))
      for (const key of keys) await log.place(key, JSON.stringify(key))
      for (const message of messages) {
        const taskId = Object.values(message).join(' ')
        await log.record({ ...message, messageId: message.id, person: 'ada', taskId })
      }
      const [first] = messages
      assert.ok(first)
      const [firstKey, ...otherKeys] = keys.map((key) => ({ ...key }))
      assert.ok(firstKey)
      await log.setProgress(first, 'progress')
      const all = async () => [...(await log.open('ka')), ...(await log.open('kb'))]
      const changed = (await all()).filter(({ progressId }) => progressId !== undefined)
      assert.deepEqual(
        changed.map(({ taskId }) => taskId),
        ['ka p 1'],
      )
      const contexts = async () => Promise.all(keys.map(async (key) => (await log.place(key, '{}')).contextId))
      const old = await contexts()
      await log.newContext(firstKey)
      assert.deepEqual(
        (await contexts()).map((context, index) => context === old[index]),
        [false, true, true, true],
      )
      await log.setGuard(firstKey, { bots: 2, said: true })
      await log.markSeen(firstKey, { id: '1', atMs: 5 })
      const places = await Promise.all(keys.map((key) => log.place(key, '{}')))
      assert.deepEqual(
        places.map(({ guard, seen }) => [guard.bots, guard.said, seen?.id]),
        [[2, true, '1'], ...otherKeys.map(() => [0, false, undefined])],
      )
      await log.close(first)
      assert.equal((await all()).length, messages.length - 1)
      assert.deepEqual(
        (await log.openIn(firstKey)).map(({ id }) => id),
        ['2'],
      )
      assert.equal((await log.lastOf(firstKey))?.taskId, 'ka p 2')
    })

    test('GW-10 a place without a message for half a year is forgotten, a bound one is kept', async () => {
      const [channels, log, id] = [createChannels(opened.store), createChatLog(opened.store), workspaceId()]
      await opened.store.write(() =>
        sql('insert into workspace_load (workspace_id, hosted, slots) values ($1, 0, 1)', [id]),
      )
      await channels.add({ ...channel, name: 'old' })
      await channels.bind({ channel: 'old', place: 'bound', workspaceId: id })
      const atMs = Date.now() - 181 * 24 * 3600_000
      for (const place of ['silent', 'bound', 'busy']) {
        await log.place({ channel: 'old', place }, '{}')
        await log.markSeen({ channel: 'old', place }, { id: 'm', atMs: place === 'busy' ? Date.now() : atMs })
      }
      await log.prune()
      assert.deepEqual((await log.places('old')).map(({ place }) => place).sort(), ['bound', 'busy'])
    })

    const underTest: ChatStoreUnderTest = {
      get store() {
        return opened.store
      },
      sql: (text, ...values) => opened.store.write(() => sql(text, values)),
      async workspace() {
        const id = workspaceId()
        await underTest.sql('insert into workspace_load (workspace_id, hosted, slots) values ($1, 0, 1)', id)
        return id
      },
    }
    channelTests(underTest)
    pairingTests(underTest)
    homeTests(underTest)
    chatLogTests(underTest)
    promptLogTests(underTest)
    arrivalTests(underTest)
  })
}
