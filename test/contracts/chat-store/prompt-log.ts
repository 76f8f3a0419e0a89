/** The prompts in the store, and the owners who are asked. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createArrivals } from '../../../src/doors/chat/store/arrivals.ts'
import { createChannels } from '../../../src/doors/chat/store/channels.ts'
import { createChatLog } from '../../../src/doors/chat/store/chat-log.ts'
import { createPairings } from '../../../src/doors/chat/store/pairings.ts'
import { createPromptLog, type Prompt } from '../../../src/doors/chat/store/prompt-log.ts'
import { hasCode } from '../inbox/harness.ts'
import type { ChatStoreUnderTest } from './under-test.ts'

export function promptLogTests(opened: ChatStoreUnderTest): void {
  const prompts = () => createPromptLog(opened.store)
  const pairings = () => createPairings(opened.store)
  const log = () => createChatLog(opened.store)
  const ids = (found: readonly Prompt[]) => found.map(({ id }) => id)

  test('GW-14 an ask has one prompt and one notice in each place, and a removed prompt is gone', async () => {
    const prompt = { id: 'a1', channel: 'asks', place: 'p', taskId: 'task', askId: 'ask', text: 'may it?' }
    assert.deepEqual(await prompts().add(prompt), prompt)
    assert.equal((await prompts().add({ ...prompt, id: 'a2' })).id, 'a1')
    await prompts().add({ ...prompt, id: 'a3', place: 'q' })
    await prompts().add({ ...prompt, id: 'a4', isNotice: true })
    await prompts().add({ ...prompt, id: 'a5', askId: 'other ask' })
    await prompts().add({ ...prompt, id: 'a6', channel: 'asks beside' })
    assert.deepEqual(ids(await prompts().ofAsk('ask')), ['a1', 'a3', 'a4', 'a6'])
    assert.deepEqual(ids(await prompts().ofChannel('asks')), ['a1', 'a3', 'a4', 'a5'])
    assert.equal((await prompts().find('a4'))?.isNotice, true)
    for (const id of ['a1', 'a3', 'a4', 'a6']) assert.equal(await prompts().setMessage(id, 'message'), true)
    assert.deepEqual(ids(await prompts().inPlace({ channel: 'asks', place: 'p' })), ['a1', 'a5'])
    assert.deepEqual(ids(await prompts().ofMessage('asks', 'message')), ['a1', 'a3'])
    for (let n = 0; n < 2; n++) await prompts().note('a1', ' (A note.)')
    assert.equal((await prompts().find('a1'))?.text, 'may it? (A note.)')
    assert.deepEqual([await prompts().remove('a1'), await prompts().remove('a1')], [true, false])
    assert.equal(await prompts().find('a1'), undefined)
    assert.equal(await prompts().setMessage('a1', 'message'), false)
  })

  test('GW-14 the prompts of a task are those of its permissions; the others keep what they are about', async () => {
    const prompt = { id: 'b1', channel: 'kinds', place: 'p', taskId: 'kinds', askId: 'b1', text: 'may it?' }
    const budget = { id: 'b', askedAtMs: 1, isAsked: true, toUsd: 2 }
    const pairing = { person: 'eve', code: 'K7QF2M9X' }
    await prompts().add(prompt)
    await prompts().add({ ...prompt, id: 'b2', askId: 'b2', budget })
    await prompts().add({ ...prompt, id: 'b3', askId: 'b3', pairing })
    assert.deepEqual(ids(await prompts().ofTask('kinds')), ['b1'])
    assert.deepEqual(
      (await prompts().ofChannel('kinds')).map((one) => one.budget ?? one.pairing),
      [undefined, budget, pairing],
    )
  })

  test('GW-14 a prompt that was not sent goes to the new id of its place, one that was sent stays', async () => {
    const channels = createChannels(opened.store)
    await channels.add({ name: 'moves', kind: 'telegram', token: 't', settings: {} })
    const prompt = { channel: 'moves', place: 'old', taskId: 't', text: 'may it?' }
    for (const id of ['c1', 'c2']) await prompts().add({ ...prompt, id, askId: id })
    await prompts().setMessage('c1', 'message')
    await channels.move('moves', 'old', 'new')
    assert.deepEqual([(await prompts().find('c1'))?.place, (await prompts().find('c2'))?.place], ['old', 'new'])
    await channels.remove('moves')
  })

  test('GW-14 owners are approved owners of this channel, each with the direct chat of the last message', async () => {
    const people = [
      ['ada', 'approved', 'owner'],
      ['bob', 'approved', 'owner'],
      ['user', 'approved', 'user'],
      ['no', 'denied', 'owner'],
    ]
    for (const [person = '', state = '', role = ''] of people)
      await opened.sql(
        `insert into pairings (channel, person, name, code, state, role, created_at) values ('owners', $1, $1, $2, $3, $4, 0)`,
        ...[person, `OWNERS ${person}`, state, role],
      )
    const writes = async (place: string, person: string, isDirect: boolean) => {
      const arrival = { channel: 'owners', place, id: place, messageId: place, person, isDirect }
      await createArrivals(opened.store).arrive({ ...arrival, description: '{}', message: '{}' })
    }
    for (const [index, place] of ['early', 'late'].entries()) {
      await writes(place, 'ada', true)
      await log().markSeen({ channel: 'owners', place }, { id: 'm', atMs: index + 1 })
    }
    await writes('group', 'bob', false)
    await writes('of user', 'user', true)
    await writes('of no', 'no', true)
    assert.deepEqual(await pairings().owners('owners'), [
      { person: 'ada', name: 'ada', place: 'late' },
      { person: 'bob', name: 'bob' },
    ])
    assert.deepEqual(await pairings().owners('owners beside'), [])
    const places = ['group', 'late', 'of user', 'of no', 'elsewhere']
    const found = await Promise.all(places.map((place) => pairings().hasOwner('owners', place)))
    assert.deepEqual(found, [true, true, false, false, false])
    // A place keeps its person when only its description is known.
    await log().place({ channel: 'owners', place: 'late' }, '{"name":"new"}')
    assert.equal((await pairings().owners('owners'))[0]?.place, 'late')
    assert.equal((await log().find({ channel: 'owners', place: 'late' }))?.description, '{"name":"new"}')
  })

  test('GW-14 people who wait have written something; a decision in a chat is the first one, or is refused', async () => {
    const key = (person: string) => ({ channel: 'waiting', person })
    const codes: string[] = []
    for (const person of ['eve', 'bob', 'silent']) {
      const request = await pairings().request({ ...key(person), name: person })
      codes.push(String(request?.pairing.code))
      if (person === 'silent') continue
      for (const place of ['p', 'q']) await pairings().hold(key(person), { place, id: person, message: '{}' })
    }
    const [eve = '', bob = ''] = codes
    const waiting = async () =>
      (await pairings().waiting('waiting')).map(({ person, code, place }) => [person, code, place])
    assert.deepEqual((await waiting()).sort(), [
      ['bob', bob, 'p'],
      ['eve', eve, 'p'],
    ])
    assert.deepEqual(await pairings().waiting('waiting beside'), [])
    await pairings().decide(eve, { state: 'denied', role: 'user', by: 'admin' })
    const inChat = { state: 'approved', role: 'user', by: 'Ada', isFirst: true } as const
    await assert.rejects(pairings().decide(eve, inChat), hasCode('not_found'))
    assert.equal((await pairings().find(key('eve')))?.state, 'denied')
    await pairings().decide(bob, inChat)
    assert.equal((await pairings().find(key('bob')))?.state, 'approved')
    assert.deepEqual(await waiting(), [])
  })
}
