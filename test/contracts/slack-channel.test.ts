/** The channel contract on Slack: the platform and Slack's libraries against the fake Slack. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startSlack } from '../fakes/slack/slack.ts'
import { SlackWorld } from '../fakes/slack/world.ts'
import { runCommand, startCommand } from '../harness/command.ts'
import { waitUntil } from '../harness/wait.ts'
import { channelContract } from './channel-contract.ts'

channelContract({
  kind: 'slack',
  start: startSlack,
  settings: { app_token: new SlackWorld().appToken },
  textCharactersMax: 4000,
  dropsCopies: true,
  hasTyping: false,
  hasReplies: false,
})

test('GW-1 GW-18 the gateway runs a Slack bot from its two variables, and names the one that is missing', async (t) => {
  const service = await startSlack()
  const home = await mkdtemp(join(tmpdir(), 'molecule-slack-'))
  t.after(async () => {
    await service.close()
    await rm(home, { recursive: true, force: true })
  })
  const base = { MOLECULE_HOME: home, WORKING_DIR: home, AGENT_BACKEND: 'mock', SLACK_API_URL: service.apiUrl }
  const env = { ...base, SLACK_BOT_TOKEN: service.token, SLACK_ALLOWED_USERS: 'U0ADA' }
  const missing = await runCommand(['gateway'], { env })
  assert.equal(missing.code, 1)
  assert.match(missing.err, /^error: the slack bot also needs SLACK_APP_TOKEN: The app-level token/)
  const command = startCommand(t, ['gateway'], { env: { ...env, SLACK_APP_TOKEN: service.appToken } })
  await command.waitForOutput(/slack bot molecule: mock answers/)
  await waitUntil(() => service.isConnected())
  const place = service.newPlace('direct')
  service.say({ place, text: 'hello' })
  await waitUntil(() => service.written(place).some(({ text }) => text === 'echo: hello'))
})
