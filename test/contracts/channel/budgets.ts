/** Part of the channel contract: budgets that are spent. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Place } from '../../../src/doors/chat/channel.ts'
import { waitUntil } from '../../harness/wait.ts'
import { ADA, type ChannelUnderTest, EVE, type OpenChat, openChat } from './open-chat.ts'

export function channelBudgetTests(under: ChannelUnderTest): void {
  /** A workspace whose turns cost $0.50, and that may spend $1.00 a day. */
  const open = (t: TestContext) =>
    openChat(t, under, { workspace: { runtime: 'mock', runtime_config: { cost: '0.5', max_cost_usd_per_day: 1 } } })
  const prompts = (chat: OpenChat, place: Place) =>
    chat.service.written(place).filter(({ text }) => / waits: today's budget/.test(text))
  const shown = async (chat: OpenChat, place: Place, count: number) => {
    const what = () => `${count} prompts in ${JSON.stringify(chat.service.written(place))}`
    await waitUntil(() => prompts(chat, place).length === count, what)
    return prompts(chat, place).at(-1)
  }
  const sentDeliveries = async (chat: OpenChat) => {
    const stories = (await chat.tasks()).map(({ id }) => chat.platform.request('GET', `/messages/${id}/story`))
    const deliveries = (await Promise.all(stories)).flatMap(({ body }) => body.deliveries)
    return deliveries.filter(({ state }) => state === 'sent').length
  }
  const budgets = async (chat: OpenChat) => (await chat.platform.request('GET', '/pending')).body.budgets

  test('TW-10 GW-9 a chat whose message waits for a budget says so once; the owner gets buttons in the own chat, also over a restart', async (t) => {
    const chat = await open(t)
    await chat.makeOwner(EVE)
    const [place, ownersPlace] = [chat.service.newPlace('direct'), chat.service.newPlace('direct')]
    chat.service.say({ place, author: ADA, text: 'one' })
    await chat.answers(place, 1)
    chat.service.say({ place: ownersPlace, author: EVE, text: 'two' })
    await chat.answers(ownersPlace, 1)
    const waiting = chat.service.say({ place, author: ADA, text: 'three' })
    const said = await shown(chat, place, 1)
    assert.match(said?.text ?? '', /^Your message waits: today's budget .*\$1\.00, is spent.*the owner is asked/)
    assert.deepEqual(said?.buttons, [])
    const asked = await shown(chat, ownersPlace, 1)
    assert.match(asked?.text ?? '', /echo.* waits: .*1 message waits\. Raise the budget, or stop/)
    assert.deepEqual(asked?.buttons, ['Raise to $2', 'Stop'])
    await waitUntil(() => chat.service.reaction(place, waiting) === 'waiting', 'the message is marked as waiting')
    // Two answers and two prompts. Without the id of its message a prompt cannot say later that it is over.
    await waitUntil(async () => (await sentDeliveries(chat)) === 4, 'the ids of all messages are stored')
    await chat.platform.stop('SIGKILL')
    await chat.start()
    chat.service.say({ place, author: ADA, text: 'four' })
    await waitUntil(async () => (await chat.tasks()).length === 4, 'the next message is stored')
    const press = (author: typeof ADA) =>
      chat.service.press({ place: ownersPlace, messageId: asked?.id ?? '', label: 'Raise to $2', author })
    assert.match(await press(ADA), /Only an owner/)
    assert.equal((await budgets(chat)).length, 1)
    assert.match(await press(EVE), /Raised to \$2/)
    await waitUntil(
      () => chat.texts(place).includes('echo: four'),
      () => JSON.stringify(chat.texts(place)),
    )
    assert.ok(chat.texts(place).includes('echo: three'))
    await waitUntil(() => /This is over/.test(prompts(chat, place)[0]?.text ?? ''), 'the chat says that it is over')
    assert.deepEqual([prompts(chat, place).length, prompts(chat, ownersPlace).length], [1, 1])
    assert.match(prompts(chat, ownersPlace)[0]?.text ?? '', /Raised to \$2 by /)
    assert.deepEqual(prompts(chat, ownersPlace)[0]?.buttons, [])
    assert.match(await press(EVE), /over/)
  })

  test('TW-10 GW-9 an owner who waits for a budget gets the buttons at once; one that is stopped elsewhere says that it is over', async (t) => {
    const chat = await open(t)
    await chat.makeOwner(EVE)
    const place = chat.service.newPlace('group')
    const say = (text: string) => chat.service.say({ place, author: EVE, text, mentions: true })
    say('one')
    say('two')
    await chat.answers(place, 2)
    const stopped = say('three')
    assert.deepEqual((await shown(chat, place, 1))?.buttons, ['Raise to $2', 'Stop'])
    const [{ id }] = await budgets(chat)
    await chat.platform.request('POST', `/budgets/${id}`, { decision: 'stop' })
    await waitUntil(() => /This is over/.test(prompts(chat, place)[0]?.text ?? ''), 'the prompt says that it is over')
    assert.deepEqual(prompts(chat, place)[0]?.buttons, [])
    await waitUntil(() => chat.service.reaction(place, stopped) === 'failed', 'the message is marked as ended')
    // The rest of the day needs no answer: the chat says when its messages go on.
    say('four')
    const last = await shown(chat, place, 2)
    assert.match(last?.text ?? '', /^Your message waits: .*it goes on at midnight UTC/)
    assert.deepEqual(last?.buttons, [])
  })
}
