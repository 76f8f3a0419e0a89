/** Part of the channel contract: answers that are shown while they are written. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Place } from '../../../src/doors/chat/channel.ts'
import type { Written } from '../../fakes/chat-service.ts'
import { createHandWorker, type HandTurn } from '../../harness/hand-worker.ts'
import { waitUntil } from '../../harness/wait.ts'
import { answerBurst } from './limits.ts'
import { ADA, type ChannelUnderTest, type ChatOptions, EVE, type OpenChat, openChat } from './open-chat.ts'

/** A second of the service takes so long. */
const SECOND_MS = 100

const text = (delta: string) => ({ type: 'text', delta })

export function channelStreamTests(under: ChannelUnderTest): void {
  const open = (t: TestContext, options?: ChatOptions) => openChat(t, under, options)
  const shown = async (chat: OpenChat, place: Place, pattern: RegExp): Promise<Written> => {
    const find = () => chat.service.written(place).find((message) => pattern.test(message.text))
    await waitUntil(
      () => find() !== undefined,
      () => `${pattern} in ${JSON.stringify(chat.service.written(place))}`,
    )
    return find() as Written
  }
  /** A chat whose agent is run by the test. */
  const openByHand = async (t: TestContext, kind: 'direct' | 'group' = 'direct', options?: ChatOptions) => {
    const chat = await open(t, options)
    const place = chat.service.newPlace(kind)
    const agent = await createHandWorker(chat.platform, { name: 'writer' })
    await chat.bind(place, agent.workspaceId)
    const ask = async (author = ADA): Promise<HandTurn & { readonly id: string }> => {
      const id = chat.service.say({ place, author, text: 'write', mentions: kind === 'group' })
      return { ...(await agent.lease()), id }
    }
    return { chat, place, agent, ask }
  }

  test('GW-15 the text of a turn grows in one message, which becomes the exact answer; a quick answer is one message', async (t) => {
    const { chat, place, ask } = await openByHand(t)
    const turn = await ask()
    await turn.append(text('First '), { type: 'tool', name: 'Bash', subject: 'ls', state: 'started' })
    const first = await shown(chat, place, /^Working for \S+ · 1 tool: Bash\n+First$/)
    await turn.append(text('and **second**.\n\n```js\nconst open = 1'))
    const second = await shown(chat, place, /^Working for [\s\S]*First and [\s\S]*second[\s\S]*const open = 1/)
    assert.equal(second.id, first.id)
    const answer = 'First and second.\n\n1. exact'
    await turn.answer(answer)
    await waitUntil(() => chat.texts(place).length > 0, 'the answer is there')
    const [written, ...more] = chat.service.written(place)
    assert.deepEqual([written?.id, written?.text, more], [first.id, answer, []])
    assert.equal(chat.service.sends(), 1)
    await waitUntil(() => chat.service.reaction(place, turn.id) === 'done', 'the message is marked as done')
    const quick = await ask()
    await quick.append(text('quick'))
    await quick.answer('quick')
    assert.deepEqual(await chat.answers(place, 2), [answer, 'quick'])
    assert.equal(chat.service.written(place)[1]?.edits, 0)
  })

  test('GW-15 a turn that is tried again begins anew in the same message; a failed one ends in the sentence of its failure', async (t) => {
    const { chat, place, agent, ask } = await openByHand(t, 'group')
    const turn = await ask()
    await turn.append(text('a half sentence'))
    const { id } = await shown(chat, place, /half sentence/)
    const failure = { code: 'exit', message: 'it broke' }
    await turn.settle({ type: 'retry', failure, afterMs: 0, reason: 'failure', interrupted: false })
    const again = await agent.lease()
    await again.append(text('another try'))
    const anew = await shown(chat, place, /another try/)
    assert.equal(anew.id, id)
    assert.doesNotMatch(anew.text, /half/)
    await again.settle({ type: 'dead', failure })
    await waitUntil(() => chat.texts(place).length > 0, 'the failure is told')
    assert.deepEqual(
      chat.service.written(place).map((message) => [message.id, message.text]),
      [[id, '⚠️ it broke']],
    )
  })

  test('GW-15 a stopped turn keeps what it has written; a message that can no longer be edited is left, and the answer is sent', async (t) => {
    const { chat, place, ask } = await openByHand(t)
    const turn = await ask()
    await turn.append(text('what it has said'))
    const { id } = await shown(chat, place, /what it has said/)
    assert.match(await chat.service.command({ place, author: ADA, name: 'stop' }), /Stopped/)
    const stopped = await shown(chat, place, /^Ended after/)
    assert.equal(stopped.id, id)
    assert.match(stopped.text, /what it has said$/)
    await turn.settle({ type: 'stopped' })
    const next = await ask()
    await next.append(text('to be removed'))
    await shown(chat, place, /to be removed/)
    chat.service.refuseEdits()
    await next.answer('the whole answer')
    await shown(chat, place, /^the whole answer$/)
    assert.equal(chat.service.written(place).filter((message) => message.text === 'the whole answer').length, 1)
  })

  test('GW-15 after a kill the next start goes on in the same message, and no half text is left', async (t) => {
    const cmd = 'echo "a half"; sleep 6; echo "text"; sleep 6; echo "and its end"'
    const chat = await open(t, { workspace: { runtime: 'exec', runtime_config: { cmd, stream: 'true' } } })
    const place = chat.service.newPlace('direct')
    chat.service.say({ place, author: ADA, text: 'write' })
    // An edit, so the id of the message is stored.
    const { id } = await shown(chat, place, /a half\s+text/)
    await chat.platform.stop('SIGKILL')
    await chat.start()
    await waitUntil(() => chat.texts(place).length > 0, 'the answer is there')
    assert.deepEqual(
      chat.service.written(place).map((message) => [message.id, message.text]),
      [[id, 'a half\ntext\nand its end']],
    )
  })

  test('GW-15 a long answer begins in the live message and says that the rest is in the file; files come together', async (t) => {
    const { chat, place, ask } = await openByHand(t)
    const turn = await ask()
    const answer = Array.from(
      { length: 1500 },
      (_, n) => `Line ${n} of an answer that is far too long for a chat.`,
    ).join('\n')
    await turn.append(text(answer))
    const live = await shown(chat, place, /^Working for .*characters so far/)
    assert.ok(live.text.length <= under.textCharactersMax)
    const raw = Buffer.from('bytes').toString('base64')
    const files = ['a.txt', 'b.txt'].map((filename) => ({ raw, filename }))
    await turn.settle({ type: 'done', finality: 'completed', parts: [{ text: answer }, ...files], artifacts: [] })
    const names = () => chat.service.written(place).flatMap((message) => message.files.map(({ name }) => name))
    await waitUntil(
      () => names().length === 3,
      () => JSON.stringify(names()),
    )
    assert.deepEqual(names().sort(), ['a.txt', 'answer.md', 'b.txt'])
    const [first] = chat.service.written(place)
    assert.equal(first?.id, live.id)
    assert.match(first?.text ?? '', /^Line 0 of/)
    const said = chat.texts(place).filter((one) => /The whole answer is in the file/.test(one))
    assert.equal(said.length, 1)
  })

  test('GW-15 a short answer with files: the text stays in the live message, and the files come below it', async (t) => {
    const { chat, place, ask } = await openByHand(t)
    const turn = await ask()
    await turn.append(text('see the'))
    const { id } = await shown(chat, place, /see the/)
    const parts = [{ text: 'see the file' }, { raw: Buffer.from('bytes').toString('base64'), filename: 'a.txt' }]
    await turn.settle({ type: 'done', finality: 'completed', parts, artifacts: [] })
    await waitUntil(() => chat.service.written(place).some(({ files }) => files.length > 0), 'the file is there')
    const written = chat.service.written(place).map((message) => [message.text, message.files.map(({ name }) => name)])
    assert.deepEqual(written, [
      ['see the file', []],
      ['', ['a.txt']],
    ])
    assert.equal(chat.service.written(place)[0]?.id, id)
  })

  test('GW-15 a channel without streaming shows the progress only, and the answer is a message of its own', async (t) => {
    const { chat, place, ask } = await openByHand(t, 'direct', { channel: { stream: false } })
    const [channel] = (await chat.platform.request('GET', '/channels')).body.channels
    assert.equal(channel.stream, false)
    const turn = await ask()
    await turn.append(text('not shown yet'))
    assert.doesNotMatch((await shown(chat, place, /^Working for/)).text, /shown/)
    await turn.answer('the answer')
    await shown(chat, place, /^Done after/)
    assert.deepEqual(
      chat.service.written(place).map((message) => message.text.split(' ')[0]),
      ['Done', 'the'],
    )
  })

  test('GW-15 an owner in a direct chat sees what exactly a tool does; in a group everyone sees its name', async (t) => {
    const { chat, place, agent, ask } = await openByHand(t)
    await chat.makeOwner(EVE)
    const run = { type: 'tool', name: 'Bash', subject: 'echo `date`\u202e', state: 'started' }
    const turn = await ask(EVE)
    await turn.append(run)
    const owners = await shown(chat, place, /Working for/)
    assert.ok(owners.text.includes('echo `date`'), owners.text)
    assert.ok(owners.text.includes('\\u202e'), owners.text)
    await turn.answer('done')
    const group = chat.service.newPlace('group')
    await chat.bind(group, agent.workspaceId)
    chat.service.say({ place: group, author: EVE, text: 'write', mentions: true })
    const other = await agent.lease()
    await other.append(run)
    assert.match((await shown(chat, group, /Working for/)).text, /· 1 tool: Bash$/)
    await other.answer('done')
  })

  test('GW-15 an answer stands below the question of its turn, which ends the text before it', async (t) => {
    const { chat, place, agent, ask } = await openByHand(t)
    const turn = await ask()
    await turn.append(text('Let me see. '))
    await shown(chat, place, /Let me see/)
    await turn.ask('which colour?')
    await shown(chat, place, /^which colour\?$/)
    await shown(chat, place, /^Waiting after[\s\S]*Let me see\.$/)
    chat.service.say({ place, author: ADA, text: 'blue', mentions: true })
    assert.equal(await agent.nextAnswer(), 'blue')
    await turn.append(text('So it is blue'))
    await shown(chat, place, /^Working for[\s\S]*So it is blue$/)
    await turn.answer('Let me see. So it is blue.')
    assert.deepEqual(await chat.answers(place, 2), ['which colour?', 'Let me see. So it is blue.'])
    assert.equal(chat.service.written(place).length, 3)
  })

  test('GW-15 GW-13 streaming costs no answer: under the limits of the service all arrive, once and in order', async (t) => {
    const runtime_config = { delay: '6s', stream: 'true' }
    const chat = await open(t, { workspace: { runtime: 'mock', max_concurrent_tasks: 8, runtime_config } })
    chat.service.keepLimits(SECOND_MS)
    await answerBurst(chat, { places: 6, messages: 3 })
  })
}
