/** Deliveries that fail: what counts as a try, and when one is given up. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { letterTo } from '../../../fakes/letters.ts'
import { done, type InboxHarness } from '../harness.ts'

export function deliveryTriesTests(harness: InboxHarness): void {
  let doors = 0
  const newDoor = () => `tries-door-${++doors}`
  const answered = async (door: string, channel: string, text: string) => {
    const id = await harness.workspace()
    await harness.local.reception.admit({ ...letterTo(id), replyTo: { door, channel } })
    await harness.withWorker(id, async (worker) => {
      await harness.local.inbox.settle(await worker.lease(), done(text))
    })
  }

  test('GW-13 a delivery is given up by time: 30 failures, limits and missing connections leave it in the queue for a day', async () => {
    const door = newDoor()
    await answered(door, 'c', 'text')
    const { deliveries: all } = harness.local
    const goOn = () => harness.sql('update deliveries set next_at = 0 where door = $1', door)
    let id = ''
    for (let tries = 0; tries < 30; tries++) {
      id = (await all.take(door))?.id ?? ''
      await all.finish(id, { type: 'failed', error: 'it answers 502' })
      await goOn()
    }
    assert.equal((await all.take(door))?.tries, 30)
    await harness.sql('update deliveries set created_at = created_at - 86400000 where door = $1', door)
    await all.finish(id, { type: 'later', error: 'slow down', retryAfterMs: 50 })
    assert.deepEqual(
      (await all.needingDecision()).flatMap((open) => (open.id === id ? [[open.state, open.error]] : [])),
      [['failed', 'slow down']],
    )
    await all.resolve(id, 'dismiss', 'Ana')
  })

  test('GW-13 a limit and a missing connection are no tries, and a part that arrives makes the next wait short again', async () => {
    const door = newDoor()
    await answered(door, 'c', 'text')
    const { deliveries: all } = harness.local
    const take = async () => {
      await harness.sql('update deliveries set next_at = 0 where door = $1', door)
      return await all.take(door, () => ['one', 'two'])
    }
    const id = (await take())?.id ?? ''
    for (let tries = 0; tries < 6; tries++) {
      await all.finish(id, { type: 'failed', error: 'it answers 502' })
      assert.equal((await take())?.tries, tries + 1)
    }
    for (const retryAfterMs of [60_000, undefined]) {
      await all.finish(id, { type: 'later', error: 'not now', retryAfterMs })
      assert.equal((await take())?.tries, 6)
    }
    await all.beginPart(id, 0)
    await all.partSent(id, 0, 'r1')
    await all.beginPart(id, 1)
    await all.finish(id, { type: 'failed', error: 'it answers 502' })
    const dueInMs = (await all.dueInMs(door)) ?? Number.NaN
    assert.ok(dueInMs <= 2000, `the wait begins anew: ${dueInMs} ms`)
    assert.equal((await take())?.tries, 1)
    await all.finish(id, { type: 'sent' })
  })

  test('GW-9 GW-13 what a door itself says of a task is delivered once; it is withdrawn, or moves to another channel', async () => {
    const [door, other] = [newDoor(), newDoor()]
    const id = await harness.workspace()
    const { taskId } = await harness.local.reception.admit(letterTo(id))
    const { deliveries: all } = harness.local
    const body = { state: 'TASK_STATE_AUTH_REQUIRED', parts: [{ text: 'may I?' }], prompt: { buttons: [] } } as const
    const add = (at: string, n: number) => all.add({ id: `${at}-${n}`, door: at, channel: 'c', taskId, body })
    for (const n of [1, 2, 2]) await add(door, n)
    await add(other, 1)
    await all.withdraw(`${door}-1`)
    await all.move(door, 'c', 'd')
    const taken = await all.take(door)
    assert.deepEqual([taken?.id, taken?.channel, taken?.taskId, taken?.body], [`${door}-2`, 'd', taskId, body])
    assert.equal(await all.lastReceipt(door, 'd'), undefined)
    await all.finish(`${door}-2`, { type: 'sent', receipt: 'r1' })
    assert.deepEqual([await all.take(door), await all.lastReceipt(door, 'd')], [undefined, 'r1'])
    assert.equal((await all.take(other))?.channel, 'c')
    await all.finish(`${other}-1`, { type: 'failed', error: 'gone', final: true })
    const isNeeded = async () => (await all.needingDecision()).some((open) => open.id === `${other}-1`)
    assert.equal(await isNeeded(), true)
    await all.withdraw(`${other}-1`)
    assert.equal(await isNeeded(), false)
  })

  test('GW-15 a part keeps the form in which it is being sent; an open delivery is known by its channel and task', async () => {
    const [door, other] = [newDoor(), newDoor()]
    await answered(door, 'edited', 'text')
    const { deliveries: all } = harness.local
    const taken = await all.take(door, () => ['as text', 'the rest'])
    const { id = '', taskId = '' } = taken ?? {}
    const open = () =>
      Promise.all([
        all.hasOpen(door, 'edited'),
        all.hasOpen(door, 'edited', taskId),
        all.hasOpen(door, 'edited', 'another task'),
        all.hasOpen(door, 'elsewhere'),
        all.hasOpen(other, 'edited'),
      ])
    assert.deepEqual(await open(), [true, true, false, false, false])
    await all.beginPart(id, 0, 'as an edit')
    await harness.local.recover()
    const [unknown] = await all.interrupted(door)
    assert.deepEqual(
      unknown?.parts?.map(({ content, state }) => `${content} ${state}`),
      ['as an edit sending', 'the rest pending'],
    )
    assert.deepEqual(await open(), [false, false, false, false, false])
    assert.deepEqual(
      (await all.unknown(door)).map((delivery) => delivery.id),
      [id],
    )
    assert.deepEqual(await all.unknown(other), [])
    await all.resume(id)
    assert.deepEqual(await all.unknown(door), [])
    assert.equal((await all.take(door))?.id, id)
    await all.beginPart(id, 0)
    await all.finish(id, { type: 'sent' })
    assert.deepEqual(await open(), [false, false, false, false, false])
  })
}
