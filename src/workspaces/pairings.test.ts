import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openTestStore, START_MS } from '../../test/harness/sqlite-store.ts'
import { createChannels } from './channels.ts'
import { createPairings } from './pairings.ts'

const DAY_MS = 24 * 3600_000
const ADA = { channel: 'a', person: 'ada' }
const APPROVED = { state: 'approved', role: 'user', by: 'admin' } as const

function openPairings(t: TestContext) {
  const opened = openTestStore(t)
  let codes = 0
  const pairings = createPairings(opened.store, () => `CODE${++codes}`)
  const hold = (channel: string, person: string, id: string) =>
    pairings.hold({ channel, person }, { place: 'p', id, message: `{"id":"${id}"}` })
  const held = async () =>
    (await opened.run('select channel, id from held_messages order by channel, id')).map(
      ({ channel, id }) => `${channel} ${id}`,
    )
  return { ...opened, pairings, hold, held, channels: createChannels(opened.store) }
}

test('GW-4 a code has eight letters and digits that do not look alike', async (t) => {
  const pairings = createPairings(openTestStore(t).store)
  const codes = new Set<string>()
  for (let n = 0; n < 60; n++) {
    const made = await pairings.request({ channel: 'a', person: String(n), name: '' })
    codes.add(made?.pairing.code ?? '')
  }
  assert.equal(codes.size, 60)
  for (const code of codes) assert.match(code, /^[A-HJKMNP-Z2-9]{8}$/)
})

test('GW-4 a person gets one pairing for each channel, and it is stored whole', async (t) => {
  const { pairings, clock } = openPairings(t)
  const first = {
    ...ADA,
    name: 'Ada',
    code: 'CODE1',
    state: 'pending',
    role: 'user',
    createdAtMs: START_MS,
  }
  assert.deepEqual(await pairings.request({ ...ADA, name: 'Ada' }), { pairing: first, isNew: true })
  clock.advance(5)
  assert.deepEqual(await pairings.request({ ...ADA, name: 'Ada L.' }), { pairing: first, isNew: false })
  const others = [
    { ...first, channel: 'b', code: 'CODE2', createdAtMs: START_MS + 5 },
    { ...first, person: 'bob', code: 'CODE3', createdAtMs: START_MS + 5 },
  ]
  for (const other of others) {
    const { channel, person } = other
    assert.deepEqual(await pairings.request({ channel, person, name: 'Ada' }), { pairing: other, isNew: true })
  }
  assert.deepEqual([await pairings.find(ADA), await pairings.find({ channel: 'b', person: 'bob' })], [first, undefined])
  assert.deepEqual(await pairings.find({ channel: 'a', person: 'bob' }), others[1])
})

test('GW-4 two first messages of a person at the same moment make one pairing', async (t) => {
  const { pairings } = openPairings(t)
  const made = await Promise.all([pairings.request({ ...ADA, name: 'Ada' }), pairings.request({ ...ADA, name: 'Ada' })])
  assert.deepEqual(
    made.map((one) => [one?.pairing.code, one?.isNew]),
    [
      ['CODE1', true],
      ['CODE1', false],
    ],
  )
})

test('GW-4 at most 200 people of a channel wait at once', async (t) => {
  const { pairings, run } = openPairings(t)
  const fill = (channel: string, count: number, state: string) =>
    run(`insert into pairings (channel, person, name, code, state, role, created_at)
      with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${count})
      select '${channel}', '${state}' || n, '', '${`${channel} ${state} `.toUpperCase()}' || n, '${state}', 'user', now_ms() from numbers`)
  await fill('a', 199, 'pending')
  await fill('a', 10, 'approved')
  await fill('b', 10, 'pending')
  assert.equal((await pairings.request({ ...ADA, name: '' }))?.isNew, true)
  assert.equal(await pairings.request({ channel: 'a', person: 'late', name: '' }), undefined)
  assert.equal((await pairings.request({ channel: 'b', person: 'late', name: '' }))?.isNew, true)
  await pairings.decide('A PENDING 1', APPROVED)
  assert.equal((await pairings.request({ channel: 'a', person: 'late', name: '' }))?.isNew, true)
})

test('GW-4 a pairing without a decision ends after seven days, with its held messages, when the next person comes', async (t) => {
  const { pairings, clock, hold, held } = openPairings(t)
  const request = (channel: string, person: string) => pairings.request({ channel, person, name: '' })
  for (const channel of ['a', 'b']) {
    for (const person of ['waits', 'approved']) {
      await request(channel, person)
      await hold(channel, person, person)
    }
  }
  await request('a', 'alone')
  await hold('a', 'alone', 'alone')
  await pairings.decide('CODE2', APPROVED)
  await pairings.decide('CODE4', APPROVED)
  clock.advance(1)
  await request('a', 'later')
  await hold('a', 'later', 'later')
  clock.advance(7 * DAY_MS - 1)
  await request('a', 'in time')
  assert.deepEqual(await held(), ['a alone', 'a approved', 'a later', 'a waits', 'b approved', 'b waits'])
  clock.advance(1)
  await request('a', 'too late')
  assert.deepEqual(await held(), ['a approved', 'a later', 'b approved', 'b waits'])
  assert.deepEqual(
    (await pairings.list()).map(({ channel, person }) => `${channel} ${person}`),
    ['a approved', 'b approved', 'b waits', 'a later', 'a in time', 'a too late'],
  )
})

test('GW-4 five messages of a person are held in each channel; the same message again changes nothing', async (t) => {
  const { hold, held } = openPairings(t)
  for (const id of ['1', '2', '3', '4']) await hold('a', 'ada', id)
  for (const id of ['b1', 'b2']) await hold('b', 'ada', id)
  for (const id of ['e1', 'e2']) await hold('a', 'eve', id)
  assert.deepEqual(
    [await hold('a', 'ada', '5'), await hold('a', 'ada', '6'), await hold('a', 'ada', '5')],
    [true, false, true],
  )
  assert.deepEqual(await held(), ['a 1', 'a 2', 'a 3', 'a 4', 'a 5', 'a e1', 'a e2', 'b b1', 'b b2'])
})

test('GW-4 an approval releases the messages of that person in that channel, the oldest first, until they are handled', async (t) => {
  const { pairings, clock, hold } = openPairings(t)
  for (const [channel, person] of [
    ['a', 'ada'],
    ['a', 'eve'],
    ['b', 'ada'],
    ['b', 'eve'],
  ] as const) {
    await pairings.request({ channel, person, name: '' })
    for (const id of ['2', '1']) await hold(channel, person, `${person}${id}`)
  }
  clock.advance(1)
  await hold('a', 'ada', 'ada0')
  assert.deepEqual(await pairings.released('a'), [])
  await pairings.decide('CODE1', APPROVED)
  await pairings.decide('CODE4', APPROVED)
  const released = ['ada1', 'ada2', 'ada0'].map((id) => ({ ...ADA, place: 'p', id, message: `{"id":"${id}"}` }))
  assert.deepEqual(await pairings.released('a'), released)
  assert.deepEqual(
    (await pairings.released('b')).map(({ id }) => id),
    ['eve1', 'eve2'],
  )
  for (const [channel, place, id] of [
    ['a', 'q', 'ada1'],
    ['a', 'p', 'none'],
    ['b', 'p', 'ada1'],
  ] as const)
    await pairings.dropHeld(channel, { place, id })
  assert.deepEqual(await pairings.released('a'), released)
  await pairings.dropHeld('a', { place: 'p', id: 'ada1' })
  assert.deepEqual(await pairings.released('a'), released.slice(1))
  assert.deepEqual(
    (await pairings.released('b')).map(({ id }) => id),
    ['eve1', 'eve2'],
  )
})

test('GW-4 a denial removes the held messages of that person in that channel only', async (t) => {
  const { pairings, hold, held } = openPairings(t)
  for (const [channel, person] of [
    ['a', 'ada'],
    ['a', 'eve'],
    ['b', 'ada'],
  ] as const) {
    await pairings.request({ channel, person, name: '' })
    await hold(channel, person, person)
  }
  const denied = await pairings.decide(' code1 ', { ...APPROVED, state: 'denied', by: 'owner' })
  assert.deepEqual(denied, {
    ...ADA,
    name: '',
    code: 'CODE1',
    state: 'denied',
    role: 'user',
    decidedBy: 'owner',
    createdAtMs: START_MS,
  })
  assert.deepEqual(await held(), ['a eve', 'b ada'])
  await pairings.decide('CODE2', APPROVED)
  assert.deepEqual(await held(), ['a eve', 'b ada'])
})

test('GW-4 PL-12 a person who never wrote is let in by channel and id; owners are changed only with that right', async (t) => {
  const { pairings, channels } = openPairings(t)
  const owner = { ...APPROVED, role: 'owner', mayChangeOwners: true } as const
  await assert.rejects(pairings.decide('a/ada', owner), { code: 'not_found', message: 'there is no pairing "a/ada"' })
  for (const name of ['a', 'b']) await channels.add({ name, kind: 'telegram', token: 't', settings: {} })
  const made = await pairings.decide('a/ada/x', owner)
  assert.deepEqual(
    [made.channel, made.person, made.name, made.role, made.state, made.decidedBy],
    [...['a', 'ada/x', 'ada/x', 'owner', 'approved', 'admin']],
  )
  const { code } = made
  const refused = { code: 'forbidden', message: 'only an admin makes an owner of a bot, or changes one' }
  await assert.rejects(pairings.decide('a/eve', { ...APPROVED, role: 'owner' }), refused)
  for (const state of ['approved', 'denied'] as const)
    await assert.rejects(pairings.decide('a/ada/x', { ...APPROVED, state }), refused)
  assert.equal((await pairings.decide('a/ada/x', { ...APPROVED, mayChangeOwners: true })).code, code)
  for (const id of ['c/ada', 'a/', '/ada', 'ada', '', `a/${'x'.repeat(101)}`])
    await assert.rejects(pairings.decide(id, owner), { code: 'not_found' }, id)
  assert.equal((await pairings.list()).length, 1)
})

test('CV-6 the list of pairings counts held messages; the pending ones name the workspace of their bot', async (t) => {
  const { pairings, channels, clock, hold, addWorkspace, run } = openPairings(t)
  const workspaceId = await addWorkspace()
  const channel = { kind: 'telegram', token: 't', settings: {} }
  await channels.add({ ...channel, name: 'a', workspaceId })
  await channels.add({ ...channel, name: 'b' })
  for (const [name, person] of [
    ['b', 'zoe'],
    ['a', 'eve'],
    ['a', 'bob'],
    ['a', 'ada'],
  ] as const) {
    if (person === 'eve') clock.advance(1)
    await pairings.request({ channel: name, person, name: person })
  }
  await hold('a', 'ada', '1')
  await hold('a', 'ada', '2')
  await hold('b', 'ada', '3')
  await hold('a', 'eve', '4')
  await pairings.decide('CODE3', APPROVED)
  const brief = (all: readonly { person: string; held: number }[]) => all.map(({ person, held }) => [person, held])
  assert.deepEqual(brief(await pairings.list()), [
    ['zoe', 0],
    ['ada', 2],
    ['bob', 0],
    ['eve', 1],
  ])
  const pending = await pairings.listPending()
  assert.deepEqual(brief(pending), [
    ['zoe', 0],
    ['ada', 2],
    ['eve', 1],
  ])
  assert.deepEqual(
    pending.map((one) => one.workspaceId),
    [undefined, workspaceId, workspaceId],
  )
  assert.equal('workspaceId' in (pending[0] ?? {}), false)
  assert.deepEqual(await pairings.listPending(workspaceId), pending.slice(1))
  assert.deepEqual(await pairings.listPending('ws_other'), [])
  await run(`insert into pairings (channel, person, name, code, state, role, created_at)
    with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 1000)
    select 'a', 'many' || n, '', 'many' || n, 'pending', 'user', now_ms() from numbers`)
  assert.deepEqual([(await pairings.list()).length, (await pairings.listPending()).length], [1000, 1000])
})
