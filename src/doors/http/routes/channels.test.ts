import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { noChannels } from '../../../../test/fakes/platform/absent-parts.ts'
import { WORKSPACE_ID } from '../../../../test/fakes/platform/fake-platform.ts'
import { openRoutes, recordPart } from '../../../../test/harness/clients/route-calls.ts'
import type { Channels, StoredChannel } from '../../chat/store/channels.ts'
import type { Pairing, Pairings } from '../../chat/store/pairings.ts'

const CHANNEL: StoredChannel = {
  name: 'team',
  kind: 'discord',
  token: 'secret',
  account: { id: '7', name: 'Bot' },
  workspaceId: WORKSPACE_ID,
  settings: { allowedPeople: ['1'], allowedPlaces: ['2'], allowedBots: ['3'] },
  problem: 'cannot read "/home/ana/cert.pem"',
  createdAtMs: 0,
}
const BARE: StoredChannel = { name: 'bare', kind: 'socket', token: 'secret', settings: {}, createdAtMs: 0 }
const BINDINGS = [
  { channel: 'team', place: 'p1', workspaceId: WORKSPACE_ID, sinceMs: 0 },
  { channel: 'bare', place: 'p2', workspaceId: WORKSPACE_ID, sinceMs: 0 },
]
const VIEW = {
  name: 'team',
  kind: 'discord',
  account: 'Bot',
  workspace_id: WORKSPACE_ID,
  problem: 'cannot read "/home/ana/cert.pem"',
  allowed_people: ['1'],
  allowed_places: ['2'],
  allowed_bots: ['3'],
  bindings: [{ place: 'p1', workspace_id: WORKSPACE_ID }],
}

/** A door with these channels and pairings; `order` has every call, also those that change other parts. */
async function openChat(
  t: TestContext,
  { get = CHANNEL, decide = PAIRING }: { get?: StoredChannel; decide?: Pairing },
) {
  const order: unknown[][] = []
  const channels = recordPart<Channels>({
    add: undefined,
    get,
    list: [CHANNEL, BARE],
    bindings: BINDINGS,
    remove: undefined,
    bind: undefined,
    unbind: undefined,
  })
  const pairings = recordPart<Pairings>({ list: [{ ...PAIRING, held: 2 }], decide })
  const call = await openRoutes(t, {
    chat: {
      ...noChannels,
      channels: channels.part,
      pairings: pairings.part,
      async check(kind, options) {
        order.push(['check', kind, options])
        return { account: { id: '7', name: 'Bot' }, steps: ['Invite the bot'] }
      },
      wake: () => void order.push(['wake', channels.calls.length + pairings.calls.length]),
      hide: (token) => void order.push(['hide', token]),
      endDeliveries: async (door) => void order.push(['endDeliveries', door]),
    },
  })
  return { call, channels, pairings, order }
}

const PAIRING: Pairing = {
  channel: 'team',
  person: '9',
  name: 'Ana',
  code: 'ABC',
  state: 'pending',
  role: 'user',
  createdAtMs: 1_700_000_000_000,
}
const PAIRING_VIEW = {
  channel: 'team',
  person: '9',
  name: 'Ana',
  state: 'pending',
  role: 'user',
  code: 'ABC',
  decided_by: null,
  held: 0,
  created_at: '2023-11-14T22:13:20.000Z',
}

test('GW-12 a channel is added once its token is checked, and the token is hidden first', async (t) => {
  const { call, channels, order } = await openChat(t, {})
  const lists = { allowed_people: ['1'], allowed_places: ['2'], allowed_bots: ['3'] }
  const settings = { workspace_id: WORKSPACE_ID, api_url: 'https://proxy.test/', replace: true, ...lists }
  const body = { kind: 'discord', name: 'team', token: ' secret ', ...settings }
  const { status, json, text } = await call('POST /channels', { body })
  assert.deepEqual([status, json], [201, { ...VIEW, steps: ['Invite the bot'] }])
  assert.doesNotMatch(text, /secret/)
  const apiUrl = 'https://proxy.test/'
  const stored = { ...CHANNEL.settings, apiUrl }
  const { problem: _problem, createdAtMs: _at, ...channel } = CHANNEL
  assert.deepEqual(channels.take(), [
    ['add', { ...channel, settings: stored }, { replace: true }],
    ['get', 'team'],
    ['bindings'],
  ])
  assert.deepEqual(order, [
    ['hide', 'secret'],
    ['check', 'discord', { token: 'secret', apiUrl }],
    ['wake', 1],
  ])
})

test('GW-12 a channel needs only its kind and token: it has the name of its kind, and replaces none', async (t) => {
  const { call, channels, order } = await openChat(t, { get: BARE })
  const { json } = await call('POST /channels', { body: { kind: 'socket', token: 'secret' } })
  const open = {
    account: null,
    workspace_id: null,
    problem: null,
    allowed_people: [],
    allowed_places: null,
    allowed_bots: [],
  }
  const bindings = [{ place: 'p2', workspace_id: WORKSPACE_ID }]
  assert.deepEqual(json, { name: 'bare', kind: 'socket', ...open, bindings, steps: ['Invite the bot'] })
  const added = { name: 'socket', kind: 'socket', token: 'secret', account: { id: '7', name: 'Bot' }, settings: {} }
  assert.deepEqual(channels.calls[0], ['add', added, { replace: false }])
  assert.deepEqual(order[1], ['check', 'socket', { token: 'secret' }])
})

test('GW-12 each field of a channel has its limit: the longest passes, one more is refused by name', async (t) => {
  const { call } = await openChat(t, {})
  const base = { kind: 'socket', token: 'secret' }
  const ids = (count: number) => Array.from({ length: count }, () => '1')
  const limits: [string, number, (length: number) => unknown][] = [
    ['kind', 40, (length) => 'k'.repeat(length)],
    ['name', 40, (length) => 'n'.repeat(length)],
    ['token', 500, (length) => 't'.repeat(length)],
    ['api_url', 2000, (length) => `https://a.test/${'x'.repeat(length - 15)}`],
    ['allowed_people', 500, ids],
    ['allowed_places', 500, ids],
    ['allowed_bots', 500, ids],
    ['allowed_people', 100, (length) => ['p'.repeat(length)]],
  ]
  for (const [field, most, make] of limits) {
    assert.equal((await call('POST /channels', { body: { ...base, [field]: make(most) } })).status, 201, field)
    const { status, json } = await call('POST /channels', { body: { ...base, [field]: make(most + 1) } })
    assert.equal(status, 400, field)
    assert.ok(json.error.message.includes(`"${field}`), json.error.message)
  }
  for (const wrong of [{ kind: '' }, { token: ' ' }, { name: 'Upper' }, { name: '-a' }, { allowed_people: [' '] }])
    assert.equal((await call('POST /channels', { body: { ...base, ...wrong } })).status, 400, JSON.stringify(wrong))
})

test('GW-12 owners see the lists of a channel and its whole problem, a viewer neither lists nor paths', async (t) => {
  const { call } = await openChat(t, {})
  const owners = (await call('GET /channels', { role: 'member' })).json.channels
  assert.deepEqual(owners[0], VIEW)
  const { allowed_people: _people, allowed_places: _places, allowed_bots: _bots, ...shown } = VIEW
  const [team, bare] = (await call('GET /channels', { role: 'viewer' })).json.channels
  assert.deepEqual(team, { ...shown, problem: 'cannot read "cert.pem"' })
  assert.deepEqual(Object.keys(bare), ['name', 'kind', 'account', 'workspace_id', 'bindings', 'problem'])
  assert.equal(bare.problem, null)
})

test('GW-12 removing a channel ends its deliveries; a chat is bound and unbound', async (t) => {
  const { call, channels, order } = await openChat(t, {})
  assert.equal((await call('DELETE /channels/team')).status, 204)
  assert.deepEqual(order, [
    ['wake', 1],
    ['endDeliveries', 'chat:team'],
    ['endDeliveries', 'chat:team (prompts)'],
  ])
  const place = 'p'.repeat(100)
  const bound = await call(`PUT /channels/team/bindings/${place}`, { body: { workspace_id: WORKSPACE_ID } })
  assert.deepEqual([bound.status, bound.json], [200, { channel: 'team', place, workspace_id: WORKSPACE_ID }])
  const tooLong = await call(`PUT /channels/team/bindings/${place}p`, { body: { workspace_id: WORKSPACE_ID } })
  assert.deepEqual([tooLong.status, tooLong.json.error.code], [400, 'invalid_request'])
  for (const workspace of ['', 'w'.repeat(101)])
    assert.equal((await call('PUT /channels/team/bindings/p', { body: { workspace_id: workspace } })).status, 400)
  assert.equal((await call('PUT /channels/team/bindings/p', { body: { workspace_id: 'w'.repeat(100) } })).status, 200)
  assert.equal((await call('DELETE /channels/team/bindings/p1')).status, 204)
  assert.deepEqual(channels.take(), [
    ['remove', 'team'],
    ['bind', { channel: 'team', place, workspaceId: WORKSPACE_ID }],
    ['bind', { channel: 'team', place: 'p', workspaceId: 'w'.repeat(100) }],
    ['unbind', 'team', 'p1'],
  ])
})

test('GW-4 the list of pairings shows the code only while a person waits', async (t) => {
  const { call, pairings } = await openChat(t, { decide: { ...PAIRING, state: 'denied', decidedBy: 'admin' } })
  assert.deepEqual((await call('GET /pairings')).json, { pairings: [{ ...PAIRING_VIEW, held: 2 }] })
  const { json } = await call('POST /pairings/ABC/deny')
  assert.deepEqual(json, { ...PAIRING_VIEW, state: 'denied', code: null, decided_by: 'admin' })
  const decision = { state: 'denied', role: 'user', by: 'admin', mayChangeOwners: true }
  assert.deepEqual(pairings.take(), [['list'], ['decide', 'ABC', decision]])
})

test('GW-4 PL-12 a person is let in as a user, or by an admin as the owner that the approval names, and the door learns of it', async (t) => {
  const { call, pairings, order } = await openChat(t, {
    decide: { ...PAIRING, state: 'approved', decidedBy: 'member' },
  })
  const { status, json } = await call('POST /pairings/ABC/approve', { role: 'member' })
  assert.deepEqual([status, json], [200, { ...PAIRING_VIEW, state: 'approved', code: null, decided_by: 'member' }])
  const owner = { body: { role: 'owner' } }
  assert.equal((await call('POST /pairings/team%2F9/approve', { role: 'member', ...owner })).status, 403)
  await call('POST /pairings/team%2F9/approve', owner)
  assert.deepEqual(pairings.calls, [
    ['decide', 'ABC', { state: 'approved', by: 'member', role: 'user', mayChangeOwners: false }],
    ['decide', 'team/9', { state: 'approved', by: 'admin', role: 'owner', mayChangeOwners: true }],
  ])
  assert.deepEqual(order, [
    ['wake', 1],
    ['wake', 2],
  ])
  assert.equal((await call('POST /pairings/ABC/approve', { body: { role: 'admin' } })).status, 400)
})
