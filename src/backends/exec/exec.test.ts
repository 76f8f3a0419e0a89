import assert from 'node:assert/strict'
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { listEvents, makeTurn, replyOf, type TurnOverrides } from '../../../test/fakes/turns.ts'
import { linuxOnly, markedPids } from '../../../test/harness/live-processes.ts'
import { createProcessHarness, PLAIN_ENVIRONMENT } from '../../../test/harness/process-harness.ts'
import { systemClock } from '../../clock.ts'
import type { MoleculeError } from '../../errors.ts'
import { silentLog } from '../../log.ts'
import { platformEnvironment } from '../../process/child-environment.ts'
import type { Message, Part } from '../../protocol/a2a.ts'
import type { RequestPart } from '../../protocol/request.ts'
import { createOptions } from '../options.ts'
import { exec } from './exec.ts'

type Values = Readonly<Record<string, string>>

test('EX-1 quoting, pipes, variables and globs work as in a terminal, in the working folder', async (t) => {
  const { reply, dir } = setUp(t, { environment: { ...PLAIN_ENVIRONMENT, WHO: 'Ada' } })
  const cmd = `touch b.txt a.txt; tr a-z A-Z | sed 's/$/!/'; echo "$WHO" 'and $WHO' *.txt; pwd`
  assert.equal(await reply({ cmd }, { text: 'hello\n' }), `HELLO!\nAda and $WHO a.txt b.txt\n${dir}\n`)
})

const mixedParts: readonly RequestPart[] = [
  { type: 'text', text: 'one' },
  { type: 'file', uri: 'https://a.example/f', mime_type: 'x/y' },
  { type: 'text', text: '\ntwo' },
  { type: 'data', data: { three: 3 } },
  { type: 'text', text: ' four' },
]

test('EX-2 stdin is the text parts joined in order with nothing between, without files and data', async (t) => {
  const { reply } = setUp(t)
  // The line that a retried turn adds for a model is not part of the message.
  const prompt = 'An earlier attempt was interrupted.'
  assert.equal(await reply({ cmd: 'cat' }, { parts: mixedParts, prompt }), 'one\ntwo four')
})

test('EX-2 BK-1 BK-10 with format=json stdin is the whole request as one line of JSON', async (t) => {
  const { reply } = setUp(t)
  const request = { caller_id: 'ws_2', raw: { jsonrpc: '2.0', params: { message: { 'x-unknown': [1] } } } }
  const turn = makeTurn({ parts: mixedParts, request })
  const text = await reply({ cmd: 'cat', format: 'json' }, { ...turn, parts: mixedParts })
  const { outbox: _outbox, attachments_error: _refused, ...request_ } = JSON.parse(text)
  assert.deepEqual(request_, turn.request)
  assert.equal(text.indexOf('\n'), text.length - 1)
  assert.deepEqual(turn.request.sender, { kind: 'person', id: 'people', name: 'Ada', door: 'http' })
})

test('EX-3 exit 0: stdout is the reply byte for byte, even empty', async (t) => {
  const { parts } = setUp(t)
  assert.deepEqual(await parts({ cmd: 'true' }), [{ text: '' }])
  assert.deepEqual(await parts({ cmd: "printf ' two\\n\\n'" }), [{ text: ' two\n\n' }])
  assert.deepEqual(await parts({ cmd: "printf '\\357\\273\\277bom\\r\\n'" }), [{ text: '\ufeffbom\r\n' }])
  const bytes = { raw: Buffer.from([255, 254, 0, 97]).toString('base64'), mediaType: 'application/octet-stream' }
  assert.deepEqual(await parts({ cmd: "printf '\\377\\376\\000a'" }), [bytes])
})

test('EX-4 a timeout that is invalid or not positive is refused with its value', (t) => {
  const { build } = setUp(t)
  for (const timeout of ['5', 'soon', '1,5h', '0s', '-1s', 'None']) {
    assert.throws(() => build({ cmd: 'cat', timeout }), { code: 'bad_config', message: new RegExp(`"${timeout}"`) })
  }
  for (const timeout of ['300ms', '1.5h', '2m30s', 'none', '']) build({ cmd: 'cat', timeout })
})

test(
  'EX-4 on timeout the whole process tree is killed, and the error names command, timeout and stderr',
  linuxOnly,
  async (t) => {
    const { failure, owner } = setUp(t)
    const cmd = 'echo working on it >&2; setsid sleep 300 & sleep 300 & sleep 300'
    const error = await failure({ cmd, timeout: '500ms' })
    assert.deepEqual([error.code, error.retryable], ['timeout', true])
    assert.ok(error.message.includes(JSON.stringify(cmd)))
    assert.match(error.message, /timed out after 500ms .*working on it/)
    assert.deepEqual(markedPids(owner), [])
  },
)

test('EX-5 a non-zero exit code is an error with the last 1024 bytes of stderr, after ... if cut', async (t) => {
  const { failure } = setUp(t)
  const short = await failure({ cmd: 'printf %1024s x >&2; exit 3' })
  assert.deepEqual([short.code, short.retryable, short.details['exitCode']], ['exit', true, 3])
  assert.equal(short.details['stderr'], 'x'.padStart(1024))
  assert.ok(short.message.includes('exited with code 3') && short.message.includes('x'.padStart(1024)))
  const long = await failure({ cmd: 'printf "y%1024s" x >&2; exit 4' })
  assert.equal(long.details['stderr'], `...${'x'.padStart(1024)}`)
  assert.ok(long.message.includes(`(stderr: ...${'x'.padStart(1024)})`))
})

test('EX-5 a cut inside a character drops the rest of that character', async (t) => {
  const { failure } = setUp(t)
  const error = await failure({ cmd: `printf '漢%1023s' x >&2; exit 1` })
  assert.equal(error.details['stderr'], `...${'x'.padStart(1023)}`)
})

test('EX-5 stderr of a successful command goes to the log', async (t) => {
  const lines: object[] = []
  const log = { ...silentLog, info: (fields: object, message: string) => lines.push({ ...fields, message }) }
  const { reply } = setUp(t, { log })
  assert.equal(await reply({ cmd: 'echo note >&2; echo ok' }), 'ok\n')
  assert.equal(await reply({ cmd: 'echo quiet' }), 'quiet\n')
  assert.equal(lines.length, 1)
  assert.match(JSON.stringify(lines[0]), /"workspace":"ws_1".*"stderr":"note\\n"/)
})

test('RT-6 a command that is missing, not executable, or killed by a signal says so', async (t) => {
  const { failure } = setUp(t)
  const missing = await failure({ cmd: 'no-such-command-here' })
  assert.deepEqual([missing.code, missing.details['exitCode'], missing.retryable], ['exit', 127, false])
  assert.match(missing.message, /code 127: command not found/)
  const plain = await failure({ cmd: 'echo > plain; ./plain' })
  assert.match(plain.message, /code 126: command found but not executable/)
  assert.deepEqual([plain.retryable, (await failure({ cmd: 'exit 125' })).retryable], [false, true])
  const killed = await failure({ cmd: 'kill -9 $$' })
  assert.match(killed.message, /was killed by SIGKILL/)
  assert.equal(killed.details['signal'], 'SIGKILL')
})

test('the error of a command that opens a standard stream by name says what to do instead', linuxOnly, async (t) => {
  const { failure } = setUp(t)
  for (const cmd of ['cat /dev/stdin', 'echo oops > /dev/stderr']) {
    assert.match((await failure({ cmd })).message, /cannot be opened here: read stdin itself, write with >&2/)
  }
  assert.doesNotMatch((await failure({ cmd: 'echo oops >&2; exit 1' })).message, /cannot be opened/)
})

test('a missing working folder is a retryable spawn failure that names it', async (t) => {
  const { failure } = setUp(t)
  const error = await failure({ cmd: 'cat' }, { workingDir: '/nowhere' })
  assert.deepEqual([error.code, error.retryable], ['spawn_failed', true])
  assert.match(error.message, /"cat" could not be started: the working folder \/nowhere does not exist/)
  assert.ok(error.cause instanceof Error)
})

test('output_max ends an endless output, and invalid options are refused with their value', async (t) => {
  const { failure, build } = setUp(t)
  const error = await failure({ cmd: 'yes', output_max: '1000' })
  assert.deepEqual([error.code, error.retryable, error.details['limitBytes']], ['too_large', false, 1000])
  assert.match(error.message, /"yes" printed more than 1000 bytes and was killed/)
  for (const output_max of ['0', '-1', '1.5', '10 MiB', '1e3', '9'.repeat(30)]) {
    assert.throws(() => build({ cmd: 'cat', output_max }), { code: 'bad_config', message: /output_max/ })
  }
  assert.throws(() => build({ cmd: 'cat', format: 'xml' }), { code: 'bad_config', message: /"xml"/ })
  assert.throws(() => build({ cmd: 'cat', pass_meta: 'yes' }), { code: 'bad_config', message: /"yes"/ })
})

const secrets = {
  MOLECULE_ADMIN_TOKEN: 'secret',
  MOLECULE_WORKSPACE_TOKEN: 'secret',
  MOLECULE_TASK_ID: 'of the platform that runs this test',
  DATABASE_URL: 'secret',
  DISCORD_BOT_TOKEN: 'secret',
}
/** As a platform gives it to its backends. */
const ENVIRONMENT = platformEnvironment({ ...PLAIN_ENVIRONMENT, ...secrets, HOME: '/home/ada' })
const turnEnv = { MOLECULE_API_URL: 'http://here', MOLECULE_WORKSPACE_TOKEN: 'conversation', PROJECT: 'p' }

test('EX-6 by default the environment is inherited and stripped, and it has no id, address or token of the platform', async (t) => {
  const { variables, owner } = setUp(t, { environment: ENVIRONMENT })
  const { MOLECULE_TURN, MOLECULE_OUTBOX, ...rest } = await variables({}, { env: turnEnv })
  assert.deepEqual(rest, { ...PLAIN_ENVIRONMENT, HOME: '/home/ada', PROJECT: 'p' })
  assert.ok(MOLECULE_TURN?.startsWith(`${owner}:`) && MOLECULE_OUTBOX)
})

test('EX-6 pass_meta=true adds the five ids of the message and the variables of the turn', async (t) => {
  const { variables } = setUp(t, { environment: ENVIRONMENT })
  const request = { workspace_id: 'ws_9', caller_id: '', message_id: 'm\0 1', task_id: 't 1', method: 'message/send' }
  const { MOLECULE_TURN, MOLECULE_OUTBOX, MOLECULE_SYSTEM_PROMPT_FILE, ...rest } = await variables(
    { pass_meta: 'true' },
    { env: turnEnv, request },
  )
  assert.ok(MOLECULE_TURN && MOLECULE_OUTBOX && MOLECULE_SYSTEM_PROMPT_FILE)
  assert.deepEqual(rest, {
    ...PLAIN_ENVIRONMENT,
    HOME: '/home/ada',
    ...turnEnv,
    MOLECULE_WORKSPACE_ID: 'ws_9',
    MOLECULE_CALLER_ID: '',
    MOLECULE_MESSAGE_ID: 'm 1',
    MOLECULE_TASK_ID: 't 1',
    MOLECULE_METHOD: 'message/send',
  })
})

test('EX-7 the text of a message reaches neither argv, nor the environment, nor the shell', linuxOnly, async (t) => {
  const { reply, dir } = setUp(t)
  const text = `'; touch pwned; "$(touch pwned)" \`touch pwned\` && touch pwned | touch pwned\n touch pwned # %s $0`
  assert.equal(await reply({ cmd: 'cat', pass_meta: 'true' }, { text }), text)
  assert.ok(!existsSync(join(dir, 'pwned')))
  assert.deepEqual(readdirSync(dir), [])
  const cmd = 'cat > /dev/null; cat /proc/$$/cmdline /proc/$$/environ'
  const seen = await reply({ cmd, pass_meta: 'true' }, { text: 'a-unique-word' })
  assert.ok(seen.startsWith(`/bin/sh\0-c\0${cmd}\0`))
  assert.ok(!seen.includes('a-unique-word'))
})

test('EX-8 a cancel kills the command at once, also one that ignores SIGTERM', linuxOnly, async (t) => {
  const { build, owner, dir } = setUp(t)
  const cancel = new AbortController()
  const turn = makeTurn({ workingDir: dir })
  const backend = build({ cmd: "trap '' TERM; echo ready; sleep 300", timeout: 'none' })
  let code = ''
  for await (const event of backend.run(turn, cancel.signal)) {
    if (event.type === 'text') cancel.abort()
    if (event.type === 'failed') code = event.error.code
  }
  assert.equal(code, 'canceled')
  assert.deepEqual(markedPids(owner), [])
})

test('events come while the command runs, and the end comes last', linuxOnly, async (t) => {
  const { build, reply, dir } = setUp(t)
  const seen: string[] = []
  // The command prints the second word only after the first was read, so the first cannot wait for the end.
  const backend = build({ cmd: 'printf one; while [ ! -e go ]; do sleep 0.01; done; printf two' })
  for await (const event of backend.run(makeTurn({ workingDir: dir }), new AbortController().signal)) {
    if (event.type === 'text' && event.delta === 'one') await reply({ cmd: 'touch go' })
    seen.push(event.type === 'text' ? event.delta : event.type)
  }
  assert.deepEqual(seen, ['one', 'two', 'done'])
})

function setUp(t: TestContext, overrides: { environment?: Record<string, string>; log?: typeof silentLog } = {}) {
  const { processes, owner, dir } = createProcessHarness(t)
  const context = { processes, environment: PLAIN_ENVIRONMENT, clock: systemClock, log: silentLog, ...overrides }
  const build = (values: Values) => exec.create(createOptions(values), context)
  const end = async (values: Values, turn: TurnOverrides = {}) => {
    const stream = build(values).run(makeTurn({ workingDir: dir, ...turn }), new AbortController().signal)
    return (await listEvents(stream)).at(-1)
  }
  const parts = async (values: Values, turn?: TurnOverrides): Promise<readonly Part[]> => {
    const event = await end(values, turn)
    assert.ok(event?.type === 'done', event?.type === 'failed' ? event.error.message : 'no end')
    return event.parts
  }
  const failure = async (values: Values, turn?: TurnOverrides): Promise<MoleculeError> => {
    const event = await end(values, turn)
    assert.ok(event?.type === 'failed', 'it did not fail')
    return event.error
  }
  const reply = async (values: Values, turn?: TurnOverrides) => (await parts(values, turn))[0]?.text ?? ''
  const variables = async (values: Values, turn: TurnOverrides): Promise<Record<string, string>> => {
    // Without the variables that the shell adds.
    const text = await reply({ cmd: 'exec env -u PWD -u OLDPWD -u _ -u SHLVL env', ...values }, turn)
    return Object.fromEntries(text.trimEnd().split('\n').map(pair))
  }
  return { owner, dir, build, parts, failure, reply, variables }
}

function pair(line: string): [string, string] {
  const at = line.indexOf('=')
  return [line.slice(0, at), line.slice(at + 1)]
}

/** One backend with all its turns. */
function setUpTurns(t: TestContext, values: Values) {
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
const given = { systemPrompt: 'You are short.', recalled: 'What you remember: tea', peers: 'Peers: none', history }

test('RT-17 prompt with memories, and history, lie in private files that are gone after the turn', async (t) => {
  const cmd = 'cat; for f in "$MOLECULE_SYSTEM_PROMPT_FILE" "$MOLECULE_HISTORY_FILE"; do echo; echo $f; cat $f; done'
  const { reply } = setUpTurns(t, { cmd })
  const [text, promptFile = '', prompt, , memories, historyFile = '', json = ''] = (
    await reply({ text: 'hi', ...given })
  ).split('\n')
  assert.deepEqual([text, prompt, memories], ['hi', 'You are short.', 'What you remember: tea'])
  assert.deepEqual(JSON.parse(json), chat)
  for (const path of [promptFile, historyFile]) assert.ok(path !== '' && !existsSync(path), path)
  const modes = setUpTurns(t, {
    cmd: 'stat -c %a "$MOLECULE_SYSTEM_PROMPT_FILE" "$MOLECULE_HISTORY_FILE" "$MOLECULE_OUTBOX"',
  })
  assert.equal(await modes.reply(given), '600\n600\n700\n')
})

test('RT-17 a plain command gets its text and nothing else: no file, no line, nothing new in its folder', async (t) => {
  const cmd =
    'cat; echo "$MOLECULE_SYSTEM_PROMPT_FILE$MOLECULE_HISTORY_FILE$MOLECULE_ATTACHMENTS"; ls -A; ls -A "$MOLECULE_OUTBOX"'
  const { reply, workingDir } = setUpTurns(t, { cmd })
  assert.deepEqual([await reply({ text: 'hi' }), await reply({ text: 'ho' })], ['hi\n', 'ho\n'])
  const withBrief = setUpTurns(t, { cmd: 'cat' })
  assert.equal(await withBrief.reply({ text: 'hi', ...given }), 'hi')
  assert.deepEqual([readdirSync(workingDir), readdirSync(withBrief.workingDir)], [[], []])
})

test('RT-17 only a command with pass_meta, and so with `a2a` and a token, is told of its peers', async (t) => {
  const cmd = 'cat "$MOLECULE_SYSTEM_PROMPT_FILE"'
  const turn = { ...given, env: { MOLECULE_WORKSPACE_TOKEN: 'conversation' } }
  const told = await setUpTurns(t, { cmd, pass_meta: 'true' }).reply(turn)
  assert.match(
    told,
    /^You are short\.\n\nWhat you remember: tea\n\nPeers: none\n\n[\s\S]*`a2a delegate [\s\S]*\$MOLECULE_OUTBOX/,
  )
  assert.doesNotMatch(await setUpTurns(t, { cmd }).reply(turn), /Peers|a2a|OUTBOX/)
})

test('RT-17 with format=json the same is in fields of the request', async (t) => {
  const { reply } = setUpTurns(t, { cmd: 'cat', format: 'json' })
  const request = JSON.parse(await reply({ text: 'hi', ...given }))
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
  const { reply, workingDir } = setUpTurns(t, { cmd: 'cat; cat "$MOLECULE_ATTACHMENTS/a b.png"' })
  assert.equal(await reply({ parts: attached }), 'lookpixels')
  assert.deepEqual(readdirSync(workingDir), ['.molecule'])
  const json = setUpTurns(t, { cmd: 'cat', format: 'json' })
  const { attachments } = JSON.parse(await json.reply({ parts: attached }))
  assert.deepEqual([attachments[0].name, attachments[0].mime_type, attachments[0].bytes], ['a b.png', 'image/png', 6])
  assert.equal(readFileSync(attachments[0].path, 'utf8'), 'pixels')
  assert.equal(statSync(attachments[0].path).mode & 0o777, 0o600)
})

test('RT-17 EX-2 a file that cannot be fetched does not stop a command; people see that it could not be used', async (t) => {
  const { run } = setUpTurns(t, { cmd: 'cat' })
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
  const { run } = setUpTurns(t, { cmd })
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

test('RT-17 a later turn has a folder also after the temporary folder was cleaned; the end leaves none', async (t) => {
  const { reply, backend } = setUpTurns(t, {
    cmd: 'echo "$MOLECULE_OUTBOX"; rm -r "$(dirname "$(dirname "$MOLECULE_OUTBOX")")"',
  })
  const first = (await reply()).trim()
  const second = (await reply()).trim()
  assert.notEqual(first, second)
  const kept = setUpTurns(t, { cmd: 'echo "$MOLECULE_OUTBOX"; test -d "$MOLECULE_OUTBOX"' })
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
  const { reply, backend } = setUpTurns(t, { cmd })
  const outbox = (await reply()).trim()
  await backend.close()
  assert.ok(existsSync(outbox))
  chmodSync(join(outbox, 'a'), 0o700)
  rmSync(dirname(dirname(outbox)), { recursive: true })
})
