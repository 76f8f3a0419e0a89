/**
 * A platform with a bot is killed again and again while people write: every message is answered once, in the order of its chat.
 * `MOLECULE_TEST_CHAT_KILLS=100` kills it so often.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import type { Place } from '../../src/doors/chat/channel.ts'
import { ADA, type ChannelUnderTest, openChat } from '../contracts/channel/open-chat.ts'
import { startDiscord } from '../fakes/discord/discord.ts'
import { startSocketService } from '../fakes/socket-service.ts'
import { createRandom } from './random.ts'

const KILLS = Number(process.env['MOLECULE_TEST_CHAT_KILLS'] ?? 4)
const CHATS = 4
const MESSAGES = 3
/** Later kills meet a platform that rests. */
const KILL_MS_MAX = 400

/** Services that drop copies: on others an answer of which the send was cut waits for a person. */
const SERVICES: readonly ChannelUnderTest[] = [
  { kind: 'discord', start: startDiscord, textCharactersMax: 2000, dropsCopies: true },
  {
    kind: 'socket',
    start: () => startSocketService({ usesHistory: true, nonceMs: 60_000 }),
    textCharactersMax: 2000,
    dropsCopies: true,
  },
]

for (const under of SERVICES)
  test(`RE-1 GW-6 ${under.kind}: ${KILLS} kills while people write lose no message and double no answer`, {
    timeout: 20 * 60_000,
  }, async (t: TestContext) => {
    const chat = await openChat(t, under, { workspace: { runtime: 'mock', max_concurrent_tasks: 8 } })
    const random = createRandom(1)
    const places: Place[] = []
    for (let kill = 0; kill < KILLS; kill++) {
      const here = Array.from({ length: CHATS }, () => chat.service.newPlace('direct'))
      // A bot that was away learns of a chat by what it has seen there.
      for (const place of here) chat.service.say({ place, author: ADA, text: 'first' })
      for (const place of here) await chat.answers(place, 1)
      places.push(...here)
      const killed = setTimeout(random.number(KILL_MS_MAX)).then(() => chat.platform.stop('SIGKILL'))
      for (let n = 1; n <= MESSAGES; n++) {
        for (const place of here) chat.service.say({ place, author: ADA, text: `message ${n}` })
        await setTimeout(random.number(100))
      }
      await killed
      await chat.start()
    }
    const expected = ['echo: first', ...Array.from({ length: MESSAGES }, (_, n) => `echo: message ${n + 1}`)]
    for (const place of places) assert.deepEqual(await chat.answers(place, expected.length), expected)
  })
