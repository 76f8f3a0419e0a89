/** Part of the channel contract: the limits of a service, and chats that do not wait for each other. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { waitUntil } from '../../harness/wait.ts'
import { ADA, type ChannelUnderTest, type ChatOptions, type OpenChat, openChat } from './open-chat.ts'

/** A second of the service takes so long. */
const SECOND_MS = 100

export function channelLimitTests(under: ChannelUnderTest): void {
  const open = (t: TestContext, options?: ChatOptions) =>
    openChat(t, under, { workspace: { runtime: 'mock', max_concurrent_tasks: 8 }, ...options })

  test('GW-13 a burst beyond the limits of the service is answered whole, once and in order, and nothing is given up', async (t) => {
    const chat = await open(t)
    chat.service.keepLimits(SECOND_MS)
    await answerBurst(chat, { places: 3, messages: 12 })
  })

  test('GW-2 GW-13 an answer with ten files is one message, or what the service takes in one', async (t) => {
    const cmd = 'echo here; for n in 0 1 2 3 4 5 6 7 8 9; do echo "file $n" > "$MOLECULE_OUTBOX/$n.txt"; done'
    const chat = await open(t, { workspace: undefined, cmd })
    const place = chat.service.newPlace('direct')
    chat.service.say({ place, author: ADA, text: 'files' })
    const files = () => chat.service.written(place).flatMap((message) => message.files.map(({ name }) => name))
    await waitUntil(
      () => files().length === 10,
      () => `ten files in ${JSON.stringify(chat.service.written(place))}`,
    )
    assert.deepEqual(
      files(),
      Array.from({ length: 10 }, (_, n) => `${n}.txt`),
    )
    assert.deepEqual(
      chat.texts(place).filter((text) => text !== ''),
      ['here'],
    )
    assert.equal(chat.service.sends(), 1)
  })
}

export interface Burst {
  readonly places: number
  readonly messages: number
}

/** So many chats get so many messages at once. Returns when each of them has its answer, in order, and none twice. */
export async function answerBurst(chat: OpenChat, { places, messages }: Burst): Promise<void> {
  const all = Array.from({ length: places }, () => chat.service.newPlace('direct'))
  const asked = Array.from({ length: messages }, (_, n) => `message ${n}`)
  for (const text of asked) for (const place of all) chat.service.say({ place, author: ADA, text })
  const answered = () => all.map((place) => chat.texts(place).length)
  await waitUntil(
    () => answered().every((count) => count >= messages),
    () => `all answers; there are ${answered().join(', ')}; ${chat.platform.output().slice(-2000)}`,
  )
  for (const place of all)
    assert.deepEqual(
      chat.texts(place),
      asked.map((text) => `echo: ${text}`),
    )
  const { body } = await chat.platform.request('GET', '/needs-you')
  assert.deepEqual(body.needs_you, [])
}
