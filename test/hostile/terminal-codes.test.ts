/** An agent writes codes for the reader's terminal: they may set its clipboard, its title and its links, or hide a command. */
import assert from 'node:assert/strict'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openTerminal, runCommand } from '../harness/command.ts'
import { createHandWorker } from '../harness/hand-worker.ts'
import { type PlatformUnderTest, sendWithoutWaiting, startPlatformFor } from '../harness/platform.ts'

const CODES = [
  '\u001b]52;c;ZXZpbA==\u0007',
  '\u001b]8;;https://evil.test\u001b\\link\u001b]8;;\u001b\\',
  '\u001b]0;title\u0007',
  '\u001b[2J\u001b[8m',
  '\u009b31m\u202egnp.exe\u2066',
].join('')
/** What no command may send to a terminal. Our own lines use colours, cursor keys and the line's start. */
const FOREIGN = new RegExp(
  ['\u001b\\]', '\u001b\\\\', '\u001b\\[2J', '\u001b\\[8m', '\u0007', '[\u0080-\u009f\u202e\u2066]'].join('|'),
)

const homeOf = ({ dataDir }: PlatformUnderTest) => ({ MOLECULE_HOME: dataDir })

/** Runs the command at a terminal and into a pipe; what the terminal showed. */
async function show(t: TestContext, platform: PlatformUnderTest, ...args: string[]): Promise<string> {
  const terminal = openTerminal(t, args, homeOf(platform))
  assert.equal(await terminal.ended(), 0, terminal.shown())
  assert.doesNotMatch(terminal.shown(), FOREIGN, args.join(' '))
  const piped = await runCommand(args, { env: homeOf(platform) })
  assert.doesNotMatch(piped.out, FOREIGN, args.join(' '))
  return piped.out
}

test('RE-9 PL-30 codes of an agent reach no terminal: pending, status, logs, explain, tables, answers', async (t) => {
  const platform = await startPlatformFor(t)
  const worker = await createHandWorker(platform, {})
  const taskId = await sendWithoutWaiting(platform, worker.workspaceId, `do it ${CODES}`)
  const turn = await worker.lease()
  const subject = `rm -rf a \u202etxt.b ${CODES}`
  await turn.append({ type: 'tool', name: `Bash${CODES}`, subject, state: 'started' })
  await turn.ask('may I?', { tool: `Bash${CODES}`, subject })
  const [ask] = (await platform.request('GET', '/pending')).body.pending
  // A person sees that there is something between the words.
  assert.match(await show(t, platform, 'pending'), /rm -rf a \\u202etxt\.b \\x1b\]52;c;/)
  assert.match(await show(t, platform, 'pending', 'show', ask.id), /rm -rf a \\u202etxt\.b \\x1b\]52;c;/)
  await show(t, platform, 'status')
  assert.match(await show(t, platform, 'logs', worker.workspaceId), /\\u202etxt/)
  await platform.request('POST', `/pending/${ask.id}`, { decision: 'allow' })
  await worker.nextAnswer()
  await turn.answer(`done ${CODES}`)
  await show(t, platform, 'explain', taskId)
  await show(t, platform, 'task', 'show', taskId)
  await show(t, platform, 'workspace', 'list')
  // A program's stderr is in the log of the platform.
  appendFileSync(join(platform.dataDir, 'molecule.log'), `${JSON.stringify({ level: 40, msg: CODES })}\n${CODES}\n`)
  await show(t, platform, 'logs')
})

test('RE-9 PL-30 codes of an agent reach no terminal: the progress of a send, its answer, and a chat', async (t) => {
  const platform = await startPlatformFor(t)
  const worker = await createHandWorker(platform, {})
  const subject = `rm a \u202etxt.b ${CODES}`
  const sending = openTerminal(t, ['agent', 'send', 'Ada', 'hello'], homeOf(platform))
  const first = await worker.lease()
  await first.ask('may I?', { tool: `Bash${CODES}`, subject })
  await sending.waitForText(/pending/)
  const [ask] = (await platform.request('GET', '/pending')).body.pending
  await platform.request('POST', `/pending/${ask.id}`, { decision: 'allow' })
  await worker.nextAnswer()
  await first.answer(`done ${CODES}`)
  assert.equal(await sending.ended(), 0)
  assert.match(sending.shown(), /done /)
  assert.doesNotMatch(sending.shown(), FOREIGN)

  const chat = openTerminal(t, ['chat', 'Ada'], homeOf(platform))
  await chat.waitForScreen(/you ›$/)
  chat.type('hello\r')
  const second = await worker.lease()
  await second.append({ type: 'tool', name: `Bash${CODES}`, subject, state: 'started' })
  await second.append({ type: 'text', delta: `first ${CODES}` })
  await second.ask('may I?', { tool: `Bash${CODES}`, subject })
  await chat.waitForScreen(/rm a \\u202etxt\.b \\x1b\]52;c;.*allow it\?/s)
  chat.type('y\r')
  await worker.nextAnswer()
  await second.answer(`first ${CODES} second`)
  await chat.waitForScreen(/second/)
  chat.type('\u0004')
  assert.equal(await chat.ended(), 0)
  assert.doesNotMatch(chat.shown(), FOREIGN)
})
