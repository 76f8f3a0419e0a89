/** Pairings in the store: one for each person and channel, their limits, their time, and what a decision does. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createChannels } from '../../../src/doors/chat/store/channels.ts'
import { createPairings } from '../../../src/doors/chat/store/pairings.ts'
import { readPairings } from '../../../src/views/channels.ts'
import { readNeedSummary, readNeeds } from '../../../src/views/needs/needs.ts'
import { hasCode } from '../inbox/harness.ts'
import type { ChatStoreUnderTest } from './under-test.ts'

const DAY_MS = 24 * 3600_000
const APPROVED = { state: 'approved', role: 'user', by: 'admin' } as const

export function pairingTests(opened: ChatStoreUnderTest): void {
  const pairings = () => createPairings(opened.store)
  const request = (channel: string, person: string) => pairings().request({ channel, person, name: person })
  const hold = (channel: string, person: string, id: string) =>
    pairings().hold({ channel, person }, { place: 'p', id, message: id })
  const listed = async (channel: string) =>
    (await readPairings(opened.store)).pairings.filter((one) => one.channel === channel)

  test('GW-4 a code has eight letters and digits that do not look alike; a person has one pairing for each channel', async () => {
    const first = await request('pair', 'ada')
    assert.match(first?.pairing.code ?? '', /^[A-HJKMNP-Z2-9]{8}$/)
    const again = await Promise.all([request('pair', 'ada'), request('pair', 'ada')])
    assert.deepEqual(
      again.map((one) => [one?.isNew, one?.pairing]),
      [
        [false, first?.pairing],
        [false, first?.pairing],
      ],
    )
    const others = [await request('pair', 'bob'), await request('pair too', 'ada')]
    assert.equal(new Set([first, ...others].map((one) => one?.pairing.code)).size, 3)
    const both = await Promise.all([request('pair', 'eve'), request('pair', 'eve')])
    assert.deepEqual(both.map((one) => one?.isNew).toSorted(), [false, true], 'two first messages at the same moment')
  })

  test('GW-4 at most 200 people of a channel wait at once', async () => {
    const fill = `insert into pairings (channel, person, name, code, state, role, created_at)
      with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 199)
      select 'crowd', 'p' || n, '', 'CROWD' || n, 'pending', 'user', now_ms() from numbers`
    await opened.sql(fill)
    assert.equal((await request('crowd', 'last'))?.isNew, true)
    assert.deepEqual([await request('crowd', 'late'), (await request('calm', 'late'))?.isNew], [undefined, true])
    await pairings().decide('CROWD1', APPROVED)
    assert.equal((await request('crowd', 'late'))?.isNew, true)
  })

  test('GW-4 a pairing without a decision ends after seven days, with its held messages, when the next person comes', async () => {
    const approved = await request('week', 'approved')
    await pairings().decide(approved?.pairing.code ?? '', APPROVED)
    for (const person of ['waits', 'later']) await request('week', person)
    for (const person of ['waits', 'later', 'approved']) await hold('week', person, person)
    const older = (ms: number, person: string) =>
      opened.sql(`update pairings set created_at = created_at - $1 where channel = 'week' and person = $2`, ms, person)
    for (const person of ['waits', 'approved']) await older(7 * DAY_MS + 60_000, person)
    await older(7 * DAY_MS - 60_000, 'later')
    await request('week', 'new')
    assert.deepEqual((await listed('week')).map(({ person, held }) => [person, held]).toSorted(), [
      ['approved', 1],
      ['later', 1],
      ['new', 0],
    ])
  })

  test('GW-4 a decision counts for that person in that channel: an approval releases, the oldest first, a denial removes', async () => {
    const codes: string[] = []
    for (const [channel, person] of [
      ['to a', 'ada'],
      ['to a', 'eve'],
      ['to b', 'ada'],
    ] as const) {
      codes.push((await request(channel, person))?.pairing.code ?? '')
      for (const id of ['2', '1']) await hold(channel, person, `${person}${id}`)
    }
    const released = async (channel: string) => (await pairings().released(channel)).map(({ id }) => id)
    assert.deepEqual(await released('to a'), [])
    await pairings().decide(` ${codes[0]?.toLowerCase()} `, APPROVED)
    assert.deepEqual([(await released('to a')).toSorted(), await released('to b')], [['ada1', 'ada2'], []])
    await pairings().dropHeld('to b', { place: 'p', id: 'ada1' })
    await pairings().dropHeld('to a', { place: 'q', id: 'ada1' })
    assert.equal((await released('to a')).length, 2)
    await pairings().dropHeld('to a', { place: 'p', id: 'ada1' })
    assert.deepEqual(await released('to a'), ['ada2'])
    const denied = await pairings().decide(codes[1] ?? '', { ...APPROVED, state: 'denied', by: 'owner' })
    assert.deepEqual([denied.state, denied.decidedBy], ['denied', 'owner'])
    assert.deepEqual(
      (await listed('to a')).map(({ person, held }) => [person, held]),
      [
        ['ada', 1],
        ['eve', 0],
      ],
    )
  })

  test('GW-4 PL-12 a person who never wrote is let in by channel and id; owners are changed only with that right', async () => {
    const owner = { ...APPROVED, role: 'owner', mayChangeOwners: true } as const
    await assert.rejects(pairings().decide('let in/ada', owner), hasCode('not_found'))
    const channels = createChannels(opened.store)
    await channels.add({ name: 'let in', kind: 'telegram', token: 't', settings: {} })
    const made = await pairings().decide('let in/ada/x', owner)
    assert.deepEqual([made.person, made.role, made.state, made.decidedBy], ['ada/x', 'owner', 'approved', 'admin'])
    const refused = { code: 'forbidden', message: 'only an admin makes an owner of a bot, or changes one' }
    await assert.rejects(pairings().decide('let in/eve', { ...APPROVED, role: 'owner' }), refused)
    for (const state of ['approved', 'denied'] as const)
      await assert.rejects(pairings().decide('let in/ada/x', { ...APPROVED, state }), refused)
    for (const id of ['none/ada', 'let in/', '/ada', 'ada', '', `let in/${'x'.repeat(101)}`])
      await assert.rejects(pairings().decide(id, owner), hasCode('not_found'), id)
    assert.equal((await listed('let in')).length, 1)
    await channels.remove('let in')
  })

  test('CV-6 GW-4 people who wait are needs of the workspace of their bot, with the messages that are held', async () => {
    const workspaceId = await opened.workspace()
    const channels = createChannels(opened.store)
    const channel = { kind: 'telegram', token: 't', settings: {} }
    await channels.add({ ...channel, name: 'of a workspace', workspaceId })
    await channels.add({ ...channel, name: 'of none' })
    for (const person of ['ada', 'bob']) await request('of a workspace', person)
    await request('of none', 'zoe')
    await pairings().decide((await request('of a workspace', 'bob'))?.pairing.code ?? '', APPROVED)
    await hold('of a workspace', 'ada', 'm1')
    const read = async (of?: string) => {
      const { needs_you } = await readNeeds(opened.store, { workspaceId: of, workspaces: [] })
      return needs_you.map(({ kind, workspace_id, reason, to }) => [kind, workspace_id, reason, to])
    }
    const { mark } = await readNeedSummary(opened.store, [], workspaceId)
    const ada = 'ada wants to talk to the bot "of a workspace"; 1 message is held'
    assert.deepEqual(await read(workspaceId), [['pairing', workspaceId, ada, 'of a workspace']])
    const zoe = 'zoe wants to talk to the bot "of none"; 0 messages are held'
    const all = await read()
    assert.deepEqual(
      all.find(([, , , to]) => to === 'of none'),
      ['pairing', '', zoe, 'of none'],
    )
    await hold('of a workspace', 'ada', 'm2')
    assert.notEqual((await readNeedSummary(opened.store, [], workspaceId)).mark, mark, 'one more message is held')
    for (const name of ['of a workspace', 'of none']) await channels.remove(name)
  })
}
