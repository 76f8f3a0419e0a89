/** Part of the channel contract: the limits of a service, and chats that do not wait for each other. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { PLACE_MESSAGES_MAX } from '../../../src/doors/chat/receive/flood-limit.ts'
import { waitUntil } from '../../harness/wait.ts'
import { ADA, type ChannelUnderTest, type ChatOptions, EVE, type OpenChat, openChat } from './open-chat.ts'

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

  test('GW-13 a chat whose file, or whose pairing code, is not through holds up no other chat', async (t) => {
    const chat = await open(t)
    const [slow, strange, quick] = (['direct', 'direct', 'direct'] as const).map((kind) => chat.service.newPlace(kind))
    if (!slow || !strange || !quick) throw new Error('no places')
    const release = chat.service.holdDownloads()
    const files = [{ name: 'large.bin', content: Buffer.from('bytes'), mediaType: 'text/plain' }]
    chat.service.say({ place: slow, author: ADA, text: 'with a file', files })
    chat.service.say({ place: slow, author: ADA, text: 'behind it' })
    chat.service.failNextSend('no_answer')
    chat.service.say({ place: strange, author: EVE, text: 'who am I' })
    await chat.answers(strange, 1)
    for (const text of ['one', 'two']) chat.service.say({ place: quick, author: ADA, text })
    assert.deepEqual(await chat.answers(quick, 2), ['echo: one', 'echo: two'])
    assert.deepEqual(chat.texts(slow), [])
    release()
    assert.deepEqual(await chat.answers(slow, 2), ['echo: with a file', 'echo: behind it'])
  })

  test('GW-13 a kill while a message waits for its file: the next start answers it and those behind it, once', async (t) => {
    const chat = await open(t)
    const [place, other] = [chat.service.newPlace('direct'), chat.service.newPlace('direct')]
    const release = chat.service.holdDownloads()
    const files = [{ name: 'large.bin', content: Buffer.from('bytes'), mediaType: 'text/plain' }]
    chat.service.say({ place, author: ADA, text: 'with a file', files })
    chat.service.say({ place, author: ADA, text: 'behind it' })
    chat.service.say({ place: other, author: ADA, text: 'beside it' })
    await chat.answers(other, 1)
    await chat.platform.stop('SIGKILL')
    release()
    await chat.start()
    assert.deepEqual(await chat.answers(place, 2), ['echo: with a file', 'echo: behind it'])
    assert.equal((await chat.tasks()).length, 3)
  })

  test('GW-10 of 500 messages of one person at most the limit runs, and a message of the next minute does again', async (t) => {
    const chat = await open(t)
    const place = chat.service.newPlace('direct')
    const nowMs = Date.now()
    for (let n = 0; n < 500; n++) chat.service.say({ place, author: ADA, text: `flood ${n}`, sentAtMs: nowMs })
    chat.service.say({ place, author: ADA, text: 'later', sentAtMs: nowMs + 61_000 })
    await waitUntil(
      () => chat.texts(place).includes('echo: later'),
      () => JSON.stringify(chat.texts(place)),
    )
    const answered = chat.texts(place).filter((text) => text.startsWith('echo: flood'))
    assert.deepEqual(
      answered,
      Array.from({ length: PLACE_MESSAGES_MAX }, (_, n) => `echo: flood ${n}`),
    )
    assert.equal(chat.texts(place).filter((text) => /too many messages/.test(text)).length, 1)
  })

  test('GW-5 a message that arrives as it is written is answered, although a clock is hours wrong', async (t) => {
    const chat = await open(t)
    const place = chat.service.newPlace('direct')
    // The service keeps nothing for the bot any more, so what comes now is live.
    chat.service.say({ place, author: ADA, text: 'first' })
    await chat.answers(place, 1)
    chat.service.say({ place, author: ADA, text: 'second', sentAtMs: Date.now() - 3 * 3600_000 })
    assert.deepEqual(await chat.answers(place, 2), ['echo: first', 'echo: second'])
  })

  test('CN-6 a platform stops in time while the service cannot be reached', async (t) => {
    const chat = await open(t)
    const place = chat.service.newPlace('direct')
    chat.service.say({ place, author: ADA, text: 'one' })
    await chat.answers(place, 1)
    chat.service.failNextSend('no_answer')
    chat.service.say({ place, author: ADA, text: 'two' })
    await chat.answers(place, 2)
    await chat.service.close()
    assert.equal(await chat.platform.stop(), 0)
  })

  test('GW-6 a bot without the right to attach files or to read the history answers without them, and names the files', async (t) => {
    const cmd = 'echo "see the file"; echo text > "$MOLECULE_OUTBOX/a.txt"; : > "$MOLECULE_OUTBOX/empty.txt"'
    const chat = await open(t, { workspace: undefined, cmd })
    const place = chat.service.newPlace('group')
    chat.service.denyRights()
    const id = chat.service.say({ place, author: ADA, text: 'files', mentions: true })
    const [text = ''] = await chat.answers(place, 1)
    assert.match(text, /^see the file[\s\S]*1 file is empty[\s\S]*does not take files: a\.txt/)
    await waitUntil(() => chat.service.reaction(place, id) === 'done', 'the message is marked as done')
    assert.equal(chat.texts(place).length, 1)
  })

  test('GW-6 an answer that arrived nowhere marks its message as failed', async (t) => {
    const chat = await open(t)
    const place = chat.service.newPlace('direct')
    chat.service.failNextSend('refused')
    const id = chat.service.say({ place, author: ADA, text: 'lost' })
    await waitUntil(() => chat.service.reaction(place, id) === 'failed', 'the message is marked as failed')
    chat.service.say({ place, author: ADA, text: 'next' })
    assert.deepEqual(await chat.answers(place, 1), ['echo: next'])
    assert.equal(chat.service.reaction(place, id), 'failed')
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
    assert.equal(chat.service.sends(), under.messagesOfTenFiles ?? 1)
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
