/**
 * The channel contract: what a chat channel and the shared door do together, through a running platform and a fake of the
 * service. Every channel passes it.
 */
import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import type { Written } from '../fakes/chat-service.ts'
import { waitUntil } from '../harness/wait.ts'
import { channelBudgetTests } from './channel/budgets.ts'
import { channelCommandTests } from './channel/commands.ts'
import { channelFailureTests } from './channel/failures.ts'
import { channelHomeTests } from './channel/home.ts'
import { channelLimitTests } from './channel/limits.ts'
import { ADA, type ChannelUnderTest, type ChatOptions, openChat } from './channel/open-chat.ts'
import { channelPeopleTests } from './channel/people.ts'
import { channelPlaceTests } from './channel/place.ts'
import { channelPromptTests } from './channel/prompts.ts'
import { channelQuestionTests } from './channel/questions.ts'
import { channelResendTests } from './channel/resend.ts'
import { channelRevisionTests } from './channel/revisions.ts'
import { channelStreamTests } from './channel/stream.ts'
import { channelVoiceTests } from './channel/voice.ts'
import { channelWaitTests } from './channel/waits.ts'

export type { ChannelUnderTest }

export function channelContract(under: ChannelUnderTest): void {
  const open = (t: TestContext, options?: ChatOptions) => openChat(t, under, options)

  describe(`the ${under.name ?? under.kind} channel`, () => {
    test('GW-2 GW-10 messages of a chat are answered in order, and each once although its event comes twice', async (t) => {
      const chat = await open(t)
      const place = chat.service.newPlace('direct')
      for (const text of ['one', 'two', 'three']) chat.service.say({ place, author: ADA, text, twice: true })
      assert.deepEqual(await chat.answers(place, 3), ['echo one', 'echo two', 'echo three'])
    })

    test('GW-2 a group is answered when it mentions the bot, a bound group always, and a thread is its own conversation', async (t) => {
      const chat = await open(t)
      const group = chat.service.newPlace('group')
      chat.service.say({ place: group, author: ADA, text: 'among ourselves' })
      chat.service.say({ place: group, author: ADA, text: 'hello', mentions: true })
      assert.deepEqual(await chat.answers(group, 1), ['echo hello'])
      await chat.bind(group)
      chat.service.say({ place: group, author: ADA, text: 'no mention' })
      assert.deepEqual(await chat.answers(group, 2), ['echo hello', 'echo no mention'])
      const thread = chat.service.newPlace('thread', group)
      chat.service.say({ place: thread, author: ADA, text: 'in the thread' })
      assert.deepEqual(await chat.answers(thread, 1), ['echo in the thread'])
      assert.equal(new Set((await chat.tasks()).map(({ contextId }) => contextId)).size, 2)
    })

    test('GW-2 a reaction shows the state, typing shows life, and one message is edited with the progress until it is the answer', async (t) => {
      const chat = await open(t, { cmd: 'sleep 7; cat' })
      const place = chat.service.newPlace('direct')
      const id = chat.service.say({ place, author: ADA, text: 'slow' })
      await waitUntil(() => chat.service.reaction(place, id) === 'running', 'the message is marked as running')
      await waitUntil(() => /^Working for /.test(chat.progress(place)[0]?.text ?? ''), 'the chat shows the progress')
      assert.deepEqual(await chat.answers(place, 1), ['slow'])
      await waitUntil(() => chat.service.reaction(place, id) === 'done', 'the message is marked as done')
      assert.ok(under.hasTyping === false || chat.service.typings(place) > 0)
      const [answer, ...more] = chat.service.written(place)
      assert.ok((answer?.edits ?? 0) > 0)
      assert.deepEqual(more, [])
    })

    test('GW-2 a 9,000-character answer with code blocks arrives as messages that each render alone', async (t) => {
      const block = Array.from({ length: 80 }, (_, line) => `const line${line} = 'some text of the block'`).join('\n')
      const answer = Array.from({ length: 3 }, (_, index) => `Part ${index}\n\n\`\`\`js\n${block}\n\`\`\``).join('\n\n')
      assert.ok(answer.length > 9000)
      const chat = await open(t, { cmd: `cat <<'END'\n${answer}\nEND` })
      const place = chat.service.newPlace('direct')
      chat.service.say({ place, author: ADA, text: 'long' })
      const ends = () => chat.texts(place).join('\n').split('line79 ').length - 1
      await waitUntil(() => ends() === 3, 'the last part arrives')
      const texts = chat.texts(place)
      assert.ok(texts.length > 1)
      assert.ok(texts.every((text) => text.length <= under.textCharactersMax))
      const lines = texts.join('\n').split('\n')
      for (const line of block.split('\n')) assert.equal(lines.filter((one) => one === line).length, 3, line)
    })

    test('GW-2 a file of a message reaches the agent, and a file of the answer comes back', async (t) => {
      // An answer that is no text is a file.
      const chat = await open(t, { cmd: "printf '\\377\\376\\001'" })
      const place = chat.service.newPlace('direct')
      const files = [{ name: 'note.txt', content: Buffer.from('quiet words'), mediaType: 'text/plain' }]
      chat.service.say({ place, author: ADA, text: 'look', files })
      const written = (): Written[] => chat.service.written(place).filter((message) => message.files.length > 0)
      await waitUntil(
        () => written().length > 0,
        () => `a file in ${JSON.stringify(chat.texts(place))}`,
      )
      assert.deepEqual([...(written()[0]?.files[0]?.content ?? [])], [255, 254, 1])
      const [listed] = await chat.tasks()
      const { body } = await chat.platform.rpc(chat.workspaceId, 'GetTask', { id: listed?.id })
      const [, file] = body.result.history[0].parts
      assert.deepEqual([file.filename, Buffer.from(file.raw, 'base64').toString()], ['note.txt', 'quiet words'])
    })

    channelCommandTests(under)
    channelFailureTests(under)
    channelLimitTests(under)
    channelPeopleTests(under)
    channelPlaceTests(under)
    channelPromptTests(under)
    channelRevisionTests(under)
    channelQuestionTests(under)
    channelBudgetTests(under)
    channelVoiceTests(under)
    channelHomeTests(under)
    channelStreamTests(under)
    channelWaitTests(under)
    channelResendTests(under)
  })
}
