/** What a program of the owner gets beside its message, as a command of the exec backend sees it. */
import assert from 'node:assert/strict'
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { listEvents, makeTurn, replyOf, type TurnOverrides } from '../../../test/fakes/turns.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../../test/harness/process-harness.ts'
import { systemClock } from '../../clock.ts'
import { silentLog } from '../../log.ts'
import type { Message } from '../../protocol/a2a.ts'
import type { RequestPart } from '../../protocol/request.ts'
import { createOptions } from '../options.ts'
import { exec } from './exec.ts'

type Values = Readonly<Record<string, string>>

/** One backend with all its turns. */
function setUp(t: TestContext, values: Values) {
  const { processes, dir: workingDir } = createProcessHarness(t)
  const context = { processes, environment: PLAIN_ENVIRONMENT, clock: systemClock, log: silentLog }
  const backend = exec.create(createOptions(values), context)
  t.after(() => backend.close())
  const run = (turn: TurnOverrides = {}) =>
    listEvents(backend.run(makeTurn({ workingDir, ...turn }), new AbortController().signal))
  return { run, reply: async (turn?: TurnOverrides) => replyOf(await run(turn)), backend, workingDir }
}

const history: readonly Message[] = [
  { messageId: '1', role: 'ROLE_USER', parts: [{ text: 'I am Ada' }, { raw: 'eA==', filename: 'a.txt' }] },
  { messageId: '2', role: 'ROLE_AGENT', parts: [{ text: 'hello' }] },
]
const chat = [
  { role: 'user', content: 'I am Ada\n[attached file: a.txt]' },
  { role: 'assistant', content: 'hello' },
]
const brief = { systemPrompt: 'You are short.', recalled: 'What you remember: tea', peers: 'Peers: none', history }

test('RT-17 prompt with memories, and history, lie in private files that are gone after the turn', async (t) => {
  const cmd = 'cat; for f in "$MOLECULE_SYSTEM_PROMPT_FILE" "$MOLECULE_HISTORY_FILE"; do echo; echo $f; cat $f; done'
  const { reply } = setUp(t, { cmd })
  const [text, promptFile = '', prompt, , memories, historyFile = '', json = ''] = (
    await reply({ text: 'hi', ...brief })
  ).split('\n')
  assert.deepEqual([text, prompt, memories], ['hi', 'You are short.', 'What you remember: tea'])
  assert.deepEqual(JSON.parse(json), chat)
  for (const path of [promptFile, historyFile]) assert.ok(path !== '' && !existsSync(path), path)
  const modes = setUp(t, {
    cmd: 'stat -c %a "$MOLECULE_SYSTEM_PROMPT_FILE" "$MOLECULE_HISTORY_FILE" "$MOLECULE_OUTBOX"',
  })
  assert.equal(await modes.reply(brief), '600\n600\n700\n')
})

test('RT-17 a plain command gets its text and nothing else: no file, no line, nothing new in its folder', async (t) => {
  const cmd =
    'cat; echo "$MOLECULE_SYSTEM_PROMPT_FILE$MOLECULE_HISTORY_FILE$MOLECULE_ATTACHMENTS"; ls -A; ls -A "$MOLECULE_OUTBOX"'
  const { reply, workingDir } = setUp(t, { cmd })
  assert.deepEqual([await reply({ text: 'hi' }), await reply({ text: 'ho' })], ['hi\n', 'ho\n'])
  const withBrief = setUp(t, { cmd: 'cat' })
  assert.equal(await withBrief.reply({ text: 'hi', ...brief }), 'hi')
  assert.deepEqual([readdirSync(workingDir), readdirSync(withBrief.workingDir)], [[], []])
})

test('RT-17 only a command with pass_meta, and so with `a2a` and a token, is told of its peers', async (t) => {
  const cmd = 'cat "$MOLECULE_SYSTEM_PROMPT_FILE"'
  const turn = { ...brief, env: { MOLECULE_WORKSPACE_TOKEN: 'conversation' } }
  const told = await setUp(t, { cmd, pass_meta: 'true' }).reply(turn)
  assert.match(
    told,
    /^You are short\.\n\nWhat you remember: tea\n\nPeers: none\n\n[\s\S]*`a2a delegate [\s\S]*\$MOLECULE_OUTBOX/,
  )
  assert.doesNotMatch(await setUp(t, { cmd }).reply(turn), /Peers|a2a|OUTBOX/)
})

test('RT-17 with format=json the same is in fields of the request', async (t) => {
  const { reply } = setUp(t, { cmd: 'cat', format: 'json' })
  const request = JSON.parse(await reply({ text: 'hi', ...brief }))
  assert.equal(request.system_prompt, 'You are short.\n\nWhat you remember: tea')
  assert.deepEqual([request.history, request.parts], [chat, [{ type: 'text', text: 'hi' }]])
  const plain = JSON.parse(await reply({ text: 'hi' }))
  assert.ok(!('system_prompt' in plain) && !('history' in plain) && !('attachments' in plain))
})

const base64 = (text: string) => Buffer.from(text).toString('base64')
const attached: readonly RequestPart[] = [
  { type: 'text', text: 'look' },
  { type: 'file', bytes: base64('pixels'), filename: 'a b.png', mime_type: 'image/png' },
]

test('RT-17 attachments lie in the working folder, and a variable and a field name them', async (t) => {
  const { reply, workingDir } = setUp(t, { cmd: 'cat; cat "$MOLECULE_ATTACHMENTS/a b.png"' })
  assert.equal(await reply({ parts: attached }), 'lookpixels')
  assert.deepEqual(readdirSync(workingDir), ['.molecule'])
  const json = setUp(t, { cmd: 'cat', format: 'json' })
  const { attachments } = JSON.parse(await json.reply({ parts: attached }))
  assert.deepEqual([attachments[0].name, attachments[0].mime_type, attachments[0].bytes], ['a b.png', 'image/png', 6])
  assert.equal(readFileSync(attachments[0].path, 'utf8'), 'pixels')
  assert.equal(statSync(attachments[0].path).mode & 0o777, 0o600)
})

test('RT-17 EX-2 a file that cannot be fetched does not stop a command; people see that it could not be used', async (t) => {
  const { run } = setUp(t, { cmd: 'cat' })
  const parts: RequestPart[] = [
    { type: 'text', text: 'look' },
    { type: 'file', uri: 'http://127.0.0.1:9/secret' },
  ]
  const events = await run({ parts })
  assert.equal(replyOf(events), 'look')
  assert.match(
    JSON.stringify(events.filter(({ type }) => type === 'status')),
    /a file of the message could not be used/,
  )
})

test('RT-17 files in the outbox are delivered with the answer, those of a failed turn are not, and no link is', async (t) => {
  const cmd = 'read word; cd "$MOLECULE_OUTBOX"; ls; echo $word > $word.txt; ln -s /etc/passwd link; [ $word = good ]'
  const { run } = setUp(t, { cmd })
  await run({ text: 'bad\n' })
  const events = await run({ text: 'good\n' })
  const artifacts = events.flatMap((event) => (event.type === 'artifact' ? [event.artifact] : []))
  assert.deepEqual(
    artifacts.map(({ name, parts }) => [name, Buffer.from(parts[0]?.raw ?? '', 'base64').toString()]),
    [['good.txt', 'good\n']],
  )
  // `ls` came first: nothing of the turn before was left.
  assert.equal(replyOf(events), '')
})

test('RT-17 a later turn has a folder also where somebody cleaned the temporary folder; the end leaves none', async (t) => {
  const { reply, backend } = setUp(t, {
    cmd: 'echo "$MOLECULE_OUTBOX"; rm -r "$(dirname "$(dirname "$MOLECULE_OUTBOX")")"',
  })
  const first = (await reply()).trim()
  const second = (await reply()).trim()
  assert.notEqual(first, second)
  const kept = setUp(t, { cmd: 'echo "$MOLECULE_OUTBOX"; test -d "$MOLECULE_OUTBOX"' })
  const folder = (await kept.reply()).trim()
  assert.ok(existsSync(folder))
  await kept.backend.close()
  await backend.close()
  for (const path of [first, second, folder]) assert.ok(!existsSync(path))
})

test('RT-17 a read-only folder in the outbox does not cost the answer', {
  skip: process.getuid?.() === 0 && 'root may remove every folder',
}, async (t) => {
  const cmd = 'echo "$MOLECULE_OUTBOX"; mkdir -p "$MOLECULE_OUTBOX/a/b"; chmod 500 "$MOLECULE_OUTBOX/a"'
  const { reply, backend } = setUp(t, { cmd })
  const outbox = (await reply()).trim()
  await backend.close()
  assert.ok(existsSync(outbox))
  chmodSync(join(outbox, 'a'), 0o700)
  rmSync(dirname(dirname(outbox)), { recursive: true })
})
