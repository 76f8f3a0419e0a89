/** Part of the channel contract: an answer that may not have arrived, and the owner who decides about it in the chat. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Place } from '../../../src/doors/chat/channel.ts'
import { waitUntil } from '../../harness/wait.ts'
import { ADA, type ChannelUnderTest, EVE, type OpenChat, openChat } from './open-chat.ts'

export function channelResendTests(under: ChannelUnderTest): void {
  // Where the service drops a second copy, the platform sends it again by itself.
  if (under.dropsCopies) return
  const question = async (chat: OpenChat, place: Place, pattern: RegExp) => {
    const find = () => chat.service.written(place).find(({ text }) => pattern.test(text))
    await waitUntil(
      () => find() !== undefined,
      () => `${pattern} in ${JSON.stringify(chat.service.written(place))}`,
    )
    return { place, messageId: find()?.id ?? '', buttons: find()?.buttons }
  }
  const needs = async (chat: OpenChat) =>
    (await chat.platform.request('GET', '/needs-you')).body.needs_you.filter(
      ({ kind }: { kind: string }) => kind === 'delivery',
    )

  test('GW-15 GW-6 an answer that may not have arrived is sent again when an owner presses Resend, once; else it counts as arrived', async (t) => {
    const chat = await openChat(t, under)
    await chat.makeOwner(EVE)
    const [owners, other] = [chat.service.newPlace('direct'), chat.service.newPlace('direct')]
    chat.service.say({ place: owners, author: EVE, text: 'one' })
    await chat.answers(owners, 1)
    chat.service.failNextSend('lost_answer')
    chat.service.say({ place: owners, author: EVE, text: 'two' })
    const asked = await question(chat, owners, /do not know whether my answer arrived.*echo two/)
    assert.deepEqual(asked.buttons, ['Resend', 'It arrived'])
    const press = (author: typeof ADA, label: string) => chat.service.press({ ...asked, author, label })
    assert.match(await press(ADA, 'Resend'), /Only an owner/)
    assert.match(await press(EVE, 'Resend'), /Sent again/)
    const copies = () => chat.texts(owners).filter((text) => text === 'echo two').length
    await waitUntil(() => copies() === 2, 'the answer is sent again')
    await question(chat, owners, /Sent again by Eve/i)
    assert.match(await press(EVE, 'Resend'), /over/)
    assert.equal(copies(), 2)
    // Of a chat without an owner, the owner is asked in the own direct chat.
    chat.service.failNextSend('lost_answer')
    chat.service.say({ place: other, author: ADA, text: 'three' })
    await question(chat, owners, /do not know whether my answer to .* in a direct chat arrived.*echo three/)
    assert.deepEqual(
      chat.texts(other).filter((text) => text !== 'echo three'),
      [],
    )
    const [need] = await needs(chat)
    const arrived = need.actions.find(({ name }: { name: string }) => name === 'arrived')
    assert.ok((await chat.platform.request('POST', arrived.path, arrived.body)).status < 300)
    await question(chat, owners, /echo three[\s\S]*This is over: it was decided elsewhere/)
    assert.deepEqual(await needs(chat), [])
  })
}
