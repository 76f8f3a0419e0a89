/** Part of the channel contract: voice notes, with a small script in place of a speech recognizer. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { SaidFile } from '../../fakes/chat-service.ts'
import { waitUntil } from '../../harness/wait.ts'
import { ADA, type ChannelUnderTest, type OpenChat, openChat } from './open-chat.ts'

/** It hears what is written in the file, and fails for a file without words. */
const HEAR = '[ "$1" = "$MOLECULE_VOICE_FILE" ] || exit 9; tr a-z A-Z < "$1"; grep -q words "$1"'

const note = (content: string, more: Partial<SaidFile> = {}): SaidFile => ({
  name: 'spoken.ogg',
  content: Buffer.from(content),
  mediaType: 'audio/ogg',
  isVoice: true,
  ...more,
})

/** Without the mark of the service. */
const NAMED_AS_VOICE = { name: 'Voice 1.ogg', mediaType: 'audio/ogg' }

export function channelVoiceTests(under: ChannelUnderTest): void {
  test('GW-2 a voice note becomes the beginning of the text; without words, and without the command, it stays a file', async (t) => {
    const chat = await openChat(t, under, { env: { MOLECULE_VOICE_COMMAND: HEAR } })
    const place = chat.service.newPlace('direct')
    chat.service.say({ place, author: ADA, text: 'typed', files: [note('quiet words')] })
    assert.deepEqual(await chat.answers(place, 1), ['echo QUIET WORDS\n\ntyped'])
    assert.deepEqual(await lastParts(chat), [{ text: 'QUIET WORDS\n\ntyped' }])
    chat.service.say({
      place,
      author: ADA,
      text: '',
      files: [{ ...NAMED_AS_VOICE, content: Buffer.from('words alone') }],
    })
    assert.deepEqual((await chat.answers(place, 2))[1], 'echo WORDS ALONE')
    chat.service.say({ place, author: ADA, text: '', files: [note('hm')] })
    await chat.answers(place, 3)
    const [text, file] = await lastParts(chat)
    assert.match(text?.text ?? '', /^\(A voice note could not be turned into text/)
    assert.equal(Buffer.from(file?.raw ?? '', 'base64').toString(), 'hm')
    chat.service.say({
      place,
      author: ADA,
      text: 'a song',
      files: [note('words', { name: 'song.txt', mediaType: 'text/plain', isVoice: false })],
    })
    await chat.answers(place, 4)
    assert.deepEqual([(await lastParts(chat)).length, (await lastParts(chat))[0]?.text], [2, 'a song'])
    await chat.platform.stop()
    await chat.start()
    chat.service.say({ place, author: ADA, text: 'later', files: [note('more words')] })
    await chat.answers(place, 5)
    assert.deepEqual(
      (await lastParts(chat)).map(({ text: typed, filename }) => typed ?? filename !== undefined),
      ['later', true],
    )
  })

  test('GW-2 a stop while a voice note is heard ends the command, and the next start takes the message once', async (t) => {
    const folder = await mkdtemp(join(tmpdir(), 'molecule-voice-test-'))
    t.after(() => rm(folder, { recursive: true, force: true }))
    const chat = await openChat(t, under, { env: { MOLECULE_VOICE_COMMAND: `touch ${folder}/begun; sleep 300` } })
    const place = chat.service.newPlace('direct')
    chat.service.say({ place, author: ADA, text: 'hear this', files: [note('words')] })
    await waitUntil(() => existsSync(join(folder, 'begun')), 'the command runs')
    await chat.platform.stop()
    await chat.start()
    assert.deepEqual(await chat.answers(place, 1), ['echo hear this'])
    assert.equal((await chat.tasks()).length, 1)
  })
}

/** Of the newest message. */
async function lastParts(chat: OpenChat) {
  const [newest] = await chat.tasks()
  const { body } = await chat.platform.rpc(chat.workspaceId, 'GetTask', { id: newest?.id })
  return body.result.history[0].parts as { text?: string; raw?: string; filename?: string }[]
}
