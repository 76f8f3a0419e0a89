/** The chat log in the store: places, the last message of each, whom to ask, and what is forgotten. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createChannels } from '../../../src/doors/chat/store/channels.ts'
import { createChatLog } from '../../../src/doors/chat/store/chat-log.ts'
import { createPromptLog } from '../../../src/doors/chat/store/prompt-log.ts'
import type { ChatStoreUnderTest } from './under-test.ts'

const DAY_MS = 24 * 3600_000

export function chatLogTests(opened: ChatStoreUnderTest): void {
  const log = () => createChatLog(opened.store)

  test('GW-5 the last message seen is the latest one: an older one does not replace it, one of the same time does', async () => {
    const key = { channel: 'seen', place: 'p' }
    await log().place(key, '{}')
    const seen: (string | undefined)[] = []
    for (const [id, atMs] of [
      ['m1', -1],
      ['m2', 2000],
      ['m3', 1999],
      ['m4', 2000],
      ['m5', 2001],
    ] as const) {
      await log().markSeen(key, { id, atMs })
      seen.push((await log().place(key, '{}')).seen?.id)
    }
    assert.deepEqual(seen, ['m1', 'm2', 'm2', 'm4', 'm5'])
  })

  test('GW-15 a live message is known until it ends, with its message', async () => {
    const key = (channel: string, id: string) => ({ channel, place: 'p', id, messageId: id, person: 'ada' })
    for (const id of ['a', 'b', 'c']) await log().record({ ...key('live', id), taskId: `task of ${id}` })
    await log().record({ ...key('live beside', 'a'), taskId: 'another' })
    for (const id of ['a', 'b']) await log().setProgress(key('live', id), `shown ${id}`)
    await log().setProgress(key('live beside', 'a'), 'beside')
    await log().close(key('live', 'b'))
    const shown = async () => (await log().withProgress('live')).map(({ id, progressId }) => [id, progressId]).sort()
    assert.deepEqual(await shown(), [
      ['a', 'shown a'],
      ['b', 'shown b'],
    ])
    await log().setProgress(key('live', 'a'), undefined)
    assert.deepEqual(await shown(), [['b', 'shown b']])
  })

  test('GW-5 a place keeps its conversation when its description changes', async () => {
    const key = { channel: 'described', place: 'p' }
    const first = await log().place(key, 'old')
    assert.deepEqual([first.seen, first.guard], [undefined, { bots: 0, said: false }])
    assert.deepEqual(await log().place(key, 'new'), { ...first, description: 'new' })
  })

  test('GW-10 a channel lists its places with a message and its bound places, the latest first, at most 5000', async () => {
    const channels = createChannels(opened.store)
    const workspaceId = await opened.workspace()
    for (const name of ['places', 'places too']) {
      await channels.add({ name, kind: 'telegram', token: 't', settings: {} })
      for (const place of ['early', 'late', 'bound', 'unseen']) await log().place({ channel: name, place }, '{}')
    }
    await channels.bind({ channel: 'places', place: 'bound', workspaceId })
    await channels.bind({ channel: 'places too', place: 'unseen', workspaceId })
    for (const [place, atMs] of [
      ['early', 1],
      ['late', 2],
    ] as const)
      await log().markSeen({ channel: 'places', place }, { id: 'm', atMs })
    const names = async () => (await log().places('places')).map(({ place }) => place)
    // The engines sort a place without a message differently.
    assert.deepEqual(
      (await names()).filter((place) => place !== 'bound'),
      ['late', 'early'],
    )
    assert.equal((await names()).length, 3)
    await opened.sql(`insert into chat_places (channel, place, description, context_id, seen_id, seen_at)
      with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 5001)
      select 'places', 'p' || n, '{}', 'c' || n, 'm', n from numbers`)
    assert.equal((await names()).length, 5000)
    for (const name of ['places', 'places too']) await channels.remove(name)
  })

  test('GW-10 the last message of a place is its latest one with a task, and open messages are at most 1000', async () => {
    const key = { channel: 'last', place: 'p' }
    const record = (id: string, taskId?: string, place = 'p') =>
      log().record({ ...key, place, id, messageId: id, person: 'ada', ...(taskId !== undefined && { taskId }) })
    await record('2', 'early')
    await opened.sql(`update chat_messages set received_at = received_at - 1000 where channel = 'last'`)
    await record('1', 'late')
    await record('8')
    await record('9', 'elsewhere', 'q')
    assert.equal((await log().lastOf(key))?.taskId, 'late')
    assert.deepEqual(
      (await log().openIn(key)).map(({ id }) => id),
      ['2', '1'],
    )
    assert.deepEqual(
      [await log().handled({ ...key, id: '8' }), await log().handled({ ...key, id: '7' })],
      [true, false],
    )
    await opened.sql(`insert into chat_messages (channel, place, id, message_id, person, task_id, state, received_at)
      with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < 1001)
      select 'many', 'p', 'm' || n, 'x', 'ada', 't2', 'open', n from numbers`)
    const open = await log().open('many')
    assert.deepEqual([open.length, open[0]?.id, open.at(-1)?.id], [1000, 'm1', 'm1000'])
    await opened.sql(`delete from chat_messages where channel = 'many'`)
  })

  test('GW-10 closed messages and prompts are forgotten after seven days, not earlier; open messages are kept', async () => {
    const closed = { channel: 'week', place: 'p', id: 'closed', messageId: 'x', person: 'ada' }
    const open = { ...closed, id: 'open', taskId: 't' }
    for (const message of [closed, open]) await log().record(message)
    await createPromptLog(opened.store).add({
      id: 'week',
      channel: 'week',
      place: 'p',
      taskId: 't',
      askId: 'week',
      text: 'may it?',
    })
    const older = async (ms: number) => {
      await opened.sql(`update chat_messages set received_at = received_at - $1 where channel = 'week'`, ms)
      await opened.sql(`update chat_prompts set created_at = created_at - $1 where channel = 'week'`, ms)
      await log().prune()
    }
    const known = async () => [
      await log().handled(closed),
      await log().handled(open),
      (await createPromptLog(opened.store).find('week'))?.id,
    ]
    await older(7 * DAY_MS - 60_000)
    assert.deepEqual(await known(), [true, true, 'week'])
    await older(60_001)
    assert.deepEqual(await known(), [false, true, undefined])
  })
}
