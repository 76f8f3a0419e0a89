/** Attacks with the commands of a chat: floods, places that are not allowed, paths of the machine, names of channels. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ADA, addSocketBot, BOB, EVE, pairingPath } from '../harness/clients/socket-bot.ts'
import { startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const PER_MINUTE = 30

test('GW-7 RE-9 commands count as messages of their place: a flood of them is refused, from the menu and as text', async (t) => {
  const platform = await startPlatformFor(t)
  const workspaceId = await platform.exec('cat', { name: 'echo' })
  const bot = await addSocketBot(t, platform, { name: 'bot', workspaceId, owner: ADA })
  const menu = bot.newPlace('direct')
  const command = () => bot.command({ place: menu, author: ADA, name: 'where' })
  for (let n = 0; n < PER_MINUTE; n++) assert.match(await command(), /answers here/)
  assert.match(await command(), /too many messages at once/)
  const typed = bot.newPlace('direct')
  for (let n = 0; n <= PER_MINUTE; n++) bot.say({ place: typed, author: ADA, text: '/where' })
  await waitUntil(() => bot.written(typed).length > PER_MINUTE, 'every command has an answer')
  const refused = bot.written(typed).filter(({ text }) => /too many messages at once/.test(text))
  assert.equal(refused.length, 1)
})

test('GW-4 GW-7 RE-9 a command in a place that is not allowed, or of a bot that is not, runs nothing', async (t) => {
  const platform = await startPlatformFor(t)
  const workspaceId = await platform.exec('cat', { name: 'echo' })
  const more = { allowed_places: ['only-here'] }
  const bot = await addSocketBot(t, platform, { name: 'bot', workspaceId, owner: ADA, more })
  const elsewhere = bot.newPlace('group')
  const command = (place = elsewhere, author = ADA) => bot.command({ place, author, name: 'bind', argument: 'echo' })
  assert.match(await command(), /I do not answer here/)
  const robot = await command({ ...elsewhere, id: 'only-here' }, { ...ADA, isBot: true })
  assert.match(robot, /I do not answer here/)
  const { channels } = (await platform.request('GET', '/channels')).body
  assert.deepEqual(channels[0].bindings, [])
  assert.match(await command({ ...elsewhere, id: 'only-here' }), /answers every message/)
})

test('RT-7 GW-8 RE-9 a chat shows no path of the machine, but to an owner in a direct chat', async (t) => {
  const platform = await startPlatformFor(t)
  const bin = '/opt/secret-place/claude'
  const made = await platform.request('POST', '/workspaces', {
    name: 'claude',
    runtime: 'claude-code',
    runtime_config: { bin },
  })
  const bot = await addSocketBot(t, platform, { name: 'bot', workspaceId: made.body.id, owner: ADA })
  assert.equal((await platform.request('POST', pairingPath('bot', BOB))).status, 200)
  const direct = bot.newPlace('direct')
  bot.say({ place: direct, author: BOB, text: 'hello' })
  await waitUntil(() => bot.written(direct).length > 0, 'the failure is told')
  const status = (place = direct, author = BOB) => bot.command({ place, author, name: 'status' })
  await waitUntil(async () => (await status(direct, ADA)).includes(bin), 'the owner sees the path')
  const seen = [
    await status(),
    await status(bot.newPlace('group'), ADA),
    ...bot.written(direct).map(({ text }) => text),
  ]
  for (const text of seen) assert.ok(!text.includes('secret-place'), text)
  assert.match(seen[0] ?? '', /claude/)
})

test('GW-12 RE-9 a channel is not called like the principals of the platform', async (t) => {
  const platform = await startPlatformFor(t)
  const workspaceId = await platform.exec('cat', { name: 'echo' })
  const bot = await addSocketBot(t, platform, { name: 'bot', workspaceId, owner: EVE })
  for (const name of ['token', 'ws', 'user', 'people', 'schedule', 'mcp', 'http']) {
    const { status, body } = await platform.request('POST', '/channels', {
      kind: 'socket',
      name,
      token: bot.token,
      api_url: bot.apiUrl,
      replace: true,
    })
    assert.equal(status, 400, name)
    assert.match(body.error.message, /cannot be called/)
  }
})
