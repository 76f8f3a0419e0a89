/** The Slack channel against the fake Slack. What all channels share is in the channel contract. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startSlack } from '../../../test/fakes/slack/slack.ts'
import { waitUntil } from '../../../test/harness/wait.ts'
import { systemClock } from '../../clock.ts'
import { createLog, silentLog } from '../../log.ts'
import type { ButtonPress, ChannelEvents, CommandCall, IncomingMessage, IncomingReaction } from '../chat/channel.ts'
import { slackKind } from './slack.ts'

const signal = new AbortController().signal
const ADA = { id: 'U0ADA', name: 'ada', isBot: false }

/** A fake service with a connected channel, and all that the channel said to its door. */
async function open(t: TestContext, handle: Partial<ChannelEvents> = {}) {
  const service = await startSlack()
  const { token, apiUrl, appToken } = service
  const lines: string[] = []
  const log = createLog('debug', { write: (line: string) => void lines.push(line) })
  const channel = await slackKind.open({ token, settings: { app_token: appToken }, apiUrl, clock: systemClock, log })
  t.after(async () => {
    await channel.close()
    await service.close()
    for (const secret of [token, appToken]) assert(!lines.join().includes(secret), 'a token is in no log')
    assert.deepEqual(service.world.pings, [])
  })
  const seen = {
    messages: [] as IncomingMessage[],
    edited: [] as IncomingMessage[],
    deleted: [] as unknown[],
    reactions: [] as IncomingReaction[],
    problems: [] as (string | undefined)[],
    reconnections: 0,
    refusals: [] as Error[],
  }
  const events: ChannelEvents = {
    message: async (message) => void seen.messages.push(message),
    command: async () => undefined,
    press: async () => undefined,
    edited: async (message) => void seen.edited.push(message),
    deleted: async (key) => void seen.deleted.push(key),
    reacted: async (reaction) => void seen.reactions.push(reaction),
    reconnected: () => {
      seen.reconnections += 1
    },
    problem: (sentence) => void seen.problems.push(sentence),
    refused: (error) => void seen.refusals.push(error),
    ...handle,
  }
  const account = await channel.connect(events, { commands: [] }, signal)
  return { service, channel, seen, account }
}

test('GW-18 Slack: direct chats, channels by mention, threads, edits, deletions, reactions and forwarded messages', async (t) => {
  const { service, seen, account } = await open(t)
  assert.deepEqual(account, { id: 'U0BOT', name: 'molecule' })
  const [direct, group] = [service.newPlace('direct'), service.newPlace('group')]
  const thread = service.newPlace('thread', group)
  service.say({ place: direct, text: 'a < b & c', twice: true })
  service.say({ place: group, text: 'not for the bot' })
  const asked = service.say({ place: group, text: 'do it', mentions: true })
  service.say({ place: thread, text: 'in the thread' })
  service.say({ place: direct, text: 'the news', forwardedFrom: 'Eve' })
  await waitUntil(() => seen.messages.length === 6)
  const of = (place: { id: string }) => seen.messages.filter((message) => message.place.id === place.id)
  assert.deepEqual(
    of(direct).map(({ text }) => text),
    ['a < b & c', 'a < b & c', 'the news'],
  )
  assert.equal(of(direct)[0]?.id, of(direct)[1]?.id)
  assert.deepEqual(of(direct)[0]?.author, ADA)
  assert.equal(of(direct)[2]?.forwardedFrom, 'Eve')
  assert.deepEqual(
    of(group).map(({ text, isAddressed }) => [text, isAddressed]),
    [
      ['not for the bot', false],
      ['do it', true],
    ],
  )
  assert.deepEqual([of(group)[0]?.place, of(thread)[0]?.place, of(direct)[0]?.place], [group, thread, direct])
  service.edit({ place: group, messageId: asked, text: 'do that' })
  service.remove?.({ place: group, messageId: asked })
  service.reactNamed({ place: group, messageId: asked, name: '+1::skin-tone-3', author: ADA })
  await waitUntil(() => seen.reactions.length === 1)
  assert.deepEqual([seen.edited[0]?.text, seen.edited[0]?.messageId], ['do that', asked])
  assert.deepEqual(seen.deleted, [{ place: group.id, messageId: asked }])
  assert.deepEqual([seen.reactions[0]?.emoji, seen.reactions[0]?.messageId], ['👍', asked])
})

test('GW-18 Slack: an envelope is confirmed only after the door has stored its message', async (t) => {
  let isDown = true
  const stored: string[] = []
  const { service } = await open(t, {
    message: async ({ text }) => {
      if (isDown) throw new Error('the store is down')
      stored.push(text)
    },
  })
  const [place, other] = [service.newPlace('direct'), service.newPlace('direct')]
  for (const text of ['one', 'two']) service.say({ place, text })
  await waitUntil(() => service.sockets.unconfirmed() === 2)
  await waitUntil(() => service.sockets.repeats > 0, 'Slack gives it again')
  assert.equal(service.sockets.unconfirmed(), 2)
  isDown = false
  service.say({ place: other, text: 'beside' })
  await waitUntil(() => service.sockets.unconfirmed() === 0)
  const first = [...new Set(stored)].filter((text) => text !== 'beside')
  assert.deepEqual(first, ['one', 'two'])
})

test('GW-6 GW-18 Slack: what a send comes to: sent, a limit, a failure, unknown, final', async (t) => {
  const { service, channel, seen } = await open(t)
  const place = service.newPlace('direct')
  const post = { place: place.id, text: 'hello', nonce: 'n1' }
  assert.equal((await channel.send(post, signal)).type, 'sent')
  const sinceMs = Date.now() - 1000
  service.failNextSend('lost_answer')
  assert.equal((await channel.send({ ...post, nonce: 'n2' }, signal)).type, 'unknown')
  const [first, second] = service.written(place)
  assert.equal(await channel.findSent?.({ ...post, nonce: 'n2', sinceMs }, signal), second?.id)
  assert.equal(
    await channel.findSent?.({ ...post, nonce: 'n2', sinceMs, afterMessageId: first?.id }, signal),
    second?.id,
  )
  assert.equal(await channel.findSent?.({ ...post, nonce: 'n3', sinceMs }, signal), undefined)
  service.failNextSend('rate_limited')
  const limited = await channel.send(post, signal)
  assert.deepEqual(limited, { type: 'failed', error: 'Slack asks to wait (rate limit).', retryAfterMs: 100 })
  service.failNextSend('server_error')
  assert.deepEqual(await channel.send(post, signal), { type: 'failed', error: 'Slack failed with 502.' })
  service.fail('chat.postMessage', { error: 'internal_error' })
  assert.equal((await channel.send(post, signal)).type, 'unknown')
  const refusals: readonly (readonly [RegExp, () => void])[] = [
    [/write \/invite/, () => Object.assign(service.world.channels.get(place.id) ?? {}, { isMember: false })],
    [/is archived/, () => Object.assign(service.world.channels.get(place.id) ?? {}, { isArchived: true })],
    [/no longer exists/, () => service.world.channels.delete(place.id)],
    [/needs chat:write: open .*install the app again/, () => service.world.scopes.delete('chat:write')],
  ]
  for (const [sentence, prepare] of refusals) {
    prepare()
    const refused = await channel.send(post, signal)
    assert(refused.type === 'failed' && refused.final === true, JSON.stringify(refused))
    assert.match(refused.error, sentence)
  }
  await service.close()
  const away = await channel.send(post, signal)
  assert.deepEqual(away, { type: 'failed', error: 'Slack cannot be reached (ECONNREFUSED).', isUnsent: true })
  await waitUntil(() => seen.problems.includes('The connection to Slack ended; the bot reconnects.'))
})

test('GW-9 GW-18 Slack: buttons are pressed, answered to that person, and removed by an edit; a long text fits into blocks', async (t) => {
  const presses: ButtonPress[] = []
  const { service, channel } = await open(t, {
    press: async (press) => {
      presses.push(press)
      await press.answer('noted')
    },
  })
  const place = service.newPlace('thread', service.newPlace('group'))
  const buttons = [
    { id: 'ask-1:yes', label: 'Allow once', style: 'good' },
    { id: 'ask-1:no', label: 'Deny', style: 'bad' },
  ] as const
  const [text = ''] = channel.render(`May it?\n\n${'word '.repeat(750)}`)
  const sent = await channel.send({ place: place.id, text, nonce: 'n', buttons }, signal)
  assert(sent.type === 'sent', JSON.stringify(sent))
  const { messageId } = sent
  assert.equal(await service.press({ place, messageId, label: 'Deny', author: ADA }), 'noted')
  assert.deepEqual([presses[0]?.buttonId, presses[0]?.messageId, presses[0]?.place], ['ask-1:no', messageId, place])
  assert.equal((await channel.edit({ place: place.id, messageId, text: 'Denied.' }, signal)).type, 'sent')
  const [written] = service.written(place)
  assert.deepEqual([written?.text, written?.buttons, written?.edits], ['Denied.', [], 1])
})

test('GW-7 GW-18 Slack: one slash command carries all commands; its answer is seen by that person only', async (t) => {
  const calls: CommandCall[] = []
  const { service } = await open(t, {
    command: async (call) => {
      calls.push(call)
      await call.answer('**done** <!channel>')
    },
  })
  const place = service.newPlace('group')
  const answer = await service.command({ place, author: ADA, name: 'bind', argument: 'my agent' })
  assert.equal(answer, '*done* &lt;!channel&gt;')
  assert.equal(await service.command({ place, author: ADA, name: '' }), answer)
  assert.deepEqual(
    calls.map(({ name, argument }) => [name, argument]),
    [
      ['bind', 'my agent'],
      ['help', ''],
    ],
  )
  assert.deepEqual([calls[0]?.place, calls[0]?.author], [place, ADA])
})

test('GW-18 Slack: files both ways, with the token to servers of Slack alone', async (t) => {
  const { service, channel, seen } = await open(t)
  const place = service.newPlace('direct')
  const files = [{ name: 'a.txt', content: Buffer.from('content'), mediaType: 'text/plain' }]
  service.say({ place, text: 'see', files })
  await waitUntil(() => seen.messages.length === 1)
  const [file] = seen.messages[0]?.files ?? []
  assert(file)
  assert.deepEqual([file.name, file.bytes, file.mediaType], ['a.txt', 7, 'text/plain'])
  assert.equal(Buffer.from(await channel.download(file, 100, signal)).toString(), 'content')
  await assert.rejects(channel.download(file, 3, signal), { code: 'too_large' })
  for (const ref of ['https://slack.com.evil.test/x', 'https://evilslack.com/x', 'http://files.slack.com/x', 'x'])
    await assert.rejects(channel.download({ ...file, ref }, 100, signal), { code: 'forbidden' })
  const sent = await channel.send({ place: place.id, text: 'here', nonce: 'n', files }, signal)
  assert(sent.type === 'sent')
  const [written] = service.written(place)
  assert.deepEqual([written?.id, written?.text, written?.files[0]?.name], [sent.messageId, 'here', 'a.txt'])
  service.failNextSend('lost_answer')
  const sinceMs = Date.now() - 1000
  assert.equal((await channel.send({ place: place.id, text: 'here', nonce: 'm', files }, signal)).type, 'unknown')
  const sought = { place: place.id, text: 'here', nonce: 'm', files, sinceMs, afterMessageId: sent.messageId }
  assert.equal(await channel.findSent?.(sought, signal), service.written(place)[1]?.id)
})

test('GW-12 GW-18 Slack: a good app is checked without a connection; each wrong one gets a sentence that says what to do', async (t) => {
  const service = await startSlack()
  t.after(() => service.close())
  const { token, apiUrl, appToken, world } = service
  const options = { token, settings: { app_token: appToken }, apiUrl, clock: systemClock, log: silentLog }
  const { account, steps } = await slackKind.check(options, signal)
  assert.deepEqual([account, service.isConnected()], [{ id: 'U0BOT', name: 'molecule' }, false])
  assert.match(steps.join(), /\/invite @molecule/)
  const refused = (expected: RegExp) => (error: Error & { code?: string }) => {
    assert.equal(error.code, 'bad_config')
    assert.match(error.message, expected)
    assert(!JSON.stringify([error.message, error.stack, error.cause]).includes('wrong-secret'))
    return true
  }
  const wrong: readonly (readonly [Partial<typeof options>, RegExp])[] = [
    [{ token: 'xoxb-wrong-secret-0' }, /refuses the bot token: .*xoxb-/],
    [{ token: appToken }, /refuses the bot token/],
    [{ token: 'wrong-secret with a line\nbreak' }, /refuses the bot token/],
    [{ settings: { app_token: 'xapp-wrong-secret-0' } }, /refuses the app token: .*connections:write/],
    [{ settings: { app_token: token } }, /refuses the app token/],
  ]
  for (const [change, sentence] of wrong)
    await assert.rejects(slackKind.check({ ...options, ...change }, signal), refused(sentence))
  world.scopes.delete('im:history')
  await assert.rejects(slackKind.check(options, signal), refused(/needs im:history: .*install the app again/))
  await service.close()
  await assert.rejects(slackKind.check(options, signal), { code: 'provider_unreachable', retryable: true })
})

test('GW-18 Slack: the connection is renewed when Slack asks for it, without a problem; a revoked token is reported', async (t) => {
  const { service, seen } = await open(t)
  const place = service.newPlace('direct')
  service.sockets.refresh()
  await waitUntil(() => seen.reconnections === 1)
  service.say({ place, text: 'after it' })
  await waitUntil(() => seen.messages.length === 1)
  assert.deepEqual(seen.problems, [undefined])
  service.world.isTokenRevoked = true
  service.dropConnections()
  await waitUntil(() => seen.refusals.length === 1)
  assert.match(seen.refusals[0]?.message ?? '', /refuses the app token/)
})
