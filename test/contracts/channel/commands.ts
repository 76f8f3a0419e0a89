/** Part of the channel contract: the commands of a chat. Each answers with one message, and only /retry runs a turn. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Author, Place } from '../../../src/doors/chat/channel.ts'
import { waitUntil } from '../../harness/wait.ts'
import { ADA, type ChannelUnderTest, type ChatOptions, EVE, type OpenChat, openChat } from './open-chat.ts'

export function channelCommandTests(under: ChannelUnderTest): void {
  const open = async (t: TestContext, options?: ChatOptions) => {
    const chat = await openChat(t, under, options)
    const place = chat.service.newPlace('direct')
    return { ...chat, place, command: commandIn(chat, place) }
  }

  test('GW-7 the commands of a chat: where, status, agents, new, stop, bind and unbind for owners only', async (t) => {
    const chat = await open(t, { cmd: 'read text; [ "$text" = wait ] && sleep 300; echo "$text"' })
    const { place, command } = chat
    assert.match(await command('where'), new RegExp(`echo.*answers here[\\s\\S]*${place.id}`))
    assert.match(await command('agents'), /echo/)
    assert.match(await command('status'), /online/)
    assert.match(await command('model'), /default model/)
    assert.match(await command('bind', 'echo'), /only an owner/)
    assert.match(await command('unbind'), /only an owner/)
    chat.service.say({ place, author: ADA, text: 'first' })
    await waitForText(chat, place, 'first')
    assert.match(await command('new'), /new conversation/i)
    const id = chat.service.say({ place, author: ADA, text: 'wait' })
    await waitUntil(() => chat.service.reaction(place, id) === 'running', 'the message runs')
    assert.match(await command('retry'), /not finished/)
    assert.match(await command('stop'), /Stopped/)
    await waitUntil(() => chat.service.reaction(place, id) === 'failed', 'the message is marked as ended')
    assert.match(await command('stop'), /Nothing runs/)
    assert.equal(new Set((await chat.tasks()).map(({ contextId }) => contextId)).size, 2)
    await chat.makeOwner(ADA)
    assert.match(await command('unbind'), /No agent is bound/)
    assert.match(await command('bind', 'echo'), /answers every message/)
    assert.match(await command('unbind'), /is unbound.*echo.*answers here/)
    const { body } = await chat.platform.request('GET', '/channels')
    assert.deepEqual(body.channels[0].bindings, [])
  })

  test('GW-7 GW-4 /start and /help cost no turn; a person who is not paired hears what to do, and nothing is held', async (t) => {
    const chat = await open(t)
    const asked = await commandIn(chat, chat.service.newPlace('direct'), EVE)('start')
    const { body } = await chat.platform.request('GET', '/pairings')
    const [{ code, held, state }] = body.pairings
    assert.deepEqual([held, state], [0, 'pending'])
    assert.ok(asked.includes(code), asked)
    const eve = chat.service.newPlace('direct')
    assert.ok((await commandIn(chat, eve, EVE)('help')).includes(code))
    assert.match(await commandIn(chat, eve, EVE)('usage'), /not paired with this bot yet/)
    assert.match(await chat.command('start'), /echo.*answers here/)
    const help = await chat.command('help')
    for (const name of ['new', 'sessions', 'retry', 'usage', 'help']) assert.ok(help.includes(`/${name}`), help)
    assert.ok(!help.includes('/unbind'), help)
    await chat.makeOwner(ADA)
    assert.match(await chat.command('help'), /\/unbind/)
    assert.deepEqual(await chat.tasks(), [])
    assert.equal((await chat.platform.request('POST', `/pairings/${code}/approve`)).status, 200)
    chat.service.say({ place: eve, author: EVE, text: 'hello' })
    await waitForText(chat, eve, 'echo hello')
    assert.equal((await chat.tasks()).length, 1)
  })

  test('GW-7 /retry runs the last message again when it failed or was stopped, once, and else says that there is none', async (t) => {
    const flag = join(tmpdir(), `molecule-retry-${randomUUID()}`)
    t.after(() => rm(flag, { force: true }))
    // Without the file it fails, or waits after "wait".
    const cmd = `read text; [ -e '${flag}' ] || { [ "$text" = wait ] && sleep 300; exit 3; }; echo "ran $text"`
    const workspace = { runtime: 'exec', runtime_config: { cmd }, max_attempts: 1 }
    const chat = await open(t, { workspace })
    const { place, command, service } = chat
    assert.match(await command('retry'), /no message to run again/)
    const failed = service.say({ place, author: ADA, text: 'one' })
    await waitUntil(() => service.reaction(place, failed) === 'failed', 'the message failed')
    const deadLetters = async () =>
      (await chat.platform.request('GET', `/workspaces/${chat.workspaceId}/dead-letters`)).body.dead_letters
    // A replay in the canvas, which fails too: its own dead letter is the last one then.
    const [first] = await deadLetters()
    const path = `/workspaces/${chat.workspaceId}/dead-letters/${first.id}/replay`
    assert.equal((await chat.platform.request('POST', path)).status, 200)
    await waitUntil(async () => {
      const [now] = await deadLetters()
      return now !== undefined && now.id !== first.id
    }, 'the replay failed')
    await writeFile(flag, '')
    assert.match(await command('retry'), /I run this again: one/)
    await waitForText(chat, place, 'ran one')
    assert.deepEqual(await deadLetters(), [])
    await waitUntil(async () => /was answered/.test(await command('retry')), 'the retry has ended')
    await rm(flag)
    const stopped = service.say({ place, author: ADA, text: 'wait' })
    await waitUntil(() => service.reaction(place, stopped) === 'running', 'the message runs')
    assert.match(await command('stop'), /Stopped/)
    await waitUntil(() => service.reaction(place, stopped) === 'failed', 'the message was stopped')
    await writeFile(flag, '')
    assert.match(await command('retry'), /I run this again: wait/)
    await waitForText(chat, place, 'ran wait')
    assert.equal((await chat.tasks()).length, 5)
    assert.equal(new Set((await chat.tasks()).map(({ contextId }) => contextId)).size, 1)
  })

  test('GW-7 /sessions lists the conversations of the chat and goes back to one; /usage says what is unknown', async (t) => {
    const chat = await open(t)
    const { place, command, service } = chat
    assert.match(await command('sessions'), /no conversation yet/)
    assert.match(await command('usage'), /echo.* today \(UTC\): no turn/)
    service.say({ place, author: ADA, text: 'about apples' })
    await waitForText(chat, place, 'echo about apples')
    await command('new')
    service.say({ place, author: ADA, text: 'about pears' })
    await waitForText(chat, place, 'echo about pears')
    const listed = await command('sessions')
    assert.match(listed, /1\.? .*about pears.*\(this one\)[\s\S]*2\.? .*about apples/)
    assert.match(await command('sessions', '7'), /no such conversation/)
    assert.match(await command('sessions', '2'), /goes on with.*about apples/)
    service.say({ place, author: ADA, text: 'and plums' })
    await waitForText(chat, place, 'echo and plums')
    const contexts = (await chat.tasks()).map(({ contextId }) => contextId)
    assert.equal(new Set(contexts).size, 2)
    assert.equal(contexts[0], contexts[2])
    assert.match(await command('usage'), /unknown|no turn has reported/)
    assert.equal((await chat.tasks()).length, 3)
  })

  test('GW-7 the answer of a command is one message: the last lines of a long list are left out', async (t) => {
    const chat = await open(t)
    for (let n = 10; n < 40; n++)
      await chat.platform.exec('cat', { name: `agent-${n}-${'x'.repeat(90)}`, role: 'y'.repeat(80) })
    const listed = await chat.command('agents')
    assert.ok(listed.length <= under.textCharactersMax, String(listed.length))
    assert.match(listed, /agent-10[\s\S]*\n\.\.\.$/)
  })
}

const commandIn =
  ({ service }: OpenChat, place: Place, author: Author = ADA) =>
  (name: string, argument?: string) =>
    service.command({ place, author, name, ...(argument !== undefined && { argument }) })

/** Where a command is a message, the chat has other texts too. */
const waitForText = (chat: OpenChat, place: Place, text: string) =>
  waitUntil(
    () => chat.texts(place).some((one) => one.trim() === text),
    () => `${text} in ${JSON.stringify(chat.texts(place))}`,
  )
