import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { noChannels } from '../../../../test/fakes/platform/absent-parts.ts'
import { WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes } from '../../../../test/harness/clients/route-calls.ts'
import { openTestStore } from '../../../../test/harness/stores/sqlite-store.ts'
import { createChannels } from '../../chat/store/channels.ts'
import { createPairings } from '../../chat/store/pairings.ts'

const LISTS = { allowed_people: ['1'], allowed_places: ['2'], allowed_bots: ['3'] }
const GATEWAY = { owners: ['4'] }
const SETTINGS = { app_token: ' secret too ', region: 'eu' }
const TEAM = {
  kind: 'discord',
  name: 'team',
  token: ' secret ',
  workspace_id: WORKSPACE_ID,
  settings: SETTINGS,
  gateway: GATEWAY,
  ...LISTS,
}
const TEAM_VIEW = {
  name: 'team',
  kind: 'discord',
  account: 'Bot',
  workspace_id: WORKSPACE_ID,
  problem: null,
  ...LISTS,
  settings: { region: 'eu' },
  gateway: GATEWAY,
  stream: true,
  bindings: [],
}
const BARE_VIEW = {
  name: 'socket',
  kind: 'socket',
  account: 'Bot',
  workspace_id: null,
  problem: null,
  allowed_people: [],
  allowed_places: null,
  allowed_bots: [],
  settings: {},
  gateway: null,
  stream: true,
  bindings: [],
}

/** A door on a store with one workspace; `order` has the calls to the other parts. Each check finds another bot. */
async function openChat(t: TestContext) {
  const { store, addWorkspace } = openTestStore(t)
  await addWorkspace({ id: WORKSPACE_ID })
  const order: unknown[][] = []
  const channels = createChannels(store)
  const pairings = createPairings(store, () => 'CODE')
  const isKnown = async () => (await channels.list()).length
  const call = await openRoutes(t, {
    store,
    chat: {
      ...noChannels,
      channels,
      pairings,
      async check(given) {
        order.push(['check', given, await isKnown()])
        const { app_token, ...plain } = given.settings ?? {}
        const secrets: Record<string, string> = app_token === undefined ? {} : { app_token }
        const account = { id: `bot ${order.length}`, name: 'Bot' }
        return { account, steps: ['Invite the bot'], plain, secrets }
      },
      wake: () => void order.push(['wake']),
      endDeliveries: async (door) => void order.push(['endDeliveries', door]),
    },
  })
  return { call, channels, pairings, order }
}

test('GW-12 a channel is added once it is checked, and no answer has one of its secrets', async (t) => {
  const { call, channels, order } = await openChat(t)
  const apiUrl = 'https://proxy.test/'
  const { status, json, text } = await call('POST /channels', { body: { ...TEAM, api_url: apiUrl } })
  assert.deepEqual([status, json], [201, { ...TEAM_VIEW, steps: ['Invite the bot'] }])
  assert.doesNotMatch(text, /secret/)
  const given = { kind: 'discord', token: 'secret', settings: { app_token: 'secret too', region: 'eu' }, apiUrl }
  assert.deepEqual(order, [['check', given, 0], ['wake']])
  const lists = { allowedPeople: ['1'], allowedPlaces: ['2'], allowedBots: ['3'] }
  const settings = { apiUrl, ...lists, ofKind: { region: 'eu' }, gateway: GATEWAY }
  const { createdAtMs: _at, ...stored } = await channels.get('team')
  const secrets = { app_token: 'secret too' }
  const channel = { name: 'team', kind: 'discord', token: 'secret', secrets, account: { id: 'bot 1', name: 'Bot' } }
  assert.deepEqual(stored, { ...channel, workspaceId: WORKSPACE_ID, settings })
})

test('GW-12 a channel needs only its kind and token: it has the name of its kind, and replaces none', async (t) => {
  const { call } = await openChat(t)
  const body = { kind: 'socket', token: 'secret' }
  assert.deepEqual((await call('POST /channels', { body })).json, { ...BARE_VIEW, steps: ['Invite the bot'] })
  assert.equal((await call('POST /channels', { body })).json.error.code, 'unsupported_operation')
  assert.equal((await call('POST /channels', { body: { ...body, replace: true } })).status, 201)
})

test('GW-12 each field of a channel has its limit: the longest passes, one more is refused by name', async (t) => {
  const { call } = await openChat(t)
  const base = { kind: 'socket', token: 'secret', replace: true }
  const ids = (count: number) => Array.from({ length: count }, () => '1')
  const limits: [string, number, (length: number) => unknown][] = [
    ['kind', 40, (length) => 'k'.repeat(length)],
    ['name', 40, (length) => 'n'.repeat(length)],
    ['token', 500, (length) => 't'.repeat(length)],
    ['api_url', 2000, (length) => `https://a.test/${'x'.repeat(length - 15)}`],
    ['allowed_people', 500, ids],
    ['allowed_places', 500, ids],
    ['allowed_bots', 500, ids],
    ['gateway', 500, (length) => ({ owners: ids(length) })],
    ['allowed_people', 100, (length) => ['p'.repeat(length)]],
    ['settings', 20, (length) => Object.fromEntries(ids(length).map((_, index) => [`s${index}`, 'x']))],
    ['settings', 10_000, (length) => ({ key: 'x'.repeat(length) })],
    ['settings', 40, (length) => ({ ['k'.repeat(length)]: 'x' })],
  ]
  for (const [field, most, make] of limits) {
    assert.equal((await call('POST /channels', { body: { ...base, [field]: make(most) } })).status, 201, field)
    const { status, json } = await call('POST /channels', { body: { ...base, [field]: make(most + 1) } })
    assert.equal(status, 400, field)
    assert.ok(json.error.message.includes(`"${field}`), json.error.message)
  }
  for (const wrong of [
    { kind: '' },
    { token: ' ' },
    { name: 'Upper' },
    { name: '-a' },
    { allowed_people: [' '] },
    { settings: { a: ' ' } },
  ])
    assert.equal((await call('POST /channels', { body: { ...base, ...wrong } })).status, 400, JSON.stringify(wrong))
})

test('GW-12 owners see the lists of a channel and its whole problem, a viewer neither lists nor settings nor paths', async (t) => {
  const { call, channels } = await openChat(t)
  for (const body of [TEAM, { kind: 'socket', token: 'secret' }]) await call('POST /channels', { body })
  for (const place of ['p2', 'p1']) await channels.bind({ channel: 'team', place, workspaceId: WORKSPACE_ID })
  await channels.setProblem('team', 'cannot read "/home/ana/cert.pem"')
  const bindings = ['p1', 'p2'].map((place) => ({ place, workspace_id: WORKSPACE_ID }))
  const view = { ...TEAM_VIEW, bindings, problem: 'cannot read "/home/ana/cert.pem"' }
  assert.deepEqual((await call('GET /channels', { role: 'member' })).json.channels, [BARE_VIEW, view])
  const { allowed_people: _people, allowed_places: _places, allowed_bots: _bots, ...others } = view
  const { settings: _settings, gateway: _gateway, stream: _stream, ...shown } = others
  const [bare, team] = (await call('GET /channels', { role: 'viewer' })).json.channels
  assert.deepEqual(team, { ...shown, problem: 'cannot read "cert.pem"' })
  assert.deepEqual(Object.keys(bare).toSorted(), ['account', 'bindings', 'kind', 'name', 'problem', 'workspace_id'])
  assert.equal(bare.problem, null)
})

test('GW-12 removing a channel ends its deliveries; a chat is bound and unbound', async (t) => {
  const { call, channels, order } = await openChat(t)
  await call('POST /channels', { body: TEAM })
  const place = 'p'.repeat(100)
  const body = { workspace_id: WORKSPACE_ID }
  const bound = await call(`PUT /channels/team/bindings/${place}`, { body })
  assert.deepEqual([bound.status, bound.json], [200, { channel: 'team', place, workspace_id: WORKSPACE_ID }])
  assert.equal(await channels.boundTo('team', { id: place }), WORKSPACE_ID)
  const tooLong = await call(`PUT /channels/team/bindings/${place}p`, { body })
  assert.deepEqual([tooLong.status, tooLong.json.error.code], [400, 'invalid_request'])
  for (const [workspace, status] of [
    ['', 400],
    ['w'.repeat(101), 400],
    ['w'.repeat(100), 404],
  ])
    assert.equal((await call('PUT /channels/team/bindings/p', { body: { workspace_id: workspace } })).status, status)
  assert.equal((await call(`DELETE /channels/team/bindings/${place}`)).status, 204)
  assert.equal(await channels.boundTo('team', { id: place }), undefined)
  order.length = 0
  assert.equal((await call('DELETE /channels/team')).status, 204)
  const ended = ['chat:team', 'chat:team (prompts)', 'chat:team (home)'].map((door) => ['endDeliveries', door])
  assert.deepEqual(order, [['wake'], ...ended])
  assert.deepEqual(await channels.list(), [])
})

const ANA = { channel: 'team', person: '9', name: 'Ana' }
const WAITING = { ...ANA, state: 'pending', role: 'user', code: 'CODE', decided_by: null, held: 2 }

/** Ana wrote two messages to the channel. */
async function openPairing(t: TestContext) {
  const chat = await openChat(t)
  await chat.call('POST /channels', { body: TEAM })
  await chat.pairings.request(ANA)
  for (const id of ['1', '2']) await chat.pairings.hold(ANA, { place: 'p', id, message: '{}' })
  chat.order.length = 0
  const list = async () => (await chat.call('GET /pairings')).json.pairings
  const [{ created_at }] = await list()
  assert.equal(new Date(created_at).toISOString(), created_at)
  return { ...chat, list, created_at }
}

test('GW-4 the list of pairings shows the code only while a person waits', async (t) => {
  const { call, list, created_at } = await openPairing(t)
  assert.deepEqual(await list(), [{ ...WAITING, created_at }])
  const denied = { ...WAITING, created_at, state: 'denied', code: null, decided_by: 'admin', held: 0 }
  assert.deepEqual((await call('POST /pairings/CODE/deny')).json, denied)
  assert.deepEqual(await list(), [denied])
})

test('GW-4 PL-12 a person is let in as a user, or by an admin as the owner that the approval names, and the door learns of it', async (t) => {
  const { call, list, order, created_at } = await openPairing(t)
  const { status, json } = await call('POST /pairings/CODE/approve', { role: 'member' })
  const approved = { ...WAITING, created_at, state: 'approved', code: null, decided_by: 'member', held: 0 }
  assert.deepEqual([status, json], [200, approved])
  const owner = { body: { role: 'owner' } }
  assert.equal((await call('POST /pairings/team%2F9/approve', { role: 'member', ...owner })).status, 403)
  const made = (await call('POST /pairings/team%2F9/approve', owner)).json
  assert.deepEqual(made, { ...approved, role: 'owner', decided_by: 'admin' })
  assert.deepEqual(await list(), [{ ...made, held: 2 }])
  assert.equal((await call('POST /pairings/CODE/deny', { role: 'member' })).status, 403)
  assert.deepEqual(order, [['wake'], ['wake']])
  assert.equal((await call('POST /pairings/CODE/approve', { body: { role: 'admin' } })).status, 400)
})
