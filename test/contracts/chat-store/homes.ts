/** Home chats in the store: one for a person and channel, whose they are, and what goes with a channel or a place. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createChannels } from '../../../src/doors/chat/store/channels.ts'
import { createHomeChats } from '../../../src/doors/chat/store/home-chats.ts'
import { createPairings } from '../../../src/doors/chat/store/pairings.ts'
import type { ChatStoreUnderTest } from './under-test.ts'

export function homeTests(opened: ChatStoreUnderTest): void {
  const setUp = async (...names: readonly string[]) => {
    const channels = createChannels(opened.store)
    for (const name of names) await channels.add({ name, kind: 'telegram', token: name, settings: {} })
    const pairings = createPairings(opened.store)
    const decide = (id: string, state: 'approved' | 'denied', role: 'owner' | 'user') =>
      pairings.decide(id, { state, role, by: 'admin', mayChangeOwners: true })
    return { channels, homes: createHomeChats(opened.store), decide }
  }
  const quiet = { fromMinute: 60, untilMinute: 120, timeZone: 'UTC' }
  const places = (homes: readonly { readonly place: string }[]) => homes.map(({ place }) => place)

  test('GW-17 a person has one home on a channel; it moves with its place and goes with its channel', async () => {
    const { channels, homes } = await setUp('home-1', 'home-2')
    const ada = { channel: 'home-1', person: 'ada', name: 'Ada' }
    await homes.set({ ...ada, place: 'a', quiet })
    await homes.set({ ...ada, channel: 'home-2', place: 'a' })
    await homes.set({ ...ada, person: 'eve', name: 'Eve', place: 'a' })
    assert.deepEqual(await homes.find(ada), { ...ada, place: 'a', quiet })
    await homes.set({ ...ada, place: 'b' })
    assert.deepEqual(await homes.find(ada), { ...ada, place: 'b' })
    assert.deepEqual(places(await homes.at({ channel: 'home-1', place: 'a' })), ['a'])
    await channels.move('home-1', 'b', 'c')
    assert.deepEqual([(await homes.find(ada))?.place, (await homes.find({ ...ada, person: 'eve' }))?.place], ['c', 'a'])
    assert.deepEqual([await homes.remove(ada), await homes.remove(ada)], [true, false])
    await channels.remove('home-1')
    assert.equal(await homes.find({ ...ada, person: 'eve' }), undefined)
    assert.equal((await homes.find({ ...ada, channel: 'home-2' }))?.place, 'a')
    await channels.remove('home-2')
  })

  test('GW-17 the homes of owners: of the bots that answer for the workspace, else of all; never of a person who was denied', async () => {
    const { channels, homes, decide } = await setUp('home-3', 'home-4')
    const [own, bound, other] = [await opened.workspace(), await opened.workspace(), await opened.workspace()]
    await channels.add(
      { name: 'home-3', kind: 'telegram', token: 't', settings: {}, workspaceId: own },
      { replace: true },
    )
    await channels.bind({ channel: 'home-4', place: 'somewhere', workspaceId: bound })
    for (const [channel, person] of [
      ['home-3', 'ada'],
      ['home-3', 'user'],
      ['home-4', 'eve'],
    ] as const)
      await homes.set({ channel, person, name: person, place: `of ${person}` })
    assert.deepEqual(await homes.ofOwners(own), [], 'no person is an owner yet')
    await decide('home-3/ada', 'approved', 'owner')
    await decide('home-3/user', 'approved', 'user')
    await decide('home-4/eve', 'approved', 'owner')
    assert.deepEqual(places(await homes.ofOwners(own)), ['of ada'])
    assert.deepEqual(places(await homes.ofOwners(bound)), ['of eve'])
    assert.deepEqual(places(await homes.ofOwners(other)), ['of ada', 'of eve'])
    assert.deepEqual(places(await homes.ofOwnersOf('home-4')), ['of eve'])
    await decide('home-3/ada', 'denied', 'owner')
    assert.deepEqual(places(await homes.ofOwners(own)), ['of eve'])
    assert.equal(await homes.find({ channel: 'home-3', person: 'ada' }), undefined)
    for (const name of ['home-3', 'home-4']) await channels.remove(name)
  })

  test('GW-17 the workspace that answers in a place is its own, else that of the channel', async () => {
    const { channels } = await setUp('home-5')
    const [own, bound] = [await opened.workspace(), await opened.workspace()]
    await channels.add(
      { name: 'home-5', kind: 'telegram', token: 't', settings: {}, workspaceId: own },
      { replace: true },
    )
    await channels.bind({ channel: 'home-5', place: 'p', workspaceId: bound })
    const answering = (place: string, channel = 'home-5') => channels.answering(channel, place)
    assert.deepEqual(
      [await answering('p'), await answering('q'), await answering('q', 'gone')],
      [bound, own, undefined],
    )
    await channels.remove('home-5')
  })
}
