/** Attacks on the decisions of a chat: a press of a button is text that a changed client can send as it likes. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Place } from '../../src/doors/chat/channel.ts'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import { ADA, addSocketBot, EVE } from '../harness/clients/socket-bot.ts'
import { startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

/** Ada owns bot A, whose agent asks for a permission in a direct chat. */
async function openAsk(t: TestContext, command = 'rm -rf build', { mayAttach } = { mayAttach: true }) {
  const platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  const { path: bin } = createFakeProgram('claude')
  const made = await platform.request('POST', '/workspaces', {
    name: 'claude',
    runtime: 'claude-code',
    runtime_config: { bin },
  })
  const workspaceId: string = made.body.id
  const bot = await addSocketBot(t, platform, { name: 'bot-a', workspaceId, owner: ADA })
  if (!mayAttach) bot.denyRights()
  const place = bot.newPlace('direct')
  const ask = async (there: Place, text: string) => {
    bot.say({ place: there, author: ADA, text: `!ask ${text}`, mentions: true })
    const written = () => bot.written(there).find((one) => one.buttons.length > 0)
    await waitUntil(
      () => written() !== undefined,
      () => `buttons in ${JSON.stringify(bot.written(there))}`,
    )
    return written()?.id ?? ''
  }
  const messageId = await ask(place, command)
  const pending = async () => (await platform.request('GET', '/pending')).body.pending.length as number
  const payload = (there: Place, choice: string) => `${bot.payloads(there)[0]?.split('.')[0] ?? 'no button'}.${choice}`
  return { platform, workspaceId, bot, place, messageId, ask, pending, payload }
}

test('GW-9 RE-9 an owner of another bot answers no permission of this one, also with the payload of its button', async (t) => {
  const { platform, bot, place, messageId, pending, payload } = await openAsk(t)
  const other = await platform.exec('cat', { name: 'other' })
  const eves = await addSocketBot(t, platform, { name: 'bot-b', workspaceId: other, owner: EVE })
  const buttonId = payload(place, 'once')
  for (const there of [eves.newPlace('direct'), place]) {
    const said = await eves.forge({ place: there, messageId, buttonId, author: EVE })
    assert.match(said, /This request is over/)
  }
  assert.match(await bot.forge({ place, messageId, buttonId, author: EVE }), /Only an owner of this bot/)
  assert.equal(await pending(), 1)
  assert.match(await bot.forge({ place, messageId, buttonId, author: ADA }), /Allowed once/)
  await waitUntil(async () => (await pending()) === 0, 'the permission is answered')
})

test('GW-9 RE-9 a press counts only in the place and on the message where the prompt was posted', async (t) => {
  const { bot, place, messageId, pending, payload } = await openAsk(t)
  const buttonId = payload(place, 'once')
  // After this answer the platform has stored the id of the message with the buttons.
  assert.match(await bot.forge({ place, messageId, buttonId, author: EVE }), /Only an owner/)
  const elsewhere = bot.newPlace('group')
  assert.match(await bot.forge({ place: elsewhere, messageId, buttonId, author: ADA }), /This request is over/)
  assert.match(await bot.forge({ place, messageId: 'm-other', buttonId, author: ADA }), /This request is over/)
  assert.equal(await pending(), 1)
})

test('GW-9 RE-9 a choice that the prompt has no button for is refused: a command that is not shown can only be denied', async (t) => {
  const command = `rm ${'x'.repeat(2000)}`
  const { bot, place, messageId, pending, payload } = await openAsk(t, command, { mayAttach: false })
  for (const choice of ['once', 'always', 'raise', 'stop']) {
    const said = await bot.forge({ place, messageId, buttonId: payload(place, choice), author: ADA })
    assert.match(said, /does not offer that answer/)
  }
  assert.equal(await pending(), 1)
  assert.match(await bot.press({ place, messageId, label: 'Deny', author: ADA }), /Denied/)
})

test('GW-9 RE-9 a chat that is bound to another agent by now does not answer for its former one', async (t) => {
  const { platform, bot, place, messageId, pending } = await openAsk(t)
  const other = await platform.exec('cat', { name: 'other' })
  const bound = await platform.request('PUT', `/channels/bot-a/bindings/${place.id}`, { workspace_id: other })
  assert.equal(bound.status, 200)
  assert.match(await bot.press({ place, messageId, label: 'Allow once', author: ADA }), /Another agent answers/)
  assert.equal(await pending(), 1)
})
