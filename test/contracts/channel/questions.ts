/** Part of the channel contract: questions of an agent. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { startRemoteAgent } from '../../fakes/remote-agent/start.ts'
import { createHandWorker } from '../../harness/hand-worker.ts'
import { waitUntil } from '../../harness/wait.ts'
import { ADA, type ChannelUnderTest, type ChatOptions, openChat } from './open-chat.ts'

export function channelQuestionTests(under: ChannelUnderTest): void {
  const open = (t: TestContext, options?: ChatOptions) => openChat(t, under, options)

  test('GW-9 an agent asks a question, the next message is the answer, and the task goes on, also over a restart', async (t) => {
    const remote = await startRemoteAgent('1.0')
    t.after(() => remote.stop())
    const chat = await open(t, { workspace: { runtime: 'a2a', url: remote.url } })
    const place = chat.service.newPlace('direct')
    const id = chat.service.say({ place, author: ADA, text: 'ask' })
    assert.deepEqual(await chat.answers(place, 1), ['which colour?'])
    await waitUntil(() => chat.service.reaction(place, id) === 'waiting', 'the message is marked as waiting')
    assert.equal(await chat.platform.stop(), 0)
    await chat.start()
    const answer = chat.service.say({ place, author: ADA, text: 'blue' })
    assert.deepEqual(await chat.answers(place, 2), ['which colour?', 'you said blue'])
    await waitUntil(() => chat.service.reaction(place, answer) === 'done', 'the answer is marked as done')
    const states = (await chat.tasks()).map(({ status }) => status.state)
    assert.deepEqual(states, ['TASK_STATE_COMPLETED'])
    // Bound to another agent, the chat no longer answers the question of the first one.
    chat.service.say({ place, author: ADA, text: 'ask' })
    await chat.answers(place, 3)
    await chat.bind(place, await chat.platform.exec('printf "echo "; cat', { name: 'other' }))
    chat.service.say({ place, author: ADA, text: 'red' })
    assert.equal((await chat.answers(place, 4))[3], 'echo red')
  })

  test('GW-9 a running turn asks twice: each question is shown once, and its answer passes the message that waits behind', async (t) => {
    const chat = await open(t)
    const place = chat.service.newPlace('direct')
    const agent = await createHandWorker(chat.platform, { name: 'painter' })
    await chat.bind(place, agent.workspaceId)
    const first = chat.service.say({ place, author: ADA, text: 'paint' })
    const turn = await agent.lease()
    chat.service.say({ place, author: ADA, text: 'then clean up' })
    const listed = async () =>
      (await chat.platform.rpc(agent.workspaceId, 'ListTasks', {})).body.result.tasks.length as number
    await waitUntil(async () => (await listed()) === 2, 'the second message waits')
    await turn.ask('which colour?')
    assert.deepEqual(await chat.answers(place, 1), ['which colour?'])
    await waitUntil(() => chat.service.reaction(place, first) === 'waiting', 'the message is marked as waiting')
    const blue = chat.service.say({ place, author: ADA, text: 'blue' })
    assert.equal(await agent.nextAnswer(), 'blue')
    await turn.ask('how dark?')
    await chat.answers(place, 2)
    chat.service.say({ place, author: ADA, text: 'dark' })
    assert.equal(await agent.nextAnswer(), 'dark')
    await turn.answer('painted dark blue')
    await chat.answers(place, 3)
    await (await agent.lease()).answer('cleaned up')
    assert.deepEqual(await chat.answers(place, 4), ['which colour?', 'how dark?', 'painted dark blue', 'cleaned up'])
    for (const id of [first, blue])
      await waitUntil(() => chat.service.reaction(place, id) === 'done', 'the message is marked as done')
    assert.equal(await listed(), 2)
  })
}
