import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noticesIn, userId } from '../../../test/fakes/matrix/matrix.ts'
import { ADA, EVE, openMatrix, signal, textsOf } from '../../../test/fakes/matrix/open-matrix.ts'
import { waitUntil } from '../../../test/harness/wait.ts'
import { systemClock } from '../../clock.ts'
import { silentLog } from '../../log.ts'
import type { ButtonPress, IncomingReaction } from '../chat/channel.ts'
import { matrixKind } from './matrix.ts'

test('GW-6 Matrix: a send is repeated without a copy; limits, refusals and lost connections are told apart', async (t) => {
  const { service, connect } = await openMatrix(t)
  const { channel } = await connect()
  const place = service.newPlace('direct')
  const post = { place: place.id, text: 'hello', nonce: 'abc123' }
  service.failNextSend('lost_answer')
  assert.equal((await channel.send(post, signal)).type, 'unknown')
  const sought = { ...post, sinceMs: Date.now() - 60_000 }
  const [id] = service.written(place).map((written) => written.id)
  assert.equal(await channel.findSent?.(sought, signal), id)
  assert.equal(await channel.findSent?.({ ...sought, nonce: 'other' }, signal), undefined)
  assert.deepEqual(await channel.send(post, signal), { type: 'sent', messageId: id })
  assert.equal(service.written(place).length, 1)
  service.failNextSend('rate_limited')
  const limit = { type: 'failed', error: 'The homeserver asks to wait (rate limit).', retryAfterMs: 1000 }
  assert.deepEqual(await channel.send({ ...post, nonce: 'n2' }, signal), limit)
  service.failNextSend('server_error')
  assert.deepEqual(await channel.send({ ...post, nonce: 'n2' }, signal), {
    type: 'failed',
    error: 'The homeserver failed with 502.',
  })
  service.failNextSend('refused')
  const refused = await channel.send({ ...post, nonce: 'n2' }, signal)
  assert(refused.type === 'failed' && refused.final && /invite it/.test(refused.error))
  const gone = await channel.send({ ...post, place: '!gone:fake.test', nonce: 'n3' }, signal)
  assert(gone.type === 'failed' && gone.final && /no longer exists/.test(gone.error))
  service.world.setMember(place.id, { user: service.world.bot, membership: 'leave', sender: userId('1001') })
  assert.equal((await channel.send({ ...post, nonce: 'n4' }, signal)).type, 'failed')
  await service.close()
  // The connection that was kept may end under the first one.
  await channel.send({ ...post, nonce: 'n5' }, signal)
  const away = await channel.send({ ...post, nonce: 'n5' }, signal)
  assert(away.type === 'failed' && away.isUnsent)
})

test('GW-18 Matrix: files both ways; a post that stops half way goes on where it was', async (t) => {
  const { service, connect } = await openMatrix(t)
  const { channel, seen } = await connect()
  const place = service.newPlace('direct')
  service.say({ place, text: '', files: [{ name: 'a.txt', content: Buffer.from('content'), mediaType: 'text/plain' }] })
  service.say({ place, text: 'see', files: [{ name: 'b.txt', content: Buffer.from('b') }] })
  await waitUntil(() => seen.messages.length === 2)
  assert.deepEqual(textsOf(seen), ['', 'see'])
  const [file] = seen.messages[0]?.files ?? []
  assert(file)
  assert.deepEqual([file.name, file.bytes, file.mediaType], ['a.txt', 7, 'text/plain'])
  assert.equal(Buffer.from(await channel.download(file, 100, signal)).toString(), 'content')
  await assert.rejects(channel.download(file, 3, signal), { code: 'too_large' })
  await assert.rejects(channel.download({ ...file, ref: 'mxc://fake.test/gone' }, 9, signal), { retryable: true })
  for (const ref of ['http://169.254.169.254/', 'mxc://a/../b', `mxc://fake.test/${'a'.repeat(300)}`])
    await assert.rejects(channel.download({ ...file, ref }, 9, signal), { code: 'forbidden' })
  const files = ['1.md', '2.png'].map((name) => ({
    name,
    mediaType: name.endsWith('png') ? 'image/png' : 'text/markdown',
    content: Buffer.from(name),
  }))
  const post = { place: place.id, text: 'here', nonce: 'half', files }
  service.fail('half-0', { status: 429, code: 'M_LIMIT_EXCEEDED', retryAfterMs: 10 })
  assert.equal((await channel.send(post, signal)).type, 'failed')
  const sent = await channel.send(post, signal)
  assert(sent.type === 'sent')
  const [written, ...more] = service.written(place)
  assert.deepEqual([written?.id, written?.text, more], [sent.messageId, 'here', []])
  assert.deepEqual(
    written?.files.map(({ name }) => name),
    ['1.md', '2.png'],
  )
  assert.equal(service.calls.filter(({ path }) => path === '/media/v3/upload').length, 2)
  const sought = { ...post, sinceMs: Date.now() - 60_000 }
  assert.equal(await channel.findSent?.(sought, signal), sent.messageId)
  assert.equal(await channel.findSent?.({ ...sought, files: [...files, ...files] }, signal), undefined)
})

test('GW-9 Matrix: the choices of a prompt are reactions; a press counts after a restart; an edit removes them', async (t) => {
  const { service, connect } = await openMatrix(t)
  const presses: ButtonPress[] = []
  const reactions: IncomingReaction[] = []
  const press = async (given: ButtonPress) => {
    presses.push(given)
    await given.answer('noted')
  }
  const reacted = async (given: IncomingReaction) => void reactions.push(given)
  const first = await connect({ press, reacted })
  const place = service.newPlace('group')
  const buttons = [
    { id: 'ask-1.once', label: 'Allow once', style: 'good' },
    { id: 'ask-1.deny', label: 'Deny', style: 'bad' },
  ] as const
  const sent = await first.channel.send({ place: place.id, text: 'May it?', nonce: 'n', buttons }, signal)
  assert(sent.type === 'sent')
  const { messageId } = sent
  assert.match(service.written(place)[0]?.text ?? '', /^May it\?\n\nReact: 👍 Allow once {3}👎 Deny$/)
  const offered = () =>
    service.world
      .eventsOf(place.id)
      .filter(
        ({ type, sender, content }) => type === 'm.reaction' && sender === service.world.bot && content['m.relates_to'],
      )
      .map(({ content }) => content['m.relates_to']['key'])
  await waitUntil(() => offered().length === 2)
  assert.deepEqual(offered(), ['👍', '👎'])
  await first.channel.close()
  const { channel } = await connect({ press, reacted })
  service.react({ place, messageId, emoji: '👎🏽', author: EVE })
  await waitUntil(() => noticesIn(service, place.id).length === 1)
  assert.equal(await service.press({ place, messageId, label: 'Allow once', author: ADA }), 'noted')
  assert.deepEqual(
    presses.map((one) => [one.buttonId, one.messageId, one.author.id]),
    [
      ['ask-1.deny', messageId, userId('1002')],
      ['ask-1.once', messageId, userId('1001')],
    ],
  )
  assert.deepEqual(await channel.edit({ place: place.id, messageId, text: 'Denied.' }, signal), {
    type: 'sent',
    messageId,
  })
  await waitUntil(() => offered().length === 0)
  const [written] = service.written(place)
  assert.deepEqual([written?.text, written?.buttons, written?.edits], ['Denied.', [], 1])
  const three = ['a', 'b', 'c'].map((id) => ({ id, label: id, style: 'plain' }) as const)
  await channel.send({ place: place.id, text: 'Which?', nonce: 'm', buttons: three }, signal)
  await waitUntil(() => offered().length === 3)
  assert.deepEqual(offered(), ['1️⃣', '2️⃣', '3️⃣'])
  service.react({ place, messageId, emoji: '🛑', author: ADA })
  await waitUntil(() => reactions.length === 1)
  assert.deepEqual([reactions[0]?.emoji, reactions[0]?.messageId, reactions[0]?.place.id], ['🛑', messageId, place.id])
  service.fail('/send/m.room.message/', 'lost_request')
  assert.equal((await channel.edit({ place: place.id, messageId, text: 'x' }, signal)).type, 'failed')
})

test('GW-18 Matrix: a state replaces the one before, also after a restart, and typing is shown', async (t) => {
  const { service, connect } = await openMatrix(t)
  const { channel, seen } = await connect()
  const place = service.newPlace('direct')
  const messageId = service.say({ place, text: 'hello' })
  await waitUntil(() => seen.messages.length === 1)
  const shown = () =>
    service.world.eventsOf(place.id).filter(({ type, content }) => type === 'm.reaction' && content['m.relates_to'])
  for (const state of ['seen', 'running', 'waiting'] as const) {
    await channel.react({ place: place.id, messageId }, state)
    assert.deepEqual([service.reaction(place, messageId), shown().length], [state, 1])
  }
  await channel.typing(place.id)
  assert.equal(service.typings(place), 1)
  await channel.close()
  const later = await connect()
  for (const state of ['waiting', 'done'] as const) {
    await later.channel.react({ place: place.id, messageId }, state)
    assert.deepEqual([service.reaction(place, messageId), shown().length], [state, 1])
  }
})

test('GW-12 Matrix: a check names the bot; a wrong token or address is a sentence that says what to do', async (t) => {
  const { service } = await openMatrix(t)
  const { token, apiUrl } = service
  const options = { token, apiUrl: `${apiUrl}/`, clock: systemClock, log: silentLog }
  const { account, steps } = await matrixKind.check(options, signal)
  assert.deepEqual(account, { id: '@molecule:fake.test', name: 'Molecule' })
  assert.match(steps.join(), /Invite @molecule:fake\.test/)
  for (const wrong of ['', 'secret', 'sec\nret', 'sec ret'])
    await assert.rejects(matrixKind.check({ ...options, token: wrong }, signal), {
      code: 'bad_config',
      message: /log in again/,
    })
  await assert.rejects(matrixKind.check({ ...options, apiUrl: undefined }, signal), {
    code: 'bad_config',
    message: /--service-url/,
  })
  await assert.rejects(matrixKind.check({ ...options, apiUrl: `${apiUrl}/elsewhere` }, signal), {
    code: 'bad_config',
    message: /no Matrix homeserver/,
  })
  await service.close()
  await assert.rejects(matrixKind.check(options, signal), { code: 'provider_unreachable', retryable: true })
})

test('GW-18 Matrix: a log-in asks for the password as a secret, and gives the token and the address', async (t) => {
  const { service } = await openMatrix(t)
  const asked: [text: string, isSecret: boolean][] = []
  const logIn = (password: string) => {
    const answers = [service.apiUrl, 'molecule', password]
    const ask = async ({ text, isSecret }: { readonly text: string; readonly isSecret: boolean }) => {
      asked.push([text, isSecret])
      return answers[asked.length - 1] ?? ''
    }
    asked.length = 0
    return matrixKind.logIn?.({ ask }, signal)
  }
  const loggedIn = await logIn(service.world.password)
  assert.deepEqual(loggedIn, { token: service.token, apiUrl: service.apiUrl })
  assert.deepEqual(
    asked.map(([, isSecret]) => isSecret),
    [false, false, true],
  )
  await assert.rejects(
    async () => await logIn('wrong'),
    (error: Error & { code?: string }) => {
      assert(!JSON.stringify([error.message, error.stack]).includes('wrong'))
      return error.code === 'bad_config' && /check both/.test(error.message)
    },
  )
})
