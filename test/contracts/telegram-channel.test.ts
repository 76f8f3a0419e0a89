/** The channel contract on Telegram: the platform and grammY against the fake Telegram. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTelegram } from '../fakes/telegram/telegram.ts'
import { waitUntil } from '../harness/wait.ts'
import { ADA, openChat } from './channel/open-chat.ts'
import { channelContract } from './channel-contract.ts'

channelContract({
  kind: 'telegram',
  start: startTelegram,
  textCharactersMax: 4096,
  dropsCopies: false,
  hasAlbums: true,
})

test('GW-12 a group that becomes a supergroup keeps its binding, and the answer that is on its way goes there', async (t) => {
  const service = await startTelegram()
  const under = { kind: 'telegram', start: async () => service, textCharactersMax: 4096, dropsCopies: false }
  const chat = await openChat(t, under, { cmd: 'read text; [ "$text" = slow ] && sleep 2; echo "echo $text"' })
  const group = service.newPlace('group')
  await chat.bind(group)
  service.say({ place: group, author: ADA, text: 'one' })
  await chat.answers(group, 1)
  const moved = service.moveGroup(group)
  service.say({ place: moved, author: ADA, text: 'two' })
  assert.deepEqual(await chat.answers(moved, 1), ['echo two'])
  const slow = service.say({ place: moved, author: ADA, text: 'slow' })
  await waitUntil(() => service.reaction(moved, slow) === 'running', 'the message runs')
  const again = service.moveGroup(moved, { isAnnounced: false })
  assert.deepEqual(await chat.answers(again, 1), ['echo slow'])
  service.say({ place: again, author: ADA, text: 'three' })
  assert.deepEqual(await chat.answers(again, 2), ['echo slow', 'echo three'])
})
