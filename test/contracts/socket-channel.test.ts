/** The channel contract on the socket channel: a service that keeps messages for the bot, and one with a history. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSocketService } from '../fakes/socket-service.ts'
import { waitUntil } from '../harness/wait.ts'
import { ADA, EVE, openChat } from './channel/open-chat.ts'
import { type ChannelUnderTest, channelContract } from './channel-contract.ts'

channelContract({
  kind: 'socket',
  start: () => startSocketService(),
  textCharactersMax: 2000,
  dropsCopies: false,
  hasAlbums: true,
})
channelContract({
  kind: 'socket',
  name: 'socket (with history and nonces)',
  textCharactersMax: 2000,
  dropsCopies: true,
  findsThreads: false,
  hasAlbums: true,
  start: () => startSocketService({ usesHistory: true, nonceMs: 60_000 }),
})

test('GW-6 a message that fails each time is left out, with a sentence, and holds up nothing', async (t) => {
  const under: ChannelUnderTest = {
    kind: 'socket',
    textCharactersMax: 2000,
    dropsCopies: false,
    start: () => startSocketService(),
  }
  const chat = await openChat(t, under)
  const place = chat.service.newPlace('direct')
  // A text that is a number is a bug of the program behind the channel.
  const id = chat.service.say({ place, author: ADA, text: 5 as never })
  await waitUntil(() => chat.texts(place).length > 0, 'the chat says that the message is left out')
  assert.match(chat.texts(place).join(), /^I could not take this message/)
  assert.equal(chat.service.reaction(place, id), 'failed')
  chat.service.say({ place, author: ADA, text: 'next' })
  assert.deepEqual((await chat.answers(place, 2)).slice(1), ['echo next'])
})

test('GW-4 GW-7 the commands of a stranger have a limit of their own: the people of the group keep theirs', async (t) => {
  const service = await startSocketService()
  const under = { kind: 'socket', textCharactersMax: 2000, dropsCopies: false, start: async () => service }
  const chat = await openChat(t, under)
  const place = service.newPlace('group')
  for (let n = 0; n < 30; n++) await service.command({ place, author: EVE, name: 'help' })
  assert.match(await service.command({ place, author: EVE, name: 'help' }), /too many messages/)
  assert.match(await service.command({ place, author: ADA, name: 'where' }), /answers here/)
  const direct = service.newPlace('direct')
  for (let n = 0; n < 33; n++) service.say({ place: direct, author: EVE, text: '/help' })
  await waitUntil(() => chat.texts(direct).some((text) => /too many messages/.test(text)), 'the limit is said')
  service.say({ place, author: ADA, text: 'after it', mentions: true })
  assert.deepEqual(await chat.answers(place, 1), ['echo after it'])
  await waitUntil(() => chat.texts(direct).length >= 31, 'the commands before the limit are answered')
  assert.equal(chat.texts(direct).length, 31)
})
