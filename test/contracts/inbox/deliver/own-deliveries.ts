/** Deliveries that belong to a workspace and to no task, an answer that is silent, and deliveries that are sent on. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ulid } from '../../../../src/ids.ts'
import { MESSAGES_PER_HOUR_MAX } from '../../../../src/inbox/deliver/insert-delivery.ts'
import type { DeliveryPurpose, ReplyAddress } from '../../../../src/inbox/delivery.ts'
import { prune } from '../../../../src/inbox/upkeep/retention.ts'
import { readNeeds } from '../../../../src/views/needs/needs.ts'
import { readStory } from '../../../../src/views/story/story.ts'
import { letterTo } from '../../../fakes/letters.ts'
import { done, failure, hasCode, type InboxHarness } from '../harness.ts'

let doors = 0

export function ownDeliveryTests(harness: InboxHarness): void {
  const newDoor = () => `own-${++doors}`
  const say = async (workspaceId: string, door: string, text: string) => {
    const purpose: DeliveryPurpose = text.startsWith('notice') ? 'notice' : 'message'
    const id = ulid()
    const body = { state: 'TASK_STATE_COMPLETED', parts: [{ text }] } as const
    await harness.local.deliveries.add({ id, workspaceId, purpose, door, channel: 'home', body })
    return id
  }
  const storyOf = (id: string) => readStory(harness.local.store, { id, scopeOf: () => ({ detail: true }) })
  const needs = async (workspaceId: string) =>
    (await readNeeds(harness.local.store, { workspaceId, workspaces: [] })).needs_you

  test('GW-17 GW-6 a message without a task is sent at most once; when it may have arrived a person decides', async () => {
    const [id, door] = [await harness.workspace(), newDoor()]
    const { deliveries } = harness.local
    const first = await say(id, door, 'one')
    await say(id, door, 'two')
    const taken = await deliveries.take(door)
    assert.deepEqual([taken?.id, taken?.workspaceId, taken?.taskId, taken?.tries], [first, id, undefined, 0])
    assert.equal(await deliveries.take(door), undefined, 'one at a time')
    await harness.local.recover()
    const [need, ...others] = await needs(id)
    assert.deepEqual(
      [need?.kind, need?.id, need?.task_id, need?.text, need?.to, others.length],
      ['delivery', first, undefined, 'one', `${door} home`, 0],
    )
    assert.match(need?.reason ?? '', new RegExp(`^a message to ${door} may not have arrived`))
    await deliveries.resolve(first, 'resend', 'Ana')
    const again = await deliveries.take(door)
    assert.equal(again?.id, first)
    await deliveries.finish(first, { type: 'sent', receipt: 'r' })
    assert.deepEqual((await deliveries.take(door))?.body.parts, [{ text: 'two' }])
    const notes = (await harness.activity(id, 'delivery')).map(({ text }) => text)
    assert.deepEqual(notes, [`the message to ${door} may not have arrived`, `the message to ${door} is sent again`])
  })

  test('GW-17 GW-13 a message without a task is given up after a day, and deleted some days after a person has decided', async () => {
    const [id, door] = [await harness.workspace(), newDoor()]
    const { deliveries } = harness.local
    const message = await say(id, door, 'late')
    await harness.sql('update deliveries set created_at = created_at - 86400000 where id = $1', message)
    await deliveries.take(door)
    await deliveries.finish(message, { type: 'failed', error: 'no route' })
    assert.match((await needs(id))[0]?.reason ?? '', /could not be sent: no route/)
    const forever = 10 ** 12
    const left = async () => {
      await prune(harness.store, { taskMs: forever, eventMs: 0, deltaMs: forever }, new AbortController().signal)
      return (await harness.sql('select id from deliveries where workspace_id = $1', id)).length
    }
    assert.equal(await left(), 1)
    await deliveries.resolve(message, 'dismiss', 'Ana')
    await harness.sql('update deliveries set finished_at = finished_at - 1 where id = $1', message)
    assert.equal(await left(), 0)
  })

  test('GW-17 a workspace sends so many messages an hour, and another one as many; notices do not count', async () => {
    const [id, other, door] = [await harness.workspace(), await harness.workspace(), newDoor()]
    for (let count = 0; count < MESSAGES_PER_HOUR_MAX; count++) await say(id, door, 'more')
    await assert.rejects(say(id, door, 'too many'), hasCode('too_many_requests'))
    await say(id, door, 'notice: something needs you')
    await say(other, door, 'beside')
    await harness.sql('update deliveries set created_at = created_at - 3600000 where workspace_id = $1', id)
    await say(id, door, 'an hour later')
    await assert.rejects(say('ws_none', door, 'deleted'), hasCode('not_found'))
  })

  test('GW-17 an answer of exactly NO_REPLY is silent where its sender allows that, and the story says so', async () => {
    const id = await harness.workspace()
    const states = async (text: string, mayBeSilent?: boolean) => {
      const replyTo: ReplyAddress = { door: newDoor(), channel: 'c', ...(mayBeSilent && { mayBeSilent }) }
      const { taskId } = await harness.run({ ...letterTo(id), replyTo }, done(text))
      const story = await storyOf(taskId)
      return [(await harness.local.deliveries.take(replyTo.door))?.body.parts?.[0]?.text, story?.deliveries[0]?.state]
    }
    assert.deepEqual(await states(' NO_REPLY\n', true), [undefined, 'silent'])
    assert.deepEqual(await states('NO_REPLY'), ['NO_REPLY', 'pending'])
    assert.deepEqual(await states('NO_REPLY, he said', true), ['NO_REPLY, he said', 'pending'])
    const replyTo = { door: newDoor(), channel: 'c', mayBeSilent: true }
    await harness.run({ ...letterTo(id), replyTo }, { type: 'dead', failure: { ...failure, message: 'NO_REPLY' } })
    assert.equal((await harness.local.deliveries.take(replyTo.door))?.body.state, 'TASK_STATE_FAILED')
  })

  test('SC-1 GW-17 a delivery is sent on to several addresses at once, once; without one it ends with the reason', async () => {
    const [id, door, target] = [await harness.workspace(), newDoor(), newDoor()]
    const { deliveries } = harness.local
    const { taskId } = await harness.run({ ...letterTo(id), replyTo: { door, channel: 'owners' } }, done('the report'))
    const homes = ['ada', 'eve'].map((channel) => ({ door: target, channel }))
    const asked: string[] = []
    const send = (addresses: readonly ReplyAddress[]) =>
      deliveries.forward(door, async ({ channel }) => {
        asked.push(channel)
        return { addresses, reason: 'nobody has a home' }
      })
    await Promise.all([send(homes), send(homes)])
    const taken = [await deliveries.take(target), await deliveries.take(target)]
    assert.deepEqual(
      taken.map((each) => [each?.channel, each?.taskId, each?.body.parts?.[0]?.text]),
      homes.map(({ channel }) => [channel, taskId, 'the report']),
    )
    assert.equal(await deliveries.take(target), undefined)
    assert.ok(asked.every((channel) => channel === 'owners'))
    const second = await harness.run({ ...letterTo(id), replyTo: { door, channel: 'owners' } }, done('unread'))
    await send([])
    const story = await storyOf(second.taskId)
    assert.deepEqual([story?.deliveries[0]?.state, story?.deliveries[0]?.error], ['failed', 'nobody has a home'])
    assert.deepEqual(await needs(id), [])
  })

  test('GW-17 what waits for a time is tried at once when its reason is over', async () => {
    const [id, door] = [await harness.workspace(), newDoor()]
    const { deliveries } = harness.local
    const message = await say(id, door, 'in the morning')
    await deliveries.take(door)
    await deliveries.finish(message, { type: 'later', error: 'quiet hours', retryAfterMs: 3600_000 })
    await deliveries.hurry(door, 'elsewhere')
    assert.equal(await deliveries.take(door), undefined)
    await deliveries.hurry(door, 'home')
    assert.equal((await deliveries.take(door))?.id, message)
  })
}
