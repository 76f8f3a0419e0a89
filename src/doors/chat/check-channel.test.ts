import assert from 'node:assert/strict'
import test from 'node:test'
import { manualClock } from '../../../test/fakes/manual-clock.ts'
import { silentLog } from '../../log.ts'
import type { ChannelKind, ChannelOptions } from './channel.ts'
import { checkChannel } from './check-channel.ts'

const setting = { variable: 'V', summary: 'It is on the page.', isSecret: false, isRequired: false }

/** A kind that needs a secret and takes a region; `hidden` and `checked` have what was hidden and given to it. */
function openKind() {
  const hidden: string[] = []
  const checked: ChannelOptions[] = []
  const kind: ChannelKind = {
    kind: 'chatter',
    tokenVariable: 'CHATTER_TOKEN',
    tokenSteps: [],
    settings: [
      { ...setting, name: 'app_token', variable: 'CHATTER_APP_TOKEN', isSecret: true, isRequired: true },
      { ...setting, name: 'region' },
    ],
    async check(options) {
      checked.push(options)
      return { account: { id: '7', name: 'bot' }, steps: ['Invite it'] }
    },
    open: async () => assert.fail('a check opens no channel'),
  }
  const context = {
    requireKind: async () => kind,
    hide: (secret: string) => void hidden.push(secret),
    clock: manualClock(),
    log: silentLog,
  }
  const check = (settings?: Record<string, string>) =>
    checkChannel({ kind: 'chatter', token: 'the token', settings }, context, new AbortController().signal)
  return { check, hidden, checked }
}

test('GW-18 the settings of a kind reach its check, and its secrets are told apart and hidden', async () => {
  const { check, hidden, checked } = openKind()
  const { account, steps, plain, secrets } = await check({ app_token: 'a secret', region: 'eu' })
  assert.deepEqual([account.name, steps], ['bot', ['Invite it']])
  assert.deepEqual([plain, secrets], [{ region: 'eu' }, { app_token: 'a secret' }])
  assert.deepEqual(hidden, ['the token', 'a secret'])
  assert.deepEqual(checked[0]?.settings, { app_token: 'a secret', region: 'eu' })
})

test('GW-18 a setting that is missing or unknown is one sentence without a value, and nothing is asked', async () => {
  const { check, hidden, checked } = openKind()
  await assert.rejects(check(), {
    code: 'invalid_request',
    message: 'a chatter channel needs the setting "app_token" (CHATTER_APP_TOKEN): It is on the page.',
  })
  await assert.rejects(check({ app_token: 'a secret', regoin: 'eu' }), {
    code: 'invalid_request',
    message: 'a chatter channel has no setting "regoin"; its settings are app_token, region',
  })
  assert.ok(hidden.includes('a secret'))
  assert.deepEqual(checked, [])
})
