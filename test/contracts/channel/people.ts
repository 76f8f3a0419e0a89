/** Part of the channel contract: who is answered, other bots, and permissions. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../../fakes/agents/fake-program.ts'
import { getTask, sendWithoutWaiting } from '../../harness/platform.ts'
import { waitUntil } from '../../harness/wait.ts'
import { ADA, BOT, type ChannelUnderTest, type ChatOptions, EVE, openChat } from './open-chat.ts'

const HOUR_MS = 3600_000

export function channelPeopleTests(under: ChannelUnderTest): void {
  const open = (t: TestContext, options?: ChatOptions) => openChat(t, under, options)

  test('GW-4 GW-9 CV-6 a stranger gets a code and runs nothing, and needs the owner; once approved, the held message is answered, also over a restart', async (t) => {
    const chat = await open(t)
    const place = chat.service.newPlace('direct')
    chat.service.say({ place, author: EVE, text: 'let me in' })
    const [text = ''] = await chat.answers(place, 1)
    const { body } = await chat.platform.request('GET', '/pairings')
    const [{ code, held, state }] = body.pairings
    assert.deepEqual([held, state], [1, 'pending'])
    assert.ok(text.includes(code), text)
    assert.deepEqual(await chat.tasks(), [])
    await chat.platform.stop()
    await chat.start()
    assert.deepEqual(await chat.tasks(), [])
    const readNeeds = async () => (await chat.platform.request('GET', '/needs-you')).body
    const { needs_you: needs, count } = await readNeeds()
    assert.deepEqual([count, needs[0].kind, needs[0].id, needs[0].to], [1, 'pairing', code, under.kind])
    assert.match(needs[0].reason, /wants to talk to the bot ".+"; 1 message is held$/)
    const [approve, refuse] = needs[0].actions
    assert.deepEqual([approve.name, refuse.path], ['approve', `/pairings/${code}/deny`])
    assert.equal((await chat.platform.request('POST', approve.path)).status, 200)
    assert.equal((await readNeeds()).count, 0)
    assert.deepEqual((await chat.answers(place, 2)).slice(1), ['echo let me in'])
    chat.service.say({ place, author: EVE, text: 'thanks' })
    assert.deepEqual((await chat.answers(place, 3)).slice(2), ['echo thanks'])
  })

  test('GW-4 a kill before the code of a stranger was sent: the next start sends it, and the message stays held', async (t) => {
    const chat = await open(t)
    const place = chat.service.newPlace('direct')
    chat.service.keepLimits(HOUR_MS)
    for (let n = 0; n < 12; n++) chat.service.say({ place, author: ADA, text: `fill ${n}` })
    // On Discord the first refusal is that of a reaction; the messages of a channel are over after five.
    const isFull = () => under.kind !== 'discord' || chat.texts(place).length >= 5
    await waitUntil(() => chat.service.refusals() > 0 && isFull(), 'the limit of the chat holds')
    const before = chat.texts(place).length
    chat.service.say({ place, author: EVE, text: 'hello' })
    const held = async () => (await chat.platform.request('GET', '/pairings')).body.pairings[0]?.held
    await waitUntil(async () => (await held()) === 1, 'the message is held')
    assert.ok(
      !chat
        .texts(place)
        .slice(before)
        .some((text) => /I do not know you/.test(text)),
    )
    await chat.platform.stop('SIGKILL')
    chat.service.keepLimits(1)
    await chat.start()
    await waitUntil(() => chat.texts(place).some((text) => /I do not know you/.test(text)), 'the code')
    assert.equal(await held(), 1)
    assert.equal(chat.texts(place).filter((text) => /I do not know you/.test(text)).length, 1)
  })

  test('GW-4 bots are ignored unless allowed; two bots in one channel stop at the loop guard, which says so once', async (t) => {
    const chat = await open(t, { channel: { allowed_bots: [BOT.id] } })
    const place = chat.service.newPlace('group')
    chat.service.say({ place, author: { ...BOT, id: '2003' }, text: 'not allowed', mentions: true })
    for (let index = 1; index <= 8; index++) {
      chat.service.say({ place, author: BOT, text: `bot ${index}`, mentions: true })
      await chat.answers(place, Math.min(index, 6))
    }
    chat.service.say({ place, author: ADA, text: 'a person', mentions: true })
    const texts = await chat.answers(place, 7)
    assert.deepEqual(
      texts.slice(0, 5),
      [1, 2, 3, 4, 5].map((index) => `echo bot ${index}`),
    )
    assert.match(texts[5] ?? '', /I stop here/)
    assert.deepEqual(texts.slice(6), ['echo a person'])
  })

  test('GW-9 a permission appears as buttons; only an owner may press, and the answer counts once', async (t) => {
    const { path: bin } = createFakeProgram('claude')
    const workspace = { runtime: 'claude-code', runtime_config: { bin } }
    const chat = await open(t, { workspace, env: CLAUDE_LOGGED_IN })
    await chat.makeOwner(ADA)
    const place = chat.service.newPlace('direct')
    const id = chat.service.say({ place, author: ADA, text: '!ask rm -rf build' })
    const prompt = () => chat.service.written(place).find(({ text }) => text.includes('rm -rf build'))
    await waitUntil(
      () => (prompt()?.buttons.length ?? 0) > 0,
      () => `buttons in ${JSON.stringify(chat.service.written(place))}`,
    )
    assert.deepEqual(prompt()?.buttons, ['Allow once', 'Always', 'Deny'])
    assert.equal(chat.service.reaction(place, id), 'waiting')
    const press = (author: typeof ADA, label: string) =>
      chat.service.press({ place, messageId: prompt()?.id ?? '', label, author })
    assert.match(await press(EVE, 'Allow once'), /Only an owner/)
    assert.match(await press(ADA, 'Allow once'), /Allowed once/)
    await waitUntil(
      () => chat.texts(place).some((text) => /^ran .*rm -rf build/.test(text)),
      () => JSON.stringify(chat.texts(place)),
    )
    assert.deepEqual(prompt()?.buttons, [])
    assert.match(prompt()?.text ?? '', /Allowed once by/)
  })

  test('PL-30 GW-9 the prompt of a permission shows the hidden characters of its command', async (t) => {
    const { path: bin } = createFakeProgram('claude')
    const workspace = { runtime: 'claude-code', runtime_config: { bin } }
    const chat = await open(t, { workspace, env: CLAUDE_LOGGED_IN })
    await chat.makeOwner(ADA)
    const place = chat.service.newPlace('direct')
    chat.service.say({ place, author: ADA, text: '!ask rm -rf \u202etxt.a' })
    const prompt = () => chat.service.written(place).find(({ text }) => text.includes('rm -rf'))
    await waitUntil(
      () => prompt() !== undefined,
      () => `a prompt in ${JSON.stringify(chat.service.written(place))}`,
    )
    assert.match(prompt()?.text ?? '', /rm -rf \\+u202etxt\.a/)
    assert.doesNotMatch(prompt()?.text ?? '', /\u202e/)
  })

  test('GW-14 GW-9 a prompt whose answer is lost is a need of its owner until it is over', async (t) => {
    const { path: bin } = createFakeProgram('claude')
    const workspace = { runtime: 'claude-code', runtime_config: { bin } }
    const chat = await open(t, { workspace, env: CLAUDE_LOGGED_IN })
    await chat.makeOwner(ADA)
    const place = chat.service.newPlace('direct')
    chat.service.failNextSend('lost_answer')
    chat.service.say({ place, author: ADA, text: '!ask make one' })
    const needs = async () =>
      (await chat.platform.request('GET', '/needs-you')).body.needs_you.map(({ kind }: { kind: string }) => kind).sort()
    const expected = under.dropsCopies ? ['permission'] : ['delivery', 'permission']
    await waitUntil(
      async () => chat.service.written(place).length > 0 && String(await needs()) === String(expected),
      () => `${expected} in ${JSON.stringify(chat.service.written(place))}`,
    )
    const { needs_you } = (await chat.platform.request('GET', '/needs-you')).body
    const lost = needs_you.filter(({ kind }: { kind: string }) => kind === 'delivery')
    const name = `request to chat:${under.kind} may not have arrived`
    for (const { reason } of lost) assert.ok(reason.startsWith(`a ${name}`), reason)
    const activity = (await chat.platform.request('GET', `/workspaces/${chat.workspaceId}/activity`)).body
    assert.equal(JSON.stringify(activity).includes(`the ${name}`), lost.length > 0)
    const [pending] = (await chat.platform.request('GET', '/pending')).body.pending
    await chat.platform.request('POST', `/pending/${encodeURIComponent(pending.id)}`, { decision: 'deny' })
    await waitUntil(async () => (await needs()).length === 0, 'nothing is left to decide')
    const prompts = chat.service.written(place).filter(({ text }) => text.startsWith('May the agent'))
    assert.equal(prompts.length, 1)
  })

  test('GW-9 a long command, and one with a fence, is a file with the same buttons, and a press counts for it', async (t) => {
    const { path: bin } = createFakeProgram('claude')
    const workspace = { runtime: 'claude-code', runtime_config: { bin } }
    const chat = await open(t, { workspace, env: CLAUDE_LOGGED_IN })
    await chat.makeOwner(ADA)
    for (const command of [`echo ${'long '.repeat(600)}end`, 'echo ```js``` `x`']) {
      const place = chat.service.newPlace('direct')
      chat.service.say({ place, author: ADA, text: `!ask ${command}` })
      const prompt = () => chat.service.written(place).find(({ text }) => text.startsWith('May the agent'))
      await waitUntil(
        () => (prompt()?.buttons.length ?? 0) > 0,
        () => `buttons in ${JSON.stringify(chat.service.written(place))}`,
      )
      assert.equal(prompt()?.buttons[0], 'Allow once')
      const [file] = prompt()?.files ?? []
      assert.ok(
        Buffer.from(file?.content ?? [])
          .toString()
          .includes(command),
      )
      const press = { place, messageId: prompt()?.id ?? '', label: 'Allow once', author: ADA }
      assert.match(await chat.service.press(press), /Allowed once/)
      await waitUntil(() => chat.texts(place).some((text) => text.startsWith('ran ')), 'the command has run')
      await waitUntil(() => /Allowed once by/.test(prompt()?.text ?? ''), 'the prompt says how it ended')
      assert.deepEqual(prompt()?.buttons, [])
    }
  })

  test('GW-9 the buttons of a permission appear also behind open asks that fill a page of the list', async (t) => {
    const { path: bin } = createFakeProgram('claude')
    const workspace = { runtime: 'claude-code', runtime_config: { bin } }
    const chat = await open(t, { workspace, env: CLAUDE_LOGGED_IN })
    for (const letter of ['€', '‰']) {
      const taskId = await sendWithoutWaiting(chat.platform, chat.workspaceId, `!ask ${letter.repeat(200_000)}`)
      await waitUntil(async () => {
        const { status } = await getTask(chat.platform, chat.workspaceId, taskId)
        return status.state === 'TASK_STATE_AUTH_REQUIRED'
      }, 'the long ask waits')
    }
    const { pending, next } = (await chat.platform.request('GET', '/pending')).body
    assert.equal(pending.length, 1)
    assert.notEqual(next, undefined)
    await chat.makeOwner(ADA)
    const place = chat.service.newPlace('direct')
    chat.service.say({ place, author: ADA, text: '!ask make test' })
    const prompt = () => chat.service.written(place).find(({ text }) => text.includes('make test'))
    await waitUntil(() => (prompt()?.buttons.length ?? 0) > 0, 'the buttons')
  })

  test('GW-9 "always" makes a rule; a request that is answered elsewhere says that it is over', async (t) => {
    const { path: bin } = createFakeProgram('claude')
    const chat = await open(t, {
      workspace: { runtime: 'claude-code', runtime_config: { bin } },
      env: CLAUDE_LOGGED_IN,
    })
    await chat.makeOwner(ADA)
    const place = chat.service.newPlace('direct')
    const promptOf = (command: string) =>
      chat.service.written(place).find(({ text }) => text.includes(command) && text.startsWith('May the agent'))
    const ask = async (command: string) => {
      chat.service.say({ place, author: ADA, text: `!ask ${command}` })
      await waitUntil(() => (promptOf(command)?.buttons.length ?? 0) > 0, `buttons for ${command}`)
      return promptOf(command)?.id ?? ''
    }
    const ran = (command: string) =>
      chat.texts(place).filter((text) => text.startsWith('ran ') && text.includes(command))
    const always = { place, messageId: await ask('make test'), label: 'Always', author: ADA }
    assert.match(await chat.service.press(always), /Always allowed/)
    await waitUntil(() => ran('make test').length === 1, 'the command has run')
    chat.service.say({ place, author: ADA, text: '!ask make test' })
    await waitUntil(() => ran('make test').length === 2, 'the rule allows the second use')

    await ask('rm -rf build')
    const [pending] = (await chat.platform.request('GET', '/pending')).body.pending
    await chat.platform.request('POST', `/pending/${encodeURIComponent(pending.id)}`, { decision: 'deny' })
    await waitUntil(() => /This is over/.test(promptOf('rm -rf build')?.text ?? ''), 'the prompt says that it is over')
    assert.deepEqual(promptOf('rm -rf build')?.buttons, [])
    assert.deepEqual(ran('rm -rf build'), [])
  })

  test('GW-9 a kill while a permission waits: the turn runs again, and the buttons of the lost turn say that they are over', async (t) => {
    const { path: bin } = createFakeProgram('claude')
    const workspace = { runtime: 'claude-code', runtime_config: { bin } }
    const chat = await open(t, { workspace, env: CLAUDE_LOGGED_IN })
    await chat.makeOwner(ADA)
    const place = chat.service.newPlace('direct')
    chat.service.say({ place, author: ADA, text: '!ask rm -rf build' })
    const prompt = () => chat.service.written(place).find(({ text }) => text.startsWith('May the agent'))
    await waitUntil(() => (prompt()?.buttons.length ?? 0) > 0, 'the buttons')
    const press = { place, messageId: prompt()?.id ?? '', label: 'Deny', author: EVE }
    assert.match(await chat.service.press(press), /Only an owner/)
    // Each message is stored when it arrives, so before this answer the id of the message with the buttons was stored too.
    chat.service.say({ place, author: ADA, text: '/where' })
    const isAnswered = () => chat.service.written(place).some(({ text }) => text.includes('you are'))
    await waitUntil(isAnswered, 'the answer to /where')
    await chat.platform.stop('SIGKILL')
    await chat.start()
    const what = () => JSON.stringify(chat.service.written(place))
    await waitUntil(() => /This is over/.test(prompt()?.text ?? ''), what)
    assert.deepEqual(prompt()?.buttons, [])
  })
}
