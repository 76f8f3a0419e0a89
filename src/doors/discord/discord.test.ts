import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import fc from 'fast-check'
import { startDiscord } from '../../../test/fakes/discord/discord.ts'
import { arbitraryMarkdown } from '../../../test/generators/markdown.ts'
import { waitUntil } from '../../../test/harness/wait.ts'
import { systemClock } from '../../clock.ts'
import { silentLog } from '../../log.ts'
import type { ButtonPress, ChannelEvents, CommandCall, IncomingMessage, Place, SendResult } from '../chat/channel.ts'
import { discordKind } from './discord.ts'
import { renderDiscord } from './discord-markdown.ts'

const COMMANDS = [
  { name: 'new', text: 'Start a new conversation' },
  { name: 'model', text: 'Show or set the model', argument: 'the model' },
]
const ADA = { id: '222', name: 'ada', isBot: false }
const signal = new AbortController().signal

/** A fake service with a connected channel, and all that the channel said to its door. */
async function open(t: TestContext, handle: Partial<ChannelEvents> = {}) {
  const service = await startDiscord()
  const channel = await discordKind.open({
    token: service.token,
    apiUrl: service.apiUrl,
    clock: systemClock,
    log: silentLog,
  })
  t.after(async () => {
    await channel.close()
    await service.close()
  })
  const seen = {
    messages: [] as IncomingMessage[],
    problems: [] as (string | undefined)[],
    reconnects: 0,
    refusals: [] as Error[],
  }
  const events: ChannelEvents = {
    message: async (message) => void seen.messages.push(message),
    command: async () => undefined,
    press: async () => undefined,
    reconnected: () => {
      seen.reconnects += 1
    },
    problem: (sentence) => void seen.problems.push(sentence),
    refused: (error) => void seen.refusals.push(error),
    ...handle,
  }
  const account = await channel.connect(events, { commands: COMMANDS }, signal)
  return { service, channel, seen, account }
}

const texts = (messages: readonly IncomingMessage[]) => messages.map(({ text }) => text)

test('GW-2 Discord: mentions, direct messages and threads arrive in order, without the mention', async (t) => {
  const { service, seen, account } = await open(t)
  assert.deepEqual(account, { id: service.world.bot.id, name: 'molecule' })
  const group = service.newPlace('group')
  const thread = service.newPlace('thread', group)
  const direct = service.newPlace('direct')
  const file = { name: 'a.txt', content: Buffer.from('hi'), mediaType: 'text/plain' }
  for (let n = 0; n < 5; n++) service.say({ place: group, text: `m${n}`, mentions: n === 0 })
  service.say({ place: thread, text: `<@&${service.world.botRoleId}> by role`, files: [file] })
  service.say({ place: direct, text: 'hello', twice: true })
  await waitUntil(() => seen.messages.length === 8)
  const inPlace = ({ id }: Place) => seen.messages.filter((message) => message.place.id === id)
  assert.deepEqual(texts(inPlace(group)), ['m0', 'm1', 'm2', 'm3', 'm4'])
  assert.deepEqual(
    inPlace(group).map(({ isAddressed }) => isAddressed),
    [true, false, false, false, false],
  )
  const [byRole] = inPlace(thread)
  assert.deepEqual([byRole?.text, byRole?.isAddressed, byRole?.place], ['by role', true, thread])
  const [hello, copy] = inPlace(direct)
  assert.deepEqual([hello?.text, hello?.isAddressed, hello?.place, hello?.author], ['hello', true, direct, ADA])
  assert.equal(hello?.id, copy?.id)
})

test('GW-2 Discord: files both ways, within their limit', async (t) => {
  const { service, channel, seen } = await open(t)
  const place = service.newPlace('direct')
  service.say({
    place,
    text: '',
    files: [{ name: 'a b.txt', content: Buffer.from('content'), mediaType: 'text/plain' }],
  })
  await waitUntil(() => seen.messages.length === 1)
  const [file] = seen.messages[0]?.files ?? []
  assert(file)
  assert.deepEqual([file.name, file.bytes, file.mediaType], ['a b.txt', 7, 'text/plain'])
  assert.equal(Buffer.from(await channel.download(file, 100, signal)).toString(), 'content')
  await assert.rejects(channel.download(file, 3, signal), { code: 'too_large' })
  await assert.rejects(channel.download({ ...file, ref: 'http://127.0.0.1:1/a' }, 3, signal), { code: 'forbidden' })
  const content = Buffer.from([0, 255, 10])
  const result = await channel.send(
    { place: place.id, text: '', nonce: 'n1', files: [{ name: 'out.bin', content }] },
    signal,
  )
  assert.equal(result.type, 'sent')
  assert.deepEqual(service.written(place)[0]?.files, [{ name: 'out.bin', content: new Uint8Array(content) }])
})

test('GW-6 Discord: a send whose answer was lost is unknown, and the same nonce does not double it', async (t) => {
  const { service, channel } = await open(t)
  const place = service.newPlace('group')
  const message = { place: place.id, text: 'hello @everyone <@222>', nonce: 'abc123' }
  service.failNextSend('lost_answer')
  assert.equal((await channel.send(message, signal)).type, 'unknown')
  const again = await channel.send(message, signal)
  const written = service.written(place)
  assert.deepEqual(again, { type: 'sent', messageId: written[0]?.id })
  assert.equal(written.length, 1)
  assert.equal(await channel.findSent?.({ ...message, sinceMs: Date.now() - 10_000 }, signal), written[0]?.id)
  assert.equal(await channel.findSent?.({ ...message, text: 'other', sinceMs: 0 }, signal), undefined)
  const afterIt = { ...message, sinceMs: 0, afterMessageId: written[0]?.id }
  assert.equal(await channel.findSent?.(afterIt, signal), undefined, 'an equal message of before is another one')
  assert.deepEqual(service.world.pinged, [], 'a mention in an answer notifies no one')
})

test('GW-6 Discord: a 429 says when to retry, a 5xx and a missing channel are failures', async (t) => {
  const { service, channel } = await open(t)
  const place = service.newPlace('group')
  const message = { place: place.id, text: 'hello', nonce: 'n' }
  service.fail('POST', /messages$/, { retryAfterMs: 700, isGlobal: true })
  const limited = await channel.send(message, signal)
  assert(limited.type === 'failed' && (limited.retryAfterMs ?? 0) > 0 && !limited.final)
  service.failNextSend('server_error')
  await waitUntil(async () => {
    const result = await channel.send(message, signal)
    return result.type === 'failed' && result.error === 'Discord failed with 502.'
  })
  const gone = await channel.send({ ...message, place: '1' }, signal)
  assert.deepEqual(gone, { type: 'failed', error: 'The channel no longer exists on Discord.', final: true })
  service.fail('POST', /messages$/, 'lost_request')
  assert.equal((await channel.send(message, signal)).type, 'unknown')
  assert.equal(service.written(place).length, 0)
})

test('GW-13 Discord: the state of a message costs one call, and one more for the state before', async (t) => {
  const { service, channel, seen } = await open(t)
  const place = service.newPlace('direct')
  const messageId = service.say({ place, text: 'hello', twice: true })
  await waitUntil(() => seen.messages.length === 2)
  for (const state of ['running', 'waiting', 'done'] as const)
    await channel.react({ place: place.id, messageId }, state)
  assert.equal(service.reaction(place, messageId), 'done')
  const calls = service.requests.filter(({ path }) => path.includes('/reactions/'))
  assert.deepEqual(
    calls.map(({ method }) => method),
    ['PUT', 'PUT', 'DELETE', 'PUT', 'DELETE'],
  )
})

test('GW-6 Discord: an answer that may not be a reply, because the bot may not read the history, is no reply', async (t) => {
  const { service, channel } = await open(t)
  const place = service.newPlace('group')
  const replyTo = service.say({ place, text: 'hello', mentions: true })
  service.denyRights()
  assert.equal((await channel.send({ place: place.id, text: 'answer', nonce: 'n', replyTo }, signal)).type, 'sent')
  assert.deepEqual(
    service.written(place).map(({ text }) => text),
    ['answer'],
  )
})

test('GW-6 Discord: the bucket of a channel is obeyed', async (t) => {
  const { service, channel } = await open(t)
  const place = service.newPlace('group')
  service.limitMessages({ limit: 2, windowMs: 1000 })
  const results: SendResult[] = []
  for (let n = 0; n < 3; n++)
    results.push(await channel.send({ place: place.id, text: `${n}`, nonce: `b${n}` }, signal))
  assert.deepEqual(
    results.map(({ type }) => type),
    ['sent', 'sent', 'failed'],
  )
  assert(results[2]?.type === 'failed' && (results[2].retryAfterMs ?? 0) > 0)
  const posts = service.requests.filter(({ method, path }) => method === 'POST' && path.endsWith('/messages'))
  assert.equal(posts.length, 2, 'the third request is not even sent')
})

test('GW-5 Discord: a dropped socket resumes and gets what it missed; a new session asks for the history', async (t) => {
  const { service, channel, seen } = await open(t)
  const place = service.newPlace('group')
  const first = service.say({ place, text: 'before' })
  await waitUntil(() => seen.messages.length === 1)
  service.dropConnections()
  service.say({ place, text: 'during' })
  await waitUntil(() => seen.messages.length === 2)
  assert.equal(service.gateway.resumes, 1)
  assert.equal(seen.reconnects, 0)
  assert(seen.problems.some((problem) => problem?.includes('reconnects')))
  service.gateway.forgetSessions()
  service.dropConnections()
  service.say({ place, text: 'lost' })
  await waitUntil(() => seen.reconnects === 1)
  assert.equal(seen.problems.at(-1), undefined)
  const history = await channel.history?.({ place, afterMessageId: first, limit: 10 }, signal)
  assert.deepEqual(texts(history ?? []), ['during', 'lost'])
})

test('GW-5 Discord: the history has more than a page, the oldest first, without own messages', async (t) => {
  const { service, channel } = await open(t)
  const place = service.newPlace('group')
  const first = service.sayUnseen({ place, text: 'first' })
  for (let n = 0; n < 150; n++) service.sayUnseen({ place, text: `m${n}`, mentions: n === 149 })
  await channel.send({ place: place.id, text: 'own', nonce: 'own' }, signal)
  const history = (await channel.history?.({ place, afterMessageId: first, limit: 200 }, signal)) ?? []
  assert.deepEqual(
    texts(history),
    Array.from({ length: 150 }, (_, n) => `m${n}`),
  )
  assert.equal(history.at(-1)?.isAddressed, true)
  assert.equal((await channel.history?.({ place, afterMessageId: first, limit: 20 }, signal))?.length, 20)
})

test('GW-5 Discord: own messages do not shorten a page, and the history can begin at a time', async (t) => {
  const { service, channel } = await open(t)
  const place = service.newPlace('group')
  service.sayUnseen({ place, text: 'before', sentAtMs: Date.now() - 5000 })
  const sinceMs = Date.now() - 1000
  for (const text of ['one', 'two', 'three']) {
    service.sayUnseen({ place, text, sentAtMs: sinceMs })
    await channel.send({ place: place.id, text: `answer to ${text}`, nonce: text }, signal)
  }
  const read = async (limit: number) => texts((await channel.history?.({ place, sinceMs, limit }, signal)) ?? [])
  assert.deepEqual(await read(2), ['one', 'two'])
  assert.deepEqual(await read(10), ['one', 'two', 'three'])
  const gone = { id: '1', name: '#gone', isDirect: false }
  assert.deepEqual(await channel.history?.({ place: gone, sinceMs, limit: 10 }, signal), [])
})

test('GW-5 Discord: the places of a bot are the channels and the open threads of its servers', async (t) => {
  const { service, channel } = await open(t)
  const group = service.newPlace('group')
  const thread = service.newPlace('thread', group)
  service.newPlace('direct')
  assert.deepEqual(await channel.places?.(signal), [group, thread])
})

test('GW-5 Discord: a message that could not be stored is given again, before later ones', async (t) => {
  const stored: string[] = []
  let failures = 0
  const { service } = await open(t, {
    message: async ({ text }) => {
      failures += 1
      if (failures === 1) throw new Error('the store is down')
      stored.push(text)
    },
  })
  const place = service.newPlace('direct')
  for (const text of ['one', 'two']) service.say({ place, text })
  await waitUntil(() => stored.length === 2)
  assert.deepEqual(stored, ['one', 'two'])
})

test('GW-7 Discord: slash commands are registered and answered, long answers too', async (t) => {
  const calls: CommandCall[] = []
  const { service } = await open(t, {
    command: async (call) => {
      calls.push(call)
      await call.answer('word '.repeat(1000))
    },
  })
  assert.deepEqual(
    service.world.commands.map(({ name }) => name),
    ['new', 'model'],
  )
  const place = service.newPlace('group')
  const answer = await service.command({ place, author: ADA, name: 'model', argument: 'opus' })
  assert.match(answer, /^word /)
  assert.deepEqual(
    [calls[0]?.name, calls[0]?.argument, calls[0]?.author, calls[0]?.place],
    ['model', 'opus', ADA, place],
  )
  await waitUntil(() => service.requests.filter(({ path }) => path.startsWith('/webhooks/')).length === 3)
})

test('GW-9 Discord: a button is pressed, answered to that person, and removed by an edit', async (t) => {
  const presses: ButtonPress[] = []
  const { service, channel } = await open(t, {
    press: async (press) => {
      presses.push(press)
      await press.answer('noted')
    },
  })
  const place = service.newPlace('direct')
  const buttons = [
    { id: 'ask-1:yes', label: 'Allow once', style: 'good' },
    { id: 'ask-1:no', label: 'Deny', style: 'bad' },
  ] as const
  const sent = await channel.send({ place: place.id, text: 'May it?', nonce: 'n', buttons }, signal)
  assert(sent.type === 'sent')
  const answer = await service.press({ place, messageId: sent.messageId, label: 'Deny', author: ADA })
  assert.equal(answer, 'noted')
  assert.deepEqual([presses[0]?.buttonId, presses[0]?.messageId, presses[0]?.author], ['ask-1:no', sent.messageId, ADA])
  await channel.edit({ place: place.id, messageId: sent.messageId, text: 'Denied.' }, signal)
  const [written] = service.written(place)
  assert.deepEqual([written?.text, written?.buttons, written?.edits], ['Denied.', [], 1])
})

test('GW-2 Discord: reactions replace each other, typing is shown', async (t) => {
  const { service, channel } = await open(t)
  const place = service.newPlace('group')
  const key = { place: place.id, messageId: service.sayUnseen({ place, text: 'hello' }) }
  for (const state of ['seen', 'running', 'done'] as const) {
    await channel.react(key, state)
    assert.equal(service.reaction(place, key.messageId), state)
  }
  await channel.typing(place.id)
  assert.equal(service.typings(place), 1)
})

test('GW-12 Discord: a good token gives the invite link, a bad one a sentence that says what to click', async (t) => {
  const service = await startDiscord()
  t.after(() => service.close())
  const options = { token: service.token, apiUrl: service.apiUrl, clock: systemClock, log: silentLog }
  const check = await discordKind.check(options, signal)
  assert.match(check.steps.join(), /oauth2\/authorize\?client_id=111111111111111111&scope=bot\+applications\.commands/)
  const refused = (expected: RegExp) => (error: Error & { code?: string }) => {
    assert.equal(error.code, 'bad_config')
    assert.match(error.message, expected)
    assert(!JSON.stringify([error.message, error.stack, error.cause]).includes('wrong-secret'))
    return true
  }
  for (const token of ['wrong-secret', 'wrong-secret with a line\nbreak', 'wrong-secret\u2028']) {
    await assert.rejects(discordKind.check({ ...options, token }, signal), refused(/click Reset Token/))
  }
  const connect = async (token: string) => {
    const channel = await discordKind.open({ ...options, token })
    const ignore = async () => undefined
    const events = {
      message: ignore,
      command: ignore,
      press: ignore,
      reconnected: ignore,
      problem: ignore,
      refused: ignore,
    }
    await channel.connect(events, { commands: [] }, signal).finally(() => channel.close())
  }
  await assert.rejects(connect('wrong-secret'), refused(/click Reset Token/))
  service.world.hasContentIntent = false
  await assert.rejects(discordKind.check(options, signal), refused(/turn on Message Content Intent/))
  await assert.rejects(connect(service.token), refused(/111111111111111111\/bot, turn on Message Content Intent/))
  await service.close()
  await assert.rejects(discordKind.check(options, signal), { code: 'provider_unreachable', retryable: true })
  await assert.rejects(connect(service.token), { code: 'provider_unreachable', retryable: true })
})

test('GW-12 Discord: a token that is revoked while the bot runs is reported', async (t) => {
  const { service, seen } = await open(t)
  service.gateway.close(4004)
  await waitUntil(() => seen.refusals.length === 1)
  assert.match(seen.refusals[0]?.message ?? '', /click Reset Token/)
})

test('GW-2 Discord: every message of an arbitrary answer is within the limit and closes its code blocks', () => {
  fc.assert(
    fc.property(arbitraryMarkdown, (markdown) => {
      for (const part of renderDiscord(markdown)) {
        assert(part.length <= 2000 && part.trim() !== '')
        assert.equal((part.match(/```/g) ?? []).length % 2, 0)
        assert(!/`{4}/.test(part))
      }
    }),
    { numRuns: 300 },
  )
})

test('GW-2 Discord: tables become aligned code, deep headings bold, nested fences readable', () => {
  const table = '| name | n |\n|---|---:|\n| `a` | **10** |\n| long | 2 |'
  assert.deepEqual(renderDiscord(`See:\n\n${table}\n\nend`), [
    'See:\n\n```\nname | n\n-----|---\na    | 10\nlong | 2\n```\n\nend',
  ])
  assert.deepEqual(renderDiscord('#### Deep **title**\ntext ![pic](https://e.org/a.png)'), [
    '**Deep title**\ntext [pic](https://e.org/a.png)',
  ])
  assert.deepEqual(renderDiscord('~~~~md\n```js\nx\n```\n~~~~'), ['```md\nˋˋˋjs\nx\nˋˋˋ\n```'])
  assert.deepEqual(renderDiscord('1. Do\n   ```sh\n   ls\n   ```'), ['1. Do\n```sh\nls\n```'])
})
