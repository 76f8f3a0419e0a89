/** Bursts of messages on bots whose service keeps its limits: the answers wait, and none is lost, doubled or given up. */
import { type TestContext, test } from 'node:test'
import { answerBurst, type Burst } from '../contracts/channel/limits.ts'
import { type ChannelUnderTest, openChat } from '../contracts/channel/open-chat.ts'
import { startDiscord } from '../fakes/discord/discord.ts'
import { startTelegram } from '../fakes/telegram/telegram.ts'

const SERVICES: readonly ChannelUnderTest[] = [
  { kind: 'discord', start: startDiscord, textCharactersMax: 2000, dropsCopies: true },
  { kind: 'telegram', start: startTelegram, textCharactersMax: 4096, dropsCopies: false },
]
const BURSTS: readonly Burst[] = [
  { places: 10, messages: 20 },
  { places: 30, messages: 8 },
  { places: 40, messages: 5 },
]
/** A second of the service takes so long. */
const SECOND_MS = 100

const AGENTS = {
  'at once': {},
  'while they are written': { runtime_config: { delay: '500ms', stream: 'true' } },
}

for (const under of SERVICES)
  for (const burst of BURSTS)
    for (const [how, agent] of Object.entries(AGENTS))
      test(`GW-13 GW-15 ${under.kind}: ${burst.places} chats with ${burst.messages} messages each are all answered once, in order, ${how}`, async (t: TestContext) => {
        const chat = await openChat(t, under, { workspace: { runtime: 'mock', max_concurrent_tasks: 8, ...agent } })
        chat.service.keepLimits(SECOND_MS)
        await answerBurst(chat, burst)
      })
