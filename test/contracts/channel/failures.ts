/** Part of the channel contract: restarts, crashes, and the failures of a service. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { Place } from '../../../src/doors/chat/channel.ts'
import { waitUntil } from '../../harness/wait.ts'
import { ADA, type ChannelUnderTest, type ChatOptions, openChat } from './open-chat.ts'

const HOUR_MS = 3600_000

/** Answers with texts that once held the event loop, or overflowed the stack, by the message's text. */
const HOSTILE_AGENT = `${process.execPath} -e '
  const said = require("fs").readFileSync(0, "utf8").trim()
  const answers = {
    tables: "a|b\\n-|-\\nx\\n".repeat(10000),
    spaces: "|a|b|\\n|-|-" + " ".repeat(60000) + "x\\n",
    images: "![".repeat(40000),
  }
  process.stdout.write(answers[said] ?? "echo " + said)'`

export function channelFailureTests(under: ChannelUnderTest): void {
  const open = (t: TestContext, options?: ChatOptions) => openChat(t, under, options)

  test('GW-5 20 messages of a downtime are answered once and in order; those of yesterday are named in one line', async (t) => {
    const chat = await open(t)
    const place = chat.service.newPlace('direct')
    const yesterday = Date.now() - 24 * HOUR_MS
    chat.service.say({ place, author: ADA, text: 'before', sentAtMs: yesterday - 1000 })
    await chat.answers(place, 1)
    assert.equal(await chat.platform.stop(), 0)
    for (const text of ['old one', 'old two']) chat.service.say({ place, author: ADA, text, sentAtMs: yesterday })
    const asked = Array.from({ length: 20 }, (_, index) => `message ${index}`)
    const sinceMs = Date.now() - 600_000
    for (const [index, text] of asked.entries()) {
      chat.service.say({ place, author: ADA, text, sentAtMs: sinceMs + index * 20_000 })
    }
    await chat.start()
    await waitUntil(
      () => chat.texts(place).includes('echo message 19'),
      () => JSON.stringify(chat.texts(place)),
    )
    await waitUntil(() => chat.texts(place).some((text) => text.includes('old two')), 'the old messages are named')
    const texts = chat.texts(place).slice(1)
    assert.deepEqual(
      texts.filter((text) => text.startsWith('echo')),
      asked.map((text) => `echo ${text}`),
    )
    const [line, ...more] = texts.filter((text) => !text.startsWith('echo'))
    assert.match(line ?? '', /older than an hour.*old one.*old two/)
    assert.deepEqual(more, [])
    // Another start answers nothing twice.
    assert.equal(await chat.platform.stop(), 0)
    await chat.start()
    chat.service.say({ place, author: ADA, text: 'after' })
    await waitUntil(() => chat.texts(place).includes('echo after'), 'the next message is answered')
    assert.equal(chat.texts(place).length, 23)
  })

  test('GW-5 the first messages of a bound group and of its new thread are answered after a downtime; what was said before the binding is not', async (t) => {
    const chat = await open(t)
    const [silent, known, direct] = (['group', 'group', 'direct'] as const).map((kind) => chat.service.newPlace(kind))
    if (!silent || !known || !direct) throw new Error('no places')
    chat.service.say({ place: known, author: ADA, text: 'hello', mentions: true })
    await chat.answers(known, 1)
    for (const place of [silent, known]) chat.service.say({ place, author: ADA, text: 'among ourselves' })
    chat.service.say({ place: direct, author: ADA, text: 'ping' })
    await chat.answers(direct, 1)
    for (const place of [silent, known]) await chat.bind(place)
    assert.equal(await chat.platform.stop(), 0)
    for (const text of ['one', 'two']) chat.service.say({ place: silent, author: ADA, text })
    chat.service.say({ place: known, author: ADA, text: 'three' })
    const thread = chat.service.newPlace('thread', silent)
    chat.service.say({ place: thread, author: ADA, text: 'in the thread' })
    await chat.start()
    await chat.answers(silent, 2)
    await chat.answers(known, 2)
    if (under.findsThreads !== false) assert.deepEqual(await chat.answers(thread, 1), ['echo in the thread'])
    // Another start answers nothing twice.
    assert.equal(await chat.platform.stop(), 0)
    await chat.start()
    for (const place of [silent, known, thread]) chat.service.say({ place, author: ADA, text: 'after' })
    assert.deepEqual(await chat.answers(silent, 3), ['echo one', 'echo two', 'echo after'])
    assert.deepEqual(await chat.answers(known, 3), ['echo hello', 'echo three', 'echo after'])
    await waitUntil(() => chat.texts(thread).includes('echo after'), 'the thread is answered')
  })

  test('GW-5 a history that cannot be read for a moment is read again before anything new is answered', async (t) => {
    const chat = await open(t)
    const place = chat.service.newPlace('direct')
    chat.service.say({ place, author: ADA, text: 'one' })
    await chat.answers(place, 1)
    assert.equal(await chat.platform.stop(), 0)
    chat.service.say({ place, author: ADA, text: 'two' })
    chat.service.failNextHistory?.()
    await chat.start()
    chat.service.say({ place, author: ADA, text: 'three' })
    assert.deepEqual(await chat.answers(place, 3), ['echo one', 'echo two', 'echo three'])
  })

  test('GW-6 a send that the service refuses for a moment is tried again, and arrives once', async (t) => {
    const chat = await open(t)
    const place = chat.service.newPlace('direct')
    for (const [index, fault] of (['rate_limited', 'server_error'] as const).entries()) {
      chat.service.failNextSend(fault)
      chat.service.say({ place, author: ADA, text: fault })
      assert.deepEqual((await chat.answers(place, index + 1))[index], `echo ${fault}`)
    }
    assert.equal(chat.texts(place).length, 2)
  })

  test('GW-6 a send whose answer is lost is not doubled; where it may have arrived, a person decides', async (t) => {
    const chat = await open(t)
    const place = chat.service.newPlace('direct')
    chat.service.failNextSend('lost_answer')
    chat.service.say({ place, author: ADA, text: 'once' })
    await chat.answers(place, 1)
    const delivery = async () => {
      const [task] = await chat.tasks()
      const { body } = await chat.platform.request('GET', `/messages/${task?.id}/story`)
      return body.deliveries[0]?.state
    }
    const expected = under.dropsCopies ? 'sent' : 'unknown'
    await waitUntil(async () => (await delivery()) === expected, `the delivery is ${expected}`)
    const { body } = await chat.platform.request('GET', '/needs-you')
    const kinds = body.needs_you.map(({ kind }: { kind: string }) => kind)
    assert.deepEqual(kinds, under.dropsCopies ? [] : ['delivery'])
    chat.service.say({ place, author: ADA, text: 'next' })
    assert.deepEqual(await chat.answers(place, 2), ['echo once', 'echo next'])
  })

  test('RE-13 GW-2 a hostile answer arrives as a file after its first part, and the bot answers the next message', async (t) => {
    const chat = await open(t, { cmd: HOSTILE_AGENT })
    const files = (place: Place) => chat.service.written(place).flatMap((message) => message.files)
    for (const [text, bytes] of Object.entries({ tables: 100_000, spaces: 60_000, images: 80_000 })) {
      const place = chat.service.newPlace('direct')
      chat.service.say({ place, author: ADA, text })
      await waitUntil(
        () => files(place).length === 1,
        () => `the answer to ${text} is a file; ${chat.platform.output().slice(-2000)}`,
      )
      assert.equal(files(place)[0]?.name, 'answer.md')
      assert.ok((files(place)[0]?.content.length ?? 0) >= bytes - 10)
      chat.service.say({ place, author: ADA, text: 'next' })
      await waitUntil(() => chat.texts(place).includes('echo next'), `the message after ${text} is answered`)
    }
  })

  test('PL-30 a long file name of a chat is cut, not refused', async (t) => {
    const chat = await open(t, { cmd: 'echo ok' })
    const place = chat.service.newPlace('direct')
    const files = [{ name: `${'n'.repeat(3000)}.txt`, content: Buffer.from('words'), mediaType: 'text/plain' }]
    chat.service.say({ place, author: ADA, text: 'look', files })
    await chat.answers(place, 1)
    const [task] = await chat.tasks()
    const { body } = await chat.platform.rpc(chat.workspaceId, 'GetTask', { id: task?.id, historyLength: 5 })
    assert.equal(body.result.history[0].parts[1].filename, `${'n'.repeat(996)}.txt`)
  })

  test('GW-6 a dropped connection loses nothing and doubles nothing', async (t) => {
    const chat = await open(t)
    const place = chat.service.newPlace('direct')
    chat.service.say({ place, author: ADA, text: 'one' })
    await chat.answers(place, 1)
    chat.service.dropConnections()
    chat.service.say({ place, author: ADA, text: 'two' })
    await chat.answers(place, 2)
    chat.service.say({ place, author: ADA, text: 'three' })
    assert.deepEqual(await chat.answers(place, 3), ['echo one', 'echo two', 'echo three'])
  })

  test('GW-6 a kill between the reply and its delivery: the next start delivers it, once, and runs nothing again', async (t) => {
    const chat = await open(t, { env: { MOLECULE_CRASH_AT: 'settled:1' }, cmd: 'echo run >> runs; wc -l < runs' })
    const place = chat.service.newPlace('direct')
    chat.service.say({ place, author: ADA, text: 'go' })
    await chat.platform.exited
    assert.deepEqual(chat.texts(place), [])
    await chat.start()
    assert.deepEqual(
      (await chat.answers(place, 1)).map((text) => text.trim()),
      ['1'],
    )
    chat.service.say({ place, author: ADA, text: 'again' })
    assert.deepEqual(
      (await chat.answers(place, 2)).map((text) => text.trim()),
      ['1', '2'],
    )
  })

  test('GW-6 a kill between a send and its answer doubles nothing', async (t) => {
    const chat = await open(t)
    const place = chat.service.newPlace('direct')
    chat.service.failNextSend('no_answer')
    chat.service.say({ place, author: ADA, text: 'one' })
    await chat.answers(place, 1)
    await chat.platform.stop('SIGKILL')
    await chat.start()
    const state = async () => {
      const [task] = await chat.tasks()
      return (await chat.platform.request('GET', `/messages/${task?.id}/story`)).body.deliveries[0]?.state
    }
    // A service without nonces and without a history cannot say whether the message arrived.
    await waitUntil(async () => ['sent', 'unknown'].includes(await state()), 'the delivery has an end')
    chat.service.say({ place, author: ADA, text: 'two' })
    assert.deepEqual(await chat.answers(place, 2), ['echo one', 'echo two'])
  })

  test('GW-8 RT-7 a failure is one sentence with a category, without stderr and paths', async (t) => {
    const chat = await open(t, {
      workspace: { runtime: 'exec', max_attempts: 1, runtime_config: { cmd: 'echo /secret/path >&2; exit 3' } },
    })
    const place = chat.service.newPlace('direct')
    const id = chat.service.say({ place, author: ADA, text: 'fail' })
    const [text = ''] = await chat.answers(place, 1)
    assert.match(text, /ended with exit code 3.*exit_3/)
    assert.doesNotMatch(text, /secret/)
    await waitUntil(() => chat.service.reaction(place, id) === 'failed', 'the message is marked as failed')
  })
}
