import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startTelegram } from '../../../test/fakes/telegram/telegram.ts'
import { waitUntil } from '../../../test/harness/wait.ts'
import { systemClock } from '../../clock.ts'
import { createLog, silentLog } from '../../log.ts'
import type { ButtonPress, ChannelEvents, IncomingMessage } from '../chat/channel.ts'
import { telegramKind } from './telegram.ts'

const COMMANDS = [{ name: 'new', text: 'Start a new conversation' }]
const ADA = { id: '222', name: 'ada', isBot: false }
const signal = new AbortController().signal

/** A fake service with a connected channel, and all that the channel said to its door. */
async function open(t: TestContext, handle: Partial<ChannelEvents> = {}) {
  const service = await startTelegram()
  const lines: string[] = []
  const log = createLog('debug', { write: (line: string) => void lines.push(line) })
  const channel = await telegramKind.open({ token: service.token, apiUrl: service.apiUrl, clock: systemClock, log })
  t.after(async () => {
    await channel.close()
    await service.close()
    assert(!lines.join().includes(service.token), 'the token is in no log')
  })
  const seen = { messages: [] as IncomingMessage[], problems: [] as (string | undefined)[], refusals: [] as Error[] }
  const events: ChannelEvents = {
    message: async (message) => void seen.messages.push(message),
    command: async () => undefined,
    press: async () => undefined,
    reconnected: () => undefined,
    problem: (sentence) => void seen.problems.push(sentence),
    refused: (error) => void seen.refusals.push(error),
    ...handle,
  }
  const account = await channel.connect(events, { commands: COMMANDS }, signal)
  return { service, channel, seen, account }
}

test('GW-11 Telegram: private chats, groups by mention, reply or command, and topics', async (t) => {
  const { service, channel, seen, account } = await open(t)
  assert.deepEqual(account, { id: '123456789', name: 'molecule_test_bot' })
  assert.deepEqual(service.world.commands, [{ command: 'new', description: 'Start a new conversation' }])
  const direct = service.newPlace('direct')
  const group = service.newPlace('group')
  const topic = service.newPlace('thread', group)
  service.say({ place: direct, text: 'hello', twice: true })
  service.say({ place: group, text: 'not for the bot' })
  service.say({ place: group, text: 'do it', mentions: true })
  service.say({ place: topic, text: '/new@Molecule_Test_Bot now' })
  service.say({ place: topic, text: '/new@other_bot now' })
  await waitUntil(() => seen.messages.length === 6)
  assert.deepEqual(
    seen.messages.map(({ text, isAddressed }) => [text, isAddressed]),
    [
      ...[
        ['hello', true],
        ['hello', true],
      ],
      ...[
        ['not for the bot', false],
        ['do it', true],
      ],
      ...[
        ['/new now', true],
        ['/new@other_bot now', false],
      ],
    ],
  )
  assert.deepEqual([seen.messages[0]?.place, seen.messages[2]?.place, seen.messages[4]?.place], [direct, group, topic])
  assert.equal(seen.messages[0]?.id, seen.messages[1]?.id)
  assert.deepEqual(seen.messages[0]?.author, ADA)
  const sent = await channel.send({ place: topic.id, text: 'an <b>answer</b>', nonce: 'n' }, signal)
  assert.equal(service.written(topic)[0]?.text, 'an answer')
  assert(sent.type === 'sent')
  const own = service.world.find(Number(group.id), Number(sent.messageId))
  const reply = service.world.addMessage({
    chat: service.world.chats.get(Number(group.id)) as never,
    from: { id: 222, is_bot: false, first_name: 'ada' },
    text: 'and?',
    reply_to_message: own as never,
  })
  service.addUpdate({ message: reply })
  await waitUntil(() => seen.messages.length === 7)
  assert.equal(seen.messages[6]?.isAddressed, true)
})

test('GW-5 Telegram: an update is confirmed only after the door has stored it', async (t) => {
  let isDown = true
  const stored: string[] = []
  const { service } = await open(t, {
    message: async ({ text }) => {
      if (isDown) throw new Error('the store is down')
      stored.push(text)
    },
  })
  const place = service.newPlace('direct')
  service.addUpdate({ message: { text: 'without a chat and an author' } })
  service.say({ place, text: 'one' })
  service.say({ place, text: 'two' })
  await waitUntil(() => service.calls.filter(({ method }) => method === 'getUpdates').length > 1)
  assert.equal(service.unconfirmed().length, 2)
  isDown = false
  await waitUntil(() => service.unconfirmed().length === 0)
  assert.deepEqual(stored, ['one', 'two'])
})

test('GW-6 Telegram: a send whose answer was lost is unknown; a refused connection is a failure', async (t) => {
  const { service, channel } = await open(t)
  const place = service.newPlace('direct')
  const post = { place: place.id, text: 'hello', nonce: 'n' }
  service.failNextSend('lost_answer')
  assert.equal((await channel.send(post, signal)).type, 'unknown')
  assert.equal(service.written(place).length, 1)
  service.fail('sendMessage', 'lost_request')
  assert.equal((await channel.send(post, signal)).type, 'unknown')
  service.failNextSend('rate_limited')
  assert.deepEqual(await channel.send(post, signal), {
    type: 'failed',
    error: 'Telegram asks to wait (rate limit).',
    retryAfterMs: 1000,
  })
  service.failNextSend('server_error')
  assert.equal((await channel.send(post, signal)).type, 'failed')
  service.fail('sendMessage', { status: 500, description: 'Internal Server Error' })
  assert.deepEqual(await channel.send(post, signal), { type: 'failed', error: 'Telegram failed with 500.' })
  service.world.blocked.add(Number(place.id))
  const blocked = await channel.send(post, signal)
  assert(blocked.type === 'failed' && blocked.final && /blocked/.test(blocked.error))
  const gone = await channel.send({ ...post, place: '42' }, signal)
  assert.deepEqual(gone, { type: 'failed', error: 'The chat no longer exists on Telegram.', final: true })
  await service.close()
  const refused = await channel.send(post, signal)
  assert.deepEqual(refused, { type: 'failed', error: 'Telegram cannot be reached (ECONNREFUSED).', isUnsent: true })
})

test('GW-11 Telegram: files both ways, images as photos, several as an album', async (t) => {
  const { service, channel, seen } = await open(t)
  const place = service.newPlace('direct')
  service.say({
    place,
    text: 'see',
    files: [{ name: 'a.txt', content: Buffer.from('content'), mediaType: 'text/plain' }],
  })
  await waitUntil(() => seen.messages.length === 1)
  assert.equal(seen.messages[0]?.text, 'see')
  const [file] = seen.messages[0]?.files ?? []
  assert(file)
  assert.deepEqual([file.name, file.bytes, file.mediaType], ['a.txt', 7, 'text/plain'])
  assert.equal(Buffer.from(await channel.download(file, 100, signal)).toString(), 'content')
  await assert.rejects(channel.download(file, 3, signal), { code: 'too_large' })
  await assert.rejects(channel.download({ ...file, ref: 'gone' }, 3, signal), { retryable: true })
  const png = { name: 'a.png', mediaType: 'image/png', content: Buffer.from([0x89, 0x50, 0x4e, 0x47]) }
  const broken = { name: 'b.png', mediaType: 'image/png', content: Buffer.from('no image') }
  const text = { name: 'c.md', content: Buffer.from('# hi') }
  const post = { place: place.id, text: '', nonce: 'n' }
  for (const files of [[png], [broken], [text], [png, text]]) {
    assert.equal((await channel.send({ ...post, files }, signal)).type, 'sent')
  }
  assert.equal((await channel.send({ ...post, text: 'x'.repeat(2000), files: [text] }, signal)).type, 'sent')
  const methods = service.calls.map(({ method }) => method).filter((method) => method.startsWith('send'))
  assert.deepEqual(methods, [
    ...['sendPhoto', 'sendPhoto', 'sendDocument', 'sendDocument', 'sendMediaGroup', 'sendMessage', 'sendDocument'],
  ])
  const names = service.written(place).flatMap(({ files }) => files.map(({ name }) => name))
  assert.deepEqual(names, ['a.png', 'b.png', 'c.md', 'a.png', 'c.md', 'c.md'])
})

test('GW-9 GW-11 Telegram: a button is pressed, answered to that person, and removed by an edit', async (t) => {
  const presses: ButtonPress[] = []
  const { service, channel } = await open(t, {
    press: async (press) => {
      presses.push(press)
      if (press.buttonId === 'ask-1:no') await press.answer('noted')
    },
  })
  const place = service.newPlace('thread', service.newPlace('group'))
  const buttons = [
    { id: 'ask-1:yes', label: 'Allow once', style: 'good' },
    { id: 'ask-1:no', label: 'Deny', style: 'bad' },
  ] as const
  const sent = await channel.send({ place: place.id, text: 'May it?', nonce: 'n', buttons }, signal)
  assert(sent.type === 'sent')
  const { messageId } = sent
  assert.equal(await service.press({ place, messageId, label: 'Deny', author: ADA }), 'noted')
  assert.equal(await service.press({ place, messageId, label: 'Allow once', author: ADA }), '')
  assert.deepEqual(
    presses.map((press) => [press.buttonId, press.messageId]),
    [
      ['ask-1:no', messageId],
      ['ask-1:yes', messageId],
    ],
  )
  assert.deepEqual([presses[0]?.place, presses[0]?.author], [place, ADA])
  for (let n = 0; n < 2; n++) {
    assert.deepEqual(await channel.edit({ place: place.id, messageId, text: 'Denied.' }, signal), {
      type: 'sent',
      messageId,
    })
  }
  const [written] = service.written(place)
  assert.deepEqual([written?.text, written?.buttons, written?.edits], ['Denied.', [], 1])
  service.fail('editMessageText', 'lost_request')
  assert.equal((await channel.edit({ place: place.id, messageId, text: 'x' }, signal)).type, 'failed')
})

test('GW-11 Telegram: reactions replace each other, typing is shown in its topic', async (t) => {
  const { service, channel } = await open(t)
  const place = service.newPlace('thread', service.newPlace('group'))
  const messageId = service.say({ place, text: 'hello' })
  for (const state of ['seen', 'running', 'waiting', 'done', 'failed'] as const) {
    await channel.react({ place: place.id, messageId }, state)
    assert.equal(service.reaction(place, messageId), state)
  }
  await channel.typing(place.id)
  assert.equal(service.typings(place), 1)
})

test('GW-11 Telegram: dropped polls, and 5xx are problems that end by themselves; a second program is one that stays for a while', async (t) => {
  const { service, seen } = await open(t)
  const place = service.newPlace('direct')
  await waitUntil(service.isConnected)
  service.pollElsewhere()
  await waitUntil(() => seen.problems.length === 1)
  assert.match(seen.problems[0] ?? '', /Another program/)
  service.fail('getUpdates', { status: 502, description: 'Bad Gateway' })
  service.dropConnections()
  service.say({ place, text: 'still there' })
  await waitUntil(() => seen.messages.length === 1)
  assert.equal(seen.problems.length, 1, 'the other program may go on, so the sentence stays for a while')
})

test('GW-12 Telegram: a good token gives the link of the bot, a bad one a sentence that says what to do', async (t) => {
  const service = await startTelegram()
  t.after(() => service.close())
  const options = { token: service.token, apiUrl: `${service.apiUrl}/`, clock: systemClock, log: silentLog }
  assert.deepEqual((await telegramKind.check(options, signal)).steps, [
    'Open https://t.me/molecule_test_bot and press Start.',
  ])
  service.world.readsGroups = false
  assert.match((await telegramKind.check(options, signal)).steps[1] ?? '', /setprivacy/)
  const clean = (error: Error & { code?: string }) => {
    assert(!JSON.stringify([error.message, error.stack, error.cause]).includes('secret'))
    return true
  }
  for (const token of ['', 'secret', '1:secret', '1:sec/secret', '1:secret\n']) {
    await assert.rejects(telegramKind.check({ ...options, token }, signal), {
      code: 'bad_config',
      message: /BotFather/,
    })
    await assert.rejects(telegramKind.check({ ...options, token }, signal), clean)
  }
  await service.close()
  const unreachable = { ...options, token: '1:secret' }
  await assert.rejects(telegramKind.check(unreachable, signal), { code: 'provider_unreachable', retryable: true })
  await assert.rejects(telegramKind.check(unreachable, signal), clean)
})

test('GW-12 Telegram: a token that is revoked while the bot runs is reported', async (t) => {
  const { service, seen } = await open(t)
  service.fail('getUpdates', { status: 401, description: 'Unauthorized' })
  service.dropConnections()
  await waitUntil(() => seen.refusals.length === 1)
  assert.match(seen.refusals[0]?.message ?? '', /BotFather/)
})
