/** Messages that wait in the line of their place: order, albums, edits and deletions, limits. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type ArrivalKey,
  type Arrivals,
  CHANNEL_WAITING_MAX,
  createArrivals,
  PLACE_WAITING_MAX,
} from '../../../src/doors/chat/store/arrivals.ts'
import { createChatLog } from '../../../src/doors/chat/store/chat-log.ts'
import { createPairings } from '../../../src/doors/chat/store/pairings.ts'
import type { ChatStoreUnderTest } from './under-test.ts'

interface Given {
  readonly channel: string
  readonly place?: string
  readonly id: string
  readonly text?: string
  readonly groupId?: string
  readonly author?: string
  readonly isAddressed?: boolean
}

const arrivalOf = ({ channel, place = 'p', id, text = id, groupId, author = 'ada', isAddressed = true }: Given) => ({
  ...{ channel, place, id, messageId: `m-${id}`, person: author, description: '{}', isDirect: false },
  message: JSON.stringify({
    ...{ id, messageId: `m-${id}`, text, files: [`file of ${id}`], author: { id: author }, isAddressed },
    ...(groupId !== undefined && { groupId }),
  }),
})

export function arrivalTests(opened: ChatStoreUnderTest): void {
  const log = () => createChatLog(opened.store)
  const arrivals = () => createArrivals(opened.store)
  const arrive = async (given: Given) => {
    const taken = await arrivals().arrive(arrivalOf(given))
    assert.ok(typeof taken === 'object', String(taken))
    return taken
  }
  const shown = (stored: string | undefined) => {
    if (stored === undefined) return undefined
    const { text, files, isAddressed, isWithdrawn } = JSON.parse(stored)
    return [text, files.join(), isAddressed, ...(isWithdrawn ? ['withdrawn'] : [])]
  }
  const allOf = async (channel: string) => {
    const found: string[] = []
    for (let after: string | undefined; ; ) {
      const page = await arrivals().waiting(channel, after)
      for (const key of page) found.push(JSON.parse((await arrivals().read(key)) ?? '{}').id)
      after = page.at(-1)?.arrival
      if (after === undefined) return found
    }
  }

  test('GW-13 a message that arrives is kept, in order, until it is recorded; a copy of it is not new', async () => {
    for (const id of ['b', 'a']) await arrive({ channel: 'arrivals', id })
    await arrive({ channel: 'arrivals beside', id: 'b' })
    assert.equal(await arrivals().arrive(arrivalOf({ channel: 'arrivals', id: 'b' })), 'known')
    assert.deepEqual(await allOf('arrivals'), ['b', 'a'])
    assert.equal(await log().handled(arrivalOf({ channel: 'arrivals', id: 'a' })), true)
    const b = arrivalOf({ channel: 'arrivals', id: 'b' })
    assert.equal(await log().record(b), b.message)
    assert.equal(await log().record(b), undefined)
    await log().record({ ...arrivalOf({ channel: 'arrivals', id: 'a' }), taskId: 'task of a' })
    assert.equal(await arrivals().arrive(b), 'known')
    assert.deepEqual(await allOf('arrivals'), [])
    assert.deepEqual(
      (await log().open('arrivals')).map(({ id, taskId }) => [id, taskId]),
      [['a', 'task of a']],
    )
    assert.deepEqual(await allOf('arrivals beside'), ['b'])
    assert.ok((await log().place({ channel: 'arrivals', place: 'p' }, '{}')).contextId)
  })

  test('GW-16 an album becomes its first message with all files; other albums, people and places stay', async () => {
    const channel = 'albums'
    const album = { channel, groupId: 'g' }
    const first = await arrive({ ...album, id: '1', text: '', isAddressed: false })
    const beside = [
      await arrive({ ...album, id: '2', author: 'eve' }),
      await arrive({ ...album, id: '3', groupId: 'other' }),
      await arrive({ ...album, id: '4', place: 'q' }),
      await arrive({ channel, id: '5' }),
    ]
    const part = await arrive({ ...album, id: '6', text: 'look' })
    assert.deepEqual(shown(await arrivals().join(first)), ['look', 'file of 1,file of 6', true])
    assert.deepEqual(shown(await arrivals().read(first)), ['look', 'file of 1,file of 6', true])
    assert.equal(await arrivals().read(part), undefined)
    assert.equal(await arrivals().join(part), undefined)
    for (const key of beside) assert.equal(shown(await arrivals().read(key))?.[1]?.includes(','), false)
    // A later part is a message of its own.
    const late = await arrive({ ...album, id: '7', text: 'late' })
    assert.deepEqual(shown(await arrivals().join(late)), ['late', 'file of 7', true])
  })

  test('GW-16 an album has at most ten messages, and leaves out those that were deleted', async () => {
    const channel = 'long albums'
    const keys: ArrivalKey[] = []
    for (let n = 0; n < 12; n++) keys.push(await arrive({ channel, groupId: 'g', id: `n${n}`, text: '' }))
    await arrivals().revise({ channel, place: 'p', messageId: 'm-n0' }, { isWithdrawn: true })
    const [first, , , , , , , , , , eleventh] = keys
    const files = shown(await arrivals().join(first as ArrivalKey))
    assert.deepEqual([String(files?.[1]).split(',').length, files?.[3]], [9, undefined])
    assert.equal(shown(await arrivals().join(eleventh as ArrivalKey))?.[1], 'file of n10,file of n11')
  })

  test('GW-16 an edit and a deletion reach a message where it waits, where it is held, and where it was admitted', async () => {
    const channel = 'revised'
    const key = (id: string) => ({ channel, place: 'p', messageId: `m-${id}` })
    const change = (id: string, revision: Parameters<Arrivals['revise']>[1]) => arrivals().revise(key(id), revision)
    const [one, two, beside] = [
      await arrive({ channel, id: 'one' }),
      await arrive({ channel, id: 'two' }),
      await arrive({ channel, id: 'one', place: 'q' }),
    ]
    assert.equal(await change('one', { text: 'changed' }), undefined)
    assert.equal(await change('two', { isWithdrawn: true }), undefined)
    assert.equal(await change('nothing', { text: 'x' }), undefined)
    assert.deepEqual(shown(await arrivals().read(one)), ['changed', 'file of one', true])
    assert.deepEqual(shown(await arrivals().read(two)), ['two', 'file of two', true, 'withdrawn'])
    assert.deepEqual(shown(await arrivals().read(beside)), ['one', 'file of one', true])
    assert.match((await log().record({ ...arrivalOf({ channel, id: 'one' }), taskId: 't1' })) ?? '', /"changed"/)
    assert.deepEqual(await change('one', { text: 'again' }), { id: 'one', taskId: 't1' })
    await log().close({ channel, place: 'p', id: 'one' })
    assert.equal(await change('one', { text: 'too late' }), undefined)

    const pairings = createPairings(opened.store)
    const person = { channel, person: 'eve' }
    const asked = await pairings.request({ ...person, name: 'Eve' })
    for (const id of ['h1', 'h2']) {
      const { message } = arrivalOf({ channel, id })
      await pairings.hold(person, { place: 'p', id, message })
    }
    await change('h1', { text: 'held and changed' })
    await change('h2', { isWithdrawn: true })
    await pairings.decide(asked?.pairing.code ?? '', { state: 'approved', role: 'user', by: 'admin' })
    const released = await pairings.released(channel)
    assert.deepEqual(
      released.map(({ id, message }) => [id, JSON.parse(message).text]),
      [['h1', 'held and changed']],
    )
  })

  test('GW-13 a place and a channel have a limit of messages that wait; another place takes more until the channel is full', async () => {
    const fill = (channel: string, place: string, count: number) =>
      opened.sql(
        `with recursive n(k) as (select 1 union all select k + 1 from n where k < ${count})
         insert into chat_messages (channel, place, id, message_id, person, state, received_at, incoming, arrival)
         select $1, $2, 'n' || k, 'n' || k, 'ada', 'arrived', 0, '{}', $2 || k from n`,
        channel,
        place,
      )
    await fill('full', 'p', PLACE_WAITING_MAX)
    assert.equal(await arrivals().arrive(arrivalOf({ channel: 'full', id: 'more' })), 'full')
    await arrive({ channel: 'full', place: 'q', id: 'more' })
    await log().record({ ...arrivalOf({ channel: 'full', id: 'n1' }), messageId: 'n1' })
    await arrive({ channel: 'full', id: 'more' })
    assert.equal((await allOf('full')).length, PLACE_WAITING_MAX + 1)
    await fill('full', 'r', CHANNEL_WAITING_MAX - PLACE_WAITING_MAX)
    assert.equal(await arrivals().arrive(arrivalOf({ channel: 'full', place: 's', id: 'more' })), 'full')
  })
}
