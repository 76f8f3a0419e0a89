/** The socket channel against a program that listens on a socket. What all channels share is in the channel contract. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startSocketService } from '../../../test/fakes/socket-service.ts'
import { waitUntil } from '../../../test/harness/wait.ts'
import { systemClock } from '../../clock.ts'
import { MoleculeError } from '../../errors.ts'
import { createLog } from '../../log.ts'
import type { ChannelEvents, IncomingMessage } from '../chat/channel.ts'
import { socketKind } from './socket.ts'

const log = createLog('silent', { write: () => undefined })
const never = new AbortController().signal

async function connect(t: TestContext) {
  const service = await startSocketService()
  const { apiUrl, token } = service
  const channel = await socketKind.open({ apiUrl, token, clock: systemClock, log })
  t.after(async () => {
    await channel.close()
    await service.close()
  })
  const received: IncomingMessage[] = []
  const calls: string[] = []
  const events: ChannelEvents = {
    async message(message) {
      received.push(message)
    },
    async command({ name, argument, answer }) {
      await answer(`${name} ${argument}`)
    },
    async press({ buttonId, answer }) {
      await answer(`pressed ${buttonId}`)
    },
    reconnected: () => void calls.push('reconnected'),
    problem: (sentence) => void calls.push(sentence ?? 'well'),
    refused: () => void calls.push('refused'),
  }
  const account = await channel.connect(events, { commands: [] }, never)
  return { service, channel, received, calls, account }
}

test('GW-10 the socket channel gets messages, sends, edits, answers commands and presses', async (t) => {
  const { service, channel, received, account } = await connect(t)
  assert.deepEqual(account, { id: 'bot', name: 'Molecule' })
  const place = service.newPlace('group')
  service.say({ place, text: 'hello', mentions: true })
  await waitUntil(() => received.length === 1)
  assert.deepEqual([received[0]?.text, received[0]?.isAddressed], ['hello', true])
  const buttons = [{ id: 'b1', label: 'Yes', style: 'good' }] as const
  const sent = await channel.send({ place: place.id, text: 'answer', nonce: 'n1', buttons }, never)
  assert.equal(sent.type, 'sent')
  const messageId = service.written(place)[0]?.id ?? ''
  const author = { id: 'ada', name: 'Ada', isBot: false }
  assert.equal(await service.press({ place, messageId, label: 'Yes', author }), 'pressed b1')
  assert.equal(await service.command({ place, author, name: 'new', argument: 'x' }), 'new x')
  await channel.edit({ place: place.id, messageId, text: 'changed' }, never)
  const [now] = service.written(place)
  assert.deepEqual([now?.text, now?.edits, now?.buttons], ['changed', 1, []])
})

test('GW-6 a send whose answer is lost is unknown, and the channel connects again', async (t) => {
  const { service, channel, calls } = await connect(t)
  const place = service.newPlace('direct')
  service.failNextSend('lost_answer')
  assert.equal((await channel.send({ place: place.id, text: 'once', nonce: 'n1' }, never)).type, 'unknown')
  assert.equal(service.written(place).length, 1)
  await waitUntil(() => calls.includes('reconnected'))
  assert.equal((await channel.send({ place: place.id, text: 'twice', nonce: 'n2' }, never)).type, 'sent')
})

test('GW-12 a check of the token does not replace the connected bot: a message right after it reaches the bot', async (t) => {
  const { service, received } = await connect(t)
  const { apiUrl, token } = service
  await socketKind.check({ apiUrl, token, clock: systemClock, log }, never)
  const place = service.newPlace('direct')
  service.say({ place, text: 'hello' })
  await waitUntil(() => received.length === 1, 'the message')
})

test('GW-12 a wrong token is refused with one sentence that has no token in it', async (t) => {
  const { service } = await connect(t)
  const options = { apiUrl: service.apiUrl, token: 'wrong-token', clock: systemClock, log }
  await assert.rejects(socketKind.check(options, never), (error) => {
    assert.ok(error instanceof MoleculeError)
    assert.equal(error.code, 'bad_config')
    assert.match(error.message, /refuses the token/)
    assert.doesNotMatch(error.message, /wrong-token/)
    return true
  })
})
