/** Part of the channel contract: why a message waits, and its place behind others. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Place } from '../../../src/doors/chat/channel.ts'
import { createHandWorker } from '../../harness/hand-worker.ts'
import { waitUntil } from '../../harness/wait.ts'
import { ADA, type ChannelUnderTest, type ChatOptions, type OpenChat, openChat } from './open-chat.ts'

export function channelWaitTests(under: ChannelUnderTest): void {
  const open = (t: TestContext, options?: ChatOptions) => openChat(t, under, options)
  const notice = async (chat: OpenChat, place: Place, pattern: RegExp) => {
    const find = () => chat.service.written(place).find(({ text }) => pattern.test(text))
    await waitUntil(
      () => find() !== undefined,
      () => `${pattern} in ${JSON.stringify(chat.service.written(place))}`,
    )
    return find()
  }

  test('GW-15 messages during a turn are told their place, once; the answers stay in order, and no notice is left', async (t) => {
    const cmd = 'read text; [ "$text" = one ] && sleep 14; echo "answer $text"'
    const chat = await open(t, { workspace: { runtime: 'exec', runtime_config: { cmd }, max_concurrent_tasks: 4 } })
    const [alone, both] = [chat.service.newPlace('direct'), chat.service.newPlace('direct')]
    const say = (place: Place, text: string) => chat.service.say({ place, author: ADA, text })
    for (const place of [alone, both]) say(place, 'one')
    for (const place of [alone, both]) await notice(chat, place, /^Working for/)
    say(alone, 'two')
    for (const text of ['two', 'three']) say(both, text)
    const said = await notice(chat, alone, /^Waiting: 1 message is before yours\..*stop/)
    await notice(chat, both, /^Waiting: 2 messages are before yours/)
    assert.deepEqual(await chat.answers(alone, 2), ['answer one', 'answer two'])
    assert.equal(chat.service.written(alone)[1]?.id, said?.id)
    assert.equal(chat.service.written(alone).length, 2)
    assert.deepEqual(await chat.answers(both, 3), ['answer one', 'answer two', 'answer three'])
    await waitUntil(() => chat.service.written(both).every(({ text }) => !/^Waiting/.test(text)), 'the notice is over')
    assert.equal(chat.service.written(both).length, 4)
  })

  test('GW-15 why a message waits is said once and edited: paused, then a limit of the provider, then its answer', async (t) => {
    const chat = await open(t)
    const place = chat.service.newPlace('direct')
    const agent = await createHandWorker(chat.platform, { name: 'writer' })
    await chat.bind(place, agent.workspaceId)
    const path = `/workspaces/${agent.workspaceId}`
    assert.equal((await chat.platform.request('POST', `${path}/pause`)).status, 200)
    chat.service.say({ place, author: ADA, text: 'one' })
    const said = await notice(chat, place, /^Waiting: the agent is paused/)
    assert.equal((await chat.platform.request('POST', `${path}/resume`)).status, 200)
    const turn = await agent.lease()
    const failure = {
      code: 'rate_limited',
      message: 'limit',
      sentence: 'the limit is reached',
      category: 'rate_limited',
    }
    const retry = { type: 'retry', failure, afterMs: 12_000, reason: 'failure', interrupted: false, parked: true }
    await turn.settle(retry)
    const limited = await notice(chat, place, /^Waiting: the model provider's rate limit.*goes on at \d\d:\d\d UTC/)
    assert.equal(limited?.id, said?.id)
    await (await agent.lease()).answer('at last')
    await chat.answers(place, 1)
    assert.deepEqual(
      chat.service.written(place).map(({ id, text }) => [id, text]),
      [[said?.id, 'at last']],
    )
  })

  test('GW-15 after a restart the same message says why, and a message that is stopped while it waits says so', async (t) => {
    const chat = await open(t)
    const place = chat.service.newPlace('direct')
    const pause = () => chat.platform.request('POST', `/workspaces/${chat.workspaceId}/pause`)
    assert.equal((await pause()).status, 200)
    chat.service.say({ place, author: ADA, text: 'one' })
    await notice(chat, place, /^Waiting: the agent is paused/)
    chat.service.say({ place, author: ADA, text: 'two' })
    // An edit, so the id of the message is stored.
    const said = await notice(chat, place, /^Waiting: the agent is paused.*1 more message waits/)
    await chat.platform.stop('SIGKILL')
    await chat.start()
    await waitUntil(async () => {
      const stopped = await chat.service.command({ place, author: ADA, name: 'stop' })
      return /Stopped/.test(stopped)
    }, 'it is stopped')
    const ended = await notice(chat, place, /^Ended/)
    assert.equal(ended?.id, said?.id)
  })
}
