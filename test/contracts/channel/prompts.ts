/** Part of the channel contract: what owners are asked in a chat, where they read it, and how they answer. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Author, Place } from '../../../src/doors/chat/channel.ts'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../../fakes/agents/fake-program.ts'
import { waitUntil } from '../../harness/wait.ts'
import { ADA, type ChannelUnderTest, EVE, type OpenChat, openChat } from './open-chat.ts'

const BOB: Author = { id: '1003', name: 'Bob', isBot: false }

export function channelPromptTests(under: ChannelUnderTest): void {
  const { personId = (id: string) => id } = under
  /** Its agent asks for a permission at "!ask <command>". */
  const openAsking = (t: TestContext) => {
    const { path: bin } = createFakeProgram('claude')
    return openChat(t, under, { workspace: { runtime: 'claude-code', runtime_config: { bin } }, env: CLAUDE_LOGGED_IN })
  }
  const messageWith = (chat: OpenChat, place: Place, text: string | RegExp) =>
    chat.service.written(place).find((message) => new RegExp(text).test(message.text))
  const shown = async (chat: OpenChat, place: Place, text: string | RegExp) => {
    const what = () => `${text} in ${JSON.stringify(chat.service.written(place))}`
    await waitUntil(() => messageWith(chat, place, text) !== undefined, what)
    const message = messageWith(chat, place, text)
    assert.ok(message)
    return message
  }
  const prompt = async (chat: OpenChat, place: Place, text: string | RegExp) => {
    const what = () => `buttons in ${JSON.stringify(chat.service.written(place))}`
    await waitUntil(() => (messageWith(chat, place, text)?.buttons.length ?? 0) > 0, what)
    return await shown(chat, place, text)
  }
  /** Makes the person an owner who has a direct chat with the bot. */
  const ownerIn = async (chat: OpenChat, owner: Author) => {
    await chat.makeOwner(owner)
    const place = chat.service.newPlace('direct')
    chat.service.say({ place, author: owner, text: '/where' })
    await shown(chat, place, 'you are')
    return place
  }
  /** The ids of the messages with the prompts are stored: a reaction and a command count from then on. */
  const settled = async (chat: OpenChat) => {
    const isSent = async () => {
      const stories = (await chat.tasks()).map(({ id }) => chat.platform.request('GET', `/messages/${id}/story`))
      const deliveries = (await Promise.all(stories)).flatMap(({ body }) => body.deliveries)
      return deliveries.length > 0 && deliveries.every(({ state }) => state === 'sent')
    }
    await waitUntil(isSent, 'all prompts have surely arrived')
  }
  const hasRun = (chat: OpenChat, place: Place, command: string) =>
    waitUntil(
      () => chat.texts(place).some((text) => text.startsWith('ran ') && text.includes(command)),
      () => `${command} has run; ${JSON.stringify(chat.texts(place))}`,
    )
  const pairing = async (chat: OpenChat, { id }: Author) => {
    const { pairings } = (await chat.platform.request('GET', '/pairings')).body
    return pairings.find(({ person }: { person: string }) => person === personId(id))
  }

  test('GW-14 GW-9 a permission for a person who is no owner is asked in the direct chats of the owners; the person reads how it ended', async (t) => {
    const chat = await openAsking(t)
    const owners = await ownerIn(chat, EVE)
    const place = chat.service.newPlace('direct')
    chat.service.say({ place, author: ADA, text: '!ask rm -rf build' })
    const asked = await prompt(chat, owners, 'rm -rf build')
    assert.deepEqual(asked.buttons, ['Allow once', 'Always', 'Deny'])
    assert.match(asked.text, /^May the agent .*echo.* in a direct chat/)
    const notice = await shown(chat, place, /^The agent waits: an owner of this bot must allow it to use /)
    assert.deepEqual(notice.buttons, [])
    assert.doesNotMatch(chat.texts(place).join(), /rm -rf build/)
    const press = (author: Author) =>
      chat.service.press({ place: owners, messageId: asked.id, label: 'Allow once', author })
    assert.match(await press(ADA), /Only an owner/)
    assert.match(await press(EVE), /Allowed once/)
    await hasRun(chat, place, 'rm -rf build')
    for (const there of [place, owners]) await shown(chat, there, /Allowed once by Eve/)
    assert.deepEqual((await shown(chat, owners, 'rm -rf build')).buttons, [])
    assert.equal(chat.texts(owners).filter((text) => /rm -rf build/.test(text)).length, 1)
  })

  test('GW-14 an owner who appears after a permission and a stranger gets both, also over a restart; each is asked once', async (t) => {
    const chat = await openAsking(t)
    const [place, strangers] = [chat.service.newPlace('direct'), chat.service.newPlace('direct')]
    chat.service.say({ place: strangers, author: BOB, text: 'let me in' })
    await shown(chat, strangers, 'I do not know you')
    chat.service.say({ place, author: ADA, text: '!ask make one' })
    assert.deepEqual((await shown(chat, place, /no owner has a chat with me yet/)).buttons, [])
    assert.equal(chat.texts(place).length, 1)
    await chat.makeOwner(ADA)
    assert.deepEqual((await prompt(chat, place, 'make one')).buttons, ['Allow once', 'Always', 'Deny'])
    assert.deepEqual((await prompt(chat, place, /Bob.* wants to talk/)).buttons, ['Allow', 'Ignore'])
    assert.equal(await chat.platform.stop(), 0)
    await chat.start()
    // The turn is asked again after the restart; the stranger waits as before.
    const later = chat.service.newPlace('direct')
    await chat.makeOwner(EVE)
    chat.service.say({ place: later, author: EVE, text: '/where' })
    const { id } = await prompt(chat, later, /Bob.* wants to talk/)
    assert.match(await chat.service.press({ place: later, messageId: id, label: 'Ignore', author: EVE }), /Ignored/)
    await shown(chat, place, /wants to talk[\s\S]*Ignored by Eve/)
    assert.equal(chat.texts(place).filter((text) => /wants to talk/.test(text)).length, 1)
  })

  test('GW-14 GW-4 an owner lets a stranger in from the chat, as a user; only an owner may press, and nothing is asked twice', async (t) => {
    const chat = await openChat(t, under)
    const owners = await ownerIn(chat, ADA)
    const place = chat.service.newPlace('direct')
    chat.service.say({ place, author: EVE, text: 'let me in' })
    const asked = await prompt(chat, owners, /Eve.* wants to talk/)
    assert.deepEqual(asked.buttons, ['Allow', 'Ignore'])
    const { code } = await pairing(chat, EVE)
    assert.ok(asked.text.includes(code), asked.text)
    const press = (author: Author) => chat.service.press({ place: owners, messageId: asked.id, label: 'Allow', author })
    assert.match(await press(EVE), /Only an owner/)
    assert.equal((await pairing(chat, EVE)).state, 'pending')
    assert.match(await press(ADA), /^Allowed$/)
    await shown(chat, place, 'echo let me in')
    const { state, role, decided_by } = await pairing(chat, EVE)
    assert.deepEqual([state, role], ['approved', 'user'])
    assert.match(decided_by, /^Ada in /)
    assert.match((await shown(chat, owners, /wants to talk/)).text, /Allowed by Ada/)
    assert.deepEqual((await shown(chat, owners, /wants to talk/)).buttons, [])
    assert.match(await press(ADA), /over/)
    assert.equal(chat.texts(owners).filter((text) => /wants to talk/.test(text)).length, 1)
  })

  test('GW-14 GW-4 a stranger who is let in or denied elsewhere closes the prompt', async (t) => {
    const chat = await openChat(t, under)
    const owners = await ownerIn(chat, ADA)
    for (const [author, decision, end] of [
      [EVE, 'approve', /Eve.* wants to talk[\s\S]*(Allowed by admin|This is over)/],
      [BOB, 'deny', /Bob.* wants to talk[\s\S]*(Ignored by admin|This is over)/],
    ] as const) {
      chat.service.say({ place: chat.service.newPlace('direct'), author, text: 'let me in' })
      await prompt(chat, owners, `${author.name}.* wants to talk`)
      await chat.platform.request('POST', `/pairings/${(await pairing(chat, author)).code}/${decision}`)
      assert.deepEqual((await shown(chat, owners, end)).buttons, [])
    }
  })

  test('GW-14 a prompt about a stranger that may not have arrived is a need until the stranger is let in', async (t) => {
    const chat = await openChat(t, under)
    const [place, owners] = [chat.service.newPlace('direct'), chat.service.newPlace('direct')]
    chat.service.say({ place: owners, author: ADA, text: 'hello' })
    chat.service.say({ place, author: EVE, text: 'let me in' })
    await shown(chat, owners, 'echo hello')
    await shown(chat, place, 'I do not know you')
    chat.service.failNextSend('lost_answer')
    await chat.makeOwner(ADA)
    await prompt(chat, owners, /Eve.* wants to talk/)
    const needs = async () => (await chat.platform.request('GET', '/needs-you')).body.needs_you as { kind: string }[]
    const kinds = async () => (await needs()).map(({ kind }) => kind).join()
    const expected = under.dropsCopies ? 'pairing' : 'delivery,pairing'
    await waitUntil(async () => (await kinds()) === expected, expected)
    await chat.platform.request('POST', `/pairings/${(await pairing(chat, EVE)).code}/approve`)
    await waitUntil(async () => (await kinds()) === '', 'nothing is left to decide')
    await shown(chat, place, 'echo let me in')
  })

  test('GW-14 a stranger who wrote before a kill is asked about once after it, and a service that fails gets it later', async (t) => {
    const chat = await openChat(t, under)
    const place = chat.service.newPlace('direct')
    chat.service.say({ place, author: EVE, text: 'let me in' })
    await waitUntil(async () => (await pairing(chat, EVE))?.held === 1, 'the message is held')
    await chat.platform.stop('SIGKILL')
    await chat.start()
    for (let n = 0; n < 2; n++) chat.service.failNextSend('server_error')
    // Not before the kill: what was being sent then may have arrived, and only a person sends it again.
    const owners = await ownerIn(chat, ADA)
    const { id } = await prompt(chat, owners, /Eve.* wants to talk/)
    await shown(chat, place, 'I do not know you')
    assert.match(await chat.service.press({ place: owners, messageId: id, label: 'Allow', author: ADA }), /Allowed/)
    await shown(chat, place, 'echo let me in')
    assert.equal(chat.texts(owners).filter((text) => /wants to talk/.test(text)).length, 1)
  })

  test('GW-14 GW-9 a reaction of an owner answers: 👍 allows once, 👎 denies; of another person it changes nothing', async (t) => {
    const chat = await openAsking(t)
    await chat.makeOwner(ADA)
    // A service may not say in which thread the message of a reaction is.
    const place = chat.service.newPlace('thread', chat.service.newPlace('group'))
    const say = (text: string) => chat.service.say({ place, author: ADA, text, mentions: true })
    say('!ask make test')
    const first = await prompt(chat, place, 'make test')
    const react = (messageId: string, emoji: '👍' | '👎', author: Author) =>
      chat.service.react({ place, messageId, emoji, author })
    await settled(chat)
    react(first.id, '👍', EVE)
    react(first.id, '👍', ADA)
    await shown(chat, place, /make test[\s\S]*Allowed once by/)
    await hasRun(chat, place, 'make test')
    const stories = async () =>
      (await chat.platform.request('GET', `/messages/${(await chat.tasks())[0]?.id}/story`)).body
    assert.doesNotMatch(JSON.stringify(await stories()), /Eve/)
    say('!ask rm -rf build')
    const second = await prompt(chat, place, 'rm -rf build')
    await settled(chat)
    // The prompt before is over: its message means nothing any more.
    react(first.id, '👍', ADA)
    react(second.id, '👎', ADA)
    await shown(chat, place, /rm -rf build[\s\S]*Denied by/)
    assert.deepEqual(
      chat.texts(place).filter((text) => /^ran .*rm -rf/.test(text)),
      [],
    )
  })

  test('GW-14 GW-9 where a long request is not shown, 👍 and /approve do not count, and 👎 does', async (t) => {
    const chat = await openAsking(t)
    await chat.makeOwner(ADA)
    chat.service.denyRights()
    const place = chat.service.newPlace('direct')
    chat.service.say({ place, author: ADA, text: `!ask echo ${'long '.repeat(600)}end` })
    const asked = await prompt(chat, place, /Not sent, because this chat does not take files: request.txt/)
    await settled(chat)
    assert.deepEqual(asked.buttons, ['Deny'])
    chat.service.react({ place, messageId: asked.id, emoji: '👍', author: ADA })
    await shown(chat, place, /does not offer that answer/)
    assert.match(await chat.service.command({ place, author: ADA, name: 'approve' }), /does not offer that answer/)
    chat.service.react({ place, messageId: asked.id, emoji: '👎', author: ADA })
    await shown(chat, place, /what is in request.txt[\s\S]*Denied by/)
    assert.deepEqual(
      chat.texts(place).filter((text) => text.startsWith('ran ')),
      [],
    )
  })

  test('GW-14 GW-7 🛑 on a message stops its task and no other, for people who may use /stop', async (t) => {
    const chat = await openChat(t, under, { cmd: 'read text; [ "$text" = done ] || sleep 300; echo "$text"' })
    await chat.platform.request('PATCH', `/workspaces/${chat.workspaceId}`, { max_concurrent: 2 })
    const place = chat.service.newPlace('group')
    const say = (text: string) => chat.service.say({ place, author: ADA, text, mentions: true })
    const [first, second] = [say('wait'), say('wait too')]
    await waitUntil(() => chat.service.reaction(place, first) === 'running', 'the first message runs')
    chat.service.react({ place, messageId: first, emoji: '🛑', author: EVE })
    chat.service.react({ place, messageId: second, emoji: '👍', author: ADA })
    assert.match(await chat.service.command({ place, author: ADA, name: 'where' }), /you are/)
    assert.equal(chat.service.reaction(place, first), 'running')
    chat.service.react({ place, messageId: first, emoji: '🛑', author: ADA })
    await waitUntil(() => chat.service.reaction(place, first) === 'failed', 'the first message has ended')
    await waitUntil(() => chat.service.reaction(place, second) === 'running', 'the second message runs')
  })

  test('GW-14 GW-7 /approve and /deny answer the one open request of a chat, or name those that are open; for owners only', async (t) => {
    const chat = await openAsking(t)
    await chat.makeOwner(ADA)
    const place = chat.service.newPlace('group')
    const command = (name: string, author = ADA, argument?: string) =>
      chat.service.command({ place, author, name, ...(argument !== undefined && { argument }) })
    assert.match(await command('approve'), /Nothing in this chat waits/)
    chat.service.say({ place, author: ADA, text: '!ask make one', mentions: true })
    await prompt(chat, place, 'make one')
    await settled(chat)
    assert.match(await command('approve', ADA, 'zzzz'), /No request of this chat has this id[\s\S]*make one/)
    await chat.platform.request('POST', `/pairings/${encodeURIComponent(`${under.kind}/${personId(EVE.id)}`)}/approve`)
    assert.match(await command('approve', EVE), /only an owner/)
    assert.match(await command('approve'), /^Allowed once/)
    await hasRun(chat, place, 'make one')
    // A thread of a group is a chat of its own; two strangers make two requests in the chat of the owner.
    const owners = await ownerIn(chat, ADA)
    for (const author of [BOB, { ...BOB, id: '1004', name: 'Cid' }]) {
      chat.service.say({ place: chat.service.newPlace('direct'), author, text: 'let me in' })
      await prompt(chat, owners, `${author.name}.* wants to talk`)
    }
    const answer = (argument?: string) =>
      chat.service.command({ place: owners, author: ADA, name: 'deny', ...(argument && { argument }) })
    const said = await answer()
    assert.match(said, /Several requests of this chat wait/)
    const [, id = ''] = /(\w{4,26})\W{1,20}Cid/.exec(said) ?? []
    const answerShown = async (argument?: string) => {
      // The id of its message is stored a moment after it was written.
      for (let text = await answer(argument); ; text = await answer(argument))
        if (!/may not have arrived/.test(text)) return text
    }
    assert.match(await answerShown(id), /^Ignored/)
    assert.equal((await pairing(chat, BOB)).state, 'pending')
    assert.match(await answerShown(), /^Ignored/)
    assert.equal((await pairing(chat, BOB)).state, 'denied')
  })

  test('GW-14 GW-9 a command is shown exactly, with its backticks and marks', async (t) => {
    const chat = await openAsking(t)
    await chat.makeOwner(ADA)
    const place = chat.service.newPlace('direct')
    const command = 'echo `date` ``x`` *a* _b_ **c** [d](e) <b>&amp; \\n $(id) > "f"'
    chat.service.say({ place, author: ADA, text: `!ask ${command}` })
    const asked = await prompt(chat, place, 'May the agent')
    assert.ok(asked.text.includes(command), asked.text)
    assert.equal(asked.files.length, 0)
  })
}
