/** Part of the channel contract: edits and deletions of messages that wait, and albums. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Place } from '../../../src/doors/chat/channel.ts'
import type { Message, Part } from '../../../src/protocol/a2a.ts'
import { textOf } from '../../../src/protocol/part.ts'
import type { Said } from '../../fakes/chat-service.ts'
import { getTask } from '../../harness/platform.ts'
import { waitUntil } from '../../harness/wait.ts'
import { ADA, type ChannelUnderTest, type ChatOptions, EVE, type OpenChat, openChat } from './open-chat.ts'

const file = (name: string) => ({ name, content: Buffer.from(`content of ${name}`), mediaType: 'text/plain' })

/** The parts of the first message of each task, in the order of admission. */
async function readMessages(chat: OpenChat): Promise<(readonly Part[])[]> {
  const ids = (await chat.tasks()).map(({ id }) => id).sort()
  const tasks = await Promise.all(ids.map((id) => getTask(chat.platform, chat.workspaceId, id)))
  return tasks.map(({ history }: { history: Message[] }) => history[0]?.parts ?? [])
}

const namesOf = (parts: readonly Part[]) => parts.flatMap(({ filename }) => filename ?? [])

const pause = (chat: OpenChat, verb: 'pause' | 'resume') =>
  chat.platform.request('POST', `/workspaces/${chat.workspaceId}/${verb}`)

/** A chat may also say why its messages wait. */
const echoes = (chat: OpenChat, place: Place) => chat.texts(place).filter((text) => text.startsWith('echo '))

async function waitForEchoes(chat: OpenChat, place: Place, expected: readonly string[]): Promise<void> {
  await waitUntil(
    () => echoes(chat, place).length >= expected.length,
    () => JSON.stringify(chat.texts(place)),
  )
  assert.deepEqual(echoes(chat, place), expected)
}

export function channelRevisionTests(under: ChannelUnderTest): void {
  const open = (t: TestContext, options?: ChatOptions) => openChat(t, under, options)

  test('GW-16 an edit and a deletion count while a message waits in the queue of its agent, and its place stays', async (t) => {
    const chat = await open(t)
    const place = chat.service.newPlace('direct')
    await pause(chat, 'pause')
    const [first, , third] = ['drop it', 'second', 'never mind'].map((text) =>
      chat.service.say({ place, author: ADA, text }),
    ) as [string, string, string]
    const texts = async () => (await readMessages(chat)).map((parts) => textOf(parts))
    await waitUntil(async () => (await texts()).length === 3, 'the messages are in the queue')
    chat.service.edit({ place, messageId: first, text: 'keep it' })
    await waitUntil(async () => (await texts())[0] === 'keep it', 'the new text is in the queue')
    chat.service.remove?.({ place, messageId: third })
    const isWithdrawn = async () => (await chat.tasks()).some(({ status }) => status.state === 'TASK_STATE_CANCELED')
    if (chat.service.remove) await waitUntil(isWithdrawn, 'the deleted message is taken back')
    await pause(chat, 'resume')
    const rest = chat.service.remove ? [] : ['echo never mind']
    await waitForEchoes(chat, place, ['echo keep it', 'echo second', ...rest])
    // The turn has begun and ended: another edit changes nothing.
    chat.service.edit({ place, messageId: first, text: 'too late' })
    chat.service.say({ place, author: ADA, text: 'last' })
    await waitForEchoes(chat, place, ['echo keep it', 'echo second', ...rest, 'echo last'])
    assert.equal((await texts())[0], 'keep it')
    if (chat.service.remove) assert.notEqual(chat.service.reaction(place, third), 'failed')
  })

  test('GW-16 an edit and a deletion count while a message waits behind a download of its chat, over a restart too', async (t) => {
    const chat = await open(t)
    const place = chat.service.newPlace('direct')
    // What arrives late is caught in the queue: whenever the edit comes, the agent sees the new text.
    await pause(chat, 'pause')
    const release = chat.service.holdDownloads()
    chat.service.say({ place, author: ADA, text: 'with a file', files: [file('a.txt')] })
    const second = chat.service.say({ place, author: ADA, text: 'drop it' })
    const third = chat.service.say({ place, author: ADA, text: 'never mind' })
    chat.service.edit({ place, messageId: second, text: 'keep it' })
    chat.service.remove?.({ place, messageId: third })
    const other = chat.service.newPlace('direct')
    chat.service.say({ place: other, author: ADA, text: 'beside' })
    await waitUntil(async () => (await chat.tasks()).length === 1, 'another chat waits for no download')
    await chat.platform.stop()
    release()
    await chat.start()
    await pause(chat, 'resume')
    const rest = chat.service.remove === undefined ? ['echo never mind'] : []
    await waitForEchoes(chat, place, ['echo with a file', 'echo keep it', ...rest])
    chat.service.say({ place, author: ADA, text: 'last' })
    await waitForEchoes(chat, place, ['echo with a file', 'echo keep it', ...rest, 'echo last'])
  })

  test('GW-16 GW-4 the held message of a stranger is edited or deleted before the approval', async (t) => {
    const chat = await open(t)
    const place = chat.service.newPlace('direct')
    const first = chat.service.say({ place, author: EVE, text: 'hello' })
    await chat.answers(place, 1)
    const gone = chat.service.say({ place, author: EVE, text: 'gone' })
    const held = async () => (await chat.platform.request('GET', '/pairings')).body.pairings[0]
    await waitUntil(async () => (await held()).held === 2, 'both are held')
    chat.service.edit({ place, messageId: first, text: 'good day' })
    chat.service.remove?.({ place, messageId: gone })
    const left = chat.service.remove === undefined ? 2 : 1
    await waitUntil(async () => (await held()).held === left, 'the deleted one is not held any more')
    // The edit came before this message, and is stored when it is held.
    chat.service.say({ place, author: EVE, text: 'and more' })
    await waitUntil(async () => (await held()).held === left + 1, 'the last one is held')
    await chat.platform.request('POST', `/pairings/${(await held()).code}/approve`, { role: 'user' })
    const rest = chat.service.remove === undefined ? ['echo gone'] : []
    await waitForEchoes(chat, place, ['echo good day', ...rest, 'echo and more'])
  })

  if (under.hasAlbums !== true) return

  const sayAlbum = (chat: OpenChat, place: Place, parts: readonly Partial<Said>[]) =>
    parts.map((part, n) =>
      chat.service.say({ place, author: ADA, text: '', album: 'album-1', files: [file(`${n}.txt`)], ...part }),
    )

  test('GW-16 the files of an album are one message, whichever of them has the text and the mention', async (t) => {
    const chat = await open(t)
    const place = chat.service.newPlace('group')
    sayAlbum(chat, place, [{}, { text: 'look at these', mentions: true }, {}])
    // An album among people, and another message of the group.
    sayAlbum(chat, place, [{ album: 'album-2' }, { album: 'album-2', text: 'for you' }])
    chat.service.say({ place, author: ADA, text: 'hello', mentions: true })
    await waitForEchoes(chat, place, ['echo look at these', 'echo hello'])
    const [album = [], hello = []] = await readMessages(chat)
    assert.deepEqual(namesOf(album), ['0.txt', '1.txt', '2.txt'])
    assert.deepEqual([textOf(album), namesOf(hello)], ['look at these', []])
    assert.equal((await chat.tasks()).length, 2)
  })

  test('GW-16 a kill between the parts of an album loses none of them and doubles none', async (t) => {
    const chat = await open(t)
    const place = chat.service.newPlace('direct')
    sayAlbum(chat, place, [{ text: 'look' }, {}])
    const other = chat.service.newPlace('direct')
    chat.service.say({ place: other, author: ADA, text: 'beside' })
    await waitForEchoes(chat, other, ['echo beside'])
    await chat.platform.stop('SIGKILL')
    sayAlbum(chat, place, [{ files: [file('2.txt')] }])
    await chat.start()
    const names = async () => (await readMessages(chat)).flatMap(namesOf).sort()
    await waitUntil(async () => (await names()).length >= 3, 'all parts are there')
    chat.service.say({ place, author: ADA, text: 'last' })
    await waitUntil(() => echoes(chat, place).includes('echo last'), 'the answer to the last message')
    assert.deepEqual(await names(), ['0.txt', '1.txt', '2.txt'])
  })
}
