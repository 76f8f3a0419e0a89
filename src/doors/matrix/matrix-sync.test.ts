import assert from 'node:assert/strict'
import { mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { noticesIn, userId } from '../../../test/fakes/matrix/matrix.ts'
import { ADA, EVE, openMatrix, signal, textsOf } from '../../../test/fakes/matrix/open-matrix.ts'
import { waitUntil } from '../../../test/harness/wait.ts'
import type { IncomingMessage } from '../chat/channel.ts'

test('GW-18 Matrix: direct chats, groups by mention or reply, threads, and commands that clients do not swallow', async (t) => {
  const { service, connect } = await openMatrix(t)
  const { channel, seen, account } = await connect()
  assert.deepEqual(account, { id: '@molecule:fake.test', name: 'Molecule' })
  const direct = service.newPlace('direct')
  const group = service.newPlace('group')
  const sent = await channel.send({ place: group.id, text: 'an answer', nonce: 'n1' }, signal)
  assert(sent.type === 'sent')
  service.say({ place: direct, text: 'hello' })
  service.say({ place: group, text: 'not for the bot' })
  service.say({ place: group, text: '!new now', mentions: true })
  const relation = { 'm.relates_to': { 'm.in_reply_to': { event_id: sent.messageId } } }
  const reply = { msgtype: 'm.text', body: '> <@molecule:fake.test> an answer\n\nand?', 'm.mentions': {}, ...relation }
  service.world.add(group.id, { type: 'm.room.message', sender: userId('1001'), content: reply })
  const old = { msgtype: 'm.text', body: 'so, molecule, what is it' }
  service.world.add(group.id, { type: 'm.room.message', sender: userId('1001'), content: old })
  const thread = service.newPlace('thread', group)
  service.say({ place: thread, text: 'in the thread' })
  await waitUntil(() => seen.messages.length === 7)
  const known = seen.messages.filter(({ author }) => !author.isBot)
  assert.deepEqual(
    known.map(({ text, isAddressed, place }) => [text, isAddressed, place.id]).sort(),
    [
      ['hello', true, direct.id],
      ['not for the bot', false, group.id],
      ['/new now', true, group.id],
      ['and?', true, group.id],
      ['so, molecule, what is it', true, group.id],
      ['in the thread', false, thread.id],
    ].sort(),
  )
  const replied = known.find(({ text }) => text === 'and?')
  const quoted = { messageId: sent.messageId, authorName: 'Molecule', isOwn: true, text: 'an answer' }
  assert.deepEqual(replied?.quoted, quoted)
  assert.deepEqual(known.find(({ text }) => text === 'in the thread')?.place, thread)
  assert.deepEqual(known[0]?.author, { ...ADA, id: userId('1001') })
  assert.equal(seen.messages.find(({ author }) => author.isBot)?.text, 'A thread begins here.')
  const below = await channel.send({ place: thread.id, text: 'there', replyTo: reply.body, nonce: 'n2' }, signal)
  assert.equal(below.type, 'failed', 'the fake refuses a reply to what is no event')
  assert.equal((await channel.send({ place: thread.id, text: 'there', nonce: 'n3' }, signal)).type, 'sent')
  assert.deepEqual(
    service.written(thread).map(({ text }) => text),
    ['there'],
  )
})

test('GW-18 Matrix: what cannot be stored is given again in order, and a restart goes on where the door has stored all', async (t) => {
  const { service, folder, connect } = await openMatrix(t)
  let isDown = true
  const tried: string[] = []
  const stored: string[] = []
  const { channel } = await connect({
    message: async ({ text }) => {
      tried.push(text)
      if (isDown) throw new Error('the store is down')
      stored.push(text)
    },
  })
  const place = service.newPlace('direct')
  for (const text of ['one', 'two', 'three']) service.say({ place, text })
  await waitUntil(() => tried.length > 1)
  assert.deepEqual([...new Set(tried)], ['one'])
  isDown = false
  await waitUntil(() => stored.length === 3)
  assert.deepEqual(stored, ['one', 'two', 'three'])
  const position = () => readFile(join(folder, 'matrix.json'), 'utf8').then((text) => JSON.parse(text).since)
  await waitUntil(async () => (await position()) === `s${service.world.stream.length}`, 'the position is stored')
  await channel.close()
  for (const text of ['four', 'five']) service.say({ place, text })
  const later = await connect()
  await waitUntil(() => later.seen.messages.length === 2)
  assert.deepEqual(textsOf(later.seen), ['four', 'five'])
  assert.deepEqual(
    later.seen.messages.map(({ isLive }) => isLive),
    [false, false],
  )
  service.say({ place, text: 'six' })
  await waitUntil(() => later.seen.messages.length === 3)
  assert.equal(later.seen.messages[2]?.isLive, true)
  const query = { place, limit: 10, afterMessageId: later.seen.messages[0]?.id ?? '' }
  assert.deepEqual(await later.channel.history?.(query, signal), [], 'the position gives what was missed')
})

test('GW-18 Matrix: more messages than one sync has are all read, in order; those before the invitation are not', async (t) => {
  const { service, connect } = await openMatrix(t)
  const first = await connect({ invited: async () => 'join' })
  await first.channel.close()
  const place = service.newPlace('direct')
  const said = Array.from({ length: 130 }, (_, n) => `message ${n}`)
  for (const text of said) service.say({ place, text })
  const roomId = service.invite(EVE)
  const late = { id: roomId, isDirect: true, name: 'Eve' }
  const { seen } = await connect({ invited: async () => 'join' })
  service.say({ place: late, author: EVE, text: 'hello' })
  await waitUntil(() => seen.messages.length === 131)
  assert.deepEqual(textsOf({ messages: seen.messages.filter((one) => one.place.id === place.id) }), said)
  assert.deepEqual(textsOf({ messages: seen.messages.filter((one) => one.place.id === roomId) }), ['hello'])
  const room = service.world.addRoom({ members: [userId('1001')] })
  service.say({ place: { ...late, id: room }, text: 'before the bot came' })
  service.world.setMember(room, { user: service.world.bot, membership: 'invite', sender: userId('1001') })
  service.say({ place: { ...late, id: room }, text: 'after the invitation' })
  await waitUntil(() => seen.messages.length === 132)
  assert.equal(seen.messages[131]?.text, 'after the invitation')
})

test('GW-18 Matrix: without a position, and with one that the homeserver does not know, the history is read', async (t) => {
  const { service, folder, connect } = await openMatrix(t)
  const place = service.newPlace('group')
  const [one] = ['one', 'two', 'three'].map((text) => service.say({ place, text }))
  const thread = service.newPlace('thread', place)
  service.say({ place: thread, text: 'in the thread' })
  const none = await connect({}, async () => await mkdtemp(join(folder, 'other-')))
  const query = { place, limit: 10, afterMessageId: one ?? '' }
  const missed = (await none.channel.history?.(query, signal)) ?? []
  assert.deepEqual(textsOf({ messages: missed }), ['two', 'three', 'A thread begins here.'])
  assert.equal(missed[0]?.isLive, false)
  const inThread = await none.channel.history?.({ place: thread, limit: 10, sinceMs: 0 }, signal)
  assert.deepEqual(textsOf({ messages: inThread ?? [] }), ['in the thread'])
  const state = { userId: service.world.bot, since: 's999999', atMs: Date.now() }
  await writeFile(join(folder, 'matrix.json'), JSON.stringify(state))
  const lost = await connect()
  await waitUntil(() => lost.seen.gaps === 1)
  assert.equal((await lost.channel.history?.(query, signal))?.length, 3)
  service.say({ place, text: 'and on' })
  await waitUntil(() => lost.seen.messages.length === 1)
  await writeFile(join(folder, 'matrix.json'), 'half of a fi')
  assert.equal((await connect()).seen.refusals.length, 0)
})

test('GW-16 Matrix: edits of the author and removals reach the door, edits of other people do not', async (t) => {
  const { service, connect } = await openMatrix(t)
  const edited: IncomingMessage[] = []
  const deleted: string[] = []
  const { seen } = await connect({
    edited: async (message) => void edited.push(message),
    deleted: async ({ messageId }) => void deleted.push(messageId),
  })
  const place = service.newPlace('direct')
  const id = service.say({ place, text: 'helo' })
  const edit = (sender: string, body: string) => {
    const content = {
      msgtype: 'm.text',
      body: `* ${body}`,
      'm.new_content': { msgtype: 'm.text', body },
      'm.relates_to': { rel_type: 'm.replace', event_id: id },
    }
    service.world.add(place.id, { type: 'm.room.message', sender: userId(sender), content })
  }
  await waitUntil(() => seen.messages.length === 1)
  edit('1002', 'rm -rf /')
  edit('1001', 'hello')
  await waitUntil(() => edited.length === 1)
  service.world.redact(place.id, id, userId('1001'))
  await waitUntil(() => deleted.length === 1)
  assert.deepEqual(
    edited.map((message) => [message.id, message.text]),
    [[id, 'hello']],
  )
  assert.deepEqual([deleted, seen.messages.length], [[id], 1])
})

test('GW-18 Matrix: an encrypted room is told once that the bot cannot read there, also over a restart', async (t) => {
  const { service, connect } = await openMatrix(t)
  const { channel } = await connect()
  const room = service.world.addRoom({ members: [service.world.bot, userId('1001')], isEncrypted: true })
  const speak = () =>
    service.world.add(room, { type: 'm.room.encrypted', sender: userId('1001'), content: { ciphertext: 'x' } })
  speak()
  await waitUntil(() => noticesIn(service, room).length === 1)
  assert.match(
    noticesIn(service, room)[0]?.content['body'],
    /cannot read encrypted rooms\. Make a room without encryption/,
  )
  const refused = await channel.send({ place: room, text: 'secret', nonce: 'n' }, signal)
  assert(refused.type === 'failed' && refused.final && /encrypted/.test(refused.error))
  await channel.close()
  const { seen } = await connect()
  speak()
  const place = service.newPlace('direct')
  service.say({ place, text: 'marker' })
  await waitUntil(() => seen.messages.length === 1)
  assert.equal(noticesIn(service, room).length, 1)
})

test('GW-4 Matrix: the bot joins for people who are let in; others wait and are named, until the owner decides', async (t) => {
  const { service, connect } = await openMatrix(t)
  const decisions: Record<string, 'join' | 'wait' | 'leave'> = { [userId('1001')]: 'join' }
  const { seen } = await connect({ invited: async ({ id }) => decisions[id] ?? 'wait' })
  const [friend, stranger] = [service.invite(ADA), service.invite(EVE)]
  await waitUntil(() => service.world.membership(friend) === 'join')
  await waitUntil(() => seen.problems.some((sentence) => sentence?.includes('@1002:fake.test invited the bot')))
  assert.equal(service.world.membership(stranger), 'invite')
  decisions[userId('1002')] = 'leave'
  // The next sync asks again.
  service.newPlace('direct')
  await waitUntil(() => service.world.membership(stranger) === 'leave')
  await waitUntil(() => seen.problems.at(-1) === undefined)
})

test('GW-12 Matrix: a room that is upgraded keeps its binding, if the new room says that it follows it', async (t) => {
  const { service, connect } = await openMatrix(t)
  const moves: string[][] = []
  await connect({ moved: async (...move) => void moves.push(move) })
  const [old, other] = [service.newPlace('group'), service.newPlace('group')]
  const next = service.world.addRoom({ members: [userId('1001')], before: old.id })
  const upgrade = (roomId: string) =>
    service.world.add(roomId, {
      type: 'm.room.tombstone',
      sender: userId('1001'),
      state_key: '',
      content: { replacement_room: next },
    })
  upgrade(other.id)
  upgrade(old.id)
  await waitUntil(() => moves.length > 0)
  assert.deepEqual(moves, [[old.id, next]])
})

test('GW-18 Matrix: a homeserver that fails is a problem that ends by itself; a refused token is one that does not', async (t) => {
  const { service, connect } = await openMatrix(t)
  const { seen } = await connect()
  await waitUntil(service.isConnected)
  const place = service.newPlace('direct')
  service.fail('GET client/v3/sync', 'html_502')
  service.dropConnections()
  service.say({ place, text: 'still there' })
  await waitUntil(() => seen.messages.length === 1)
  await waitUntil(() => seen.problems.length > 1 && seen.problems.at(-1) === undefined)
  service.fail('GET client/v3/sync', { status: 401, code: 'M_UNKNOWN_TOKEN' })
  service.dropConnections()
  await waitUntil(() => seen.refusals.length === 1)
  assert.match(seen.refusals[0]?.message ?? '', /log in again/)
})
