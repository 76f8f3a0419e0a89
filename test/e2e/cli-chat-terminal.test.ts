/** `molecule chat` at a real terminal: the status line, pastes, commands, dropped files and saved files. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import type { Task } from '../../src/protocol/a2a.ts'
import { createFakeProgram } from '../fakes/agents/fake-program.ts'
import { openTerminal, runCommand, startCommand } from '../harness/command.ts'
import { getWorkspace, type PlatformUnderTest, sendWithoutWaiting, startPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const { path: claude } = createFakeProgram('claude')
const CTRL_C = '\u0003'
const CTRL_D = '\u0004'
/** As a terminal in bracketed paste mode sends it. */
const paste = (text: string) => `\u001b[200~${text.replaceAll('\n', '\r')}\u001b[201~`

describe('molecule chat at a terminal', () => {
  let platform: PlatformUnderTest
  let folder: string
  before(async () => {
    platform = await startPlatform()
    folder = await mkdtemp(join(tmpdir(), 'molecule chat-'))
  })
  after(async () => {
    await platform.dispose()
    await rm(folder, { recursive: true })
  })

  const home = () => ({ MOLECULE_HOME: platform.dataDir, PWD: folder, NO_COLOR: '1' })
  const open = async (t: TestContext, name: string, ...args: string[]) => {
    const typing = openTerminal(t, ['chat', name, ...args], home())
    await typing.waitForScreen(/\/help shows the commands\n.*you ›$/s)
    return {
      ...typing,
      async leave() {
        typing.type(CTRL_D)
        assert.equal(await typing.ended(), 0)
      },
    }
  }
  /** The messages that people have sent to the workspace, the oldest first. */
  const sent = async (id: string) => {
    const { body } = await platform.rpc(id, 'ListTasks', {})
    const tasks = body.result.tasks as Task[]
    return tasks.toReversed().map((task) => task.history?.[0]?.parts ?? [])
  }
  /** Sleeps at the text `wait`. */
  const waiter = (name: string, more: object = {}) =>
    platform.exec('read line; if [ "$line" = wait ]; then sleep 60; fi; echo "did $line"', { name, ...more })
  const isRunning = (id: string) =>
    waitUntil(async () => (await getWorkspace(platform, id)).running === 1, 'the turn runs')

  test('CL-6 a line in place says what runs and for how long, and what is typed meanwhile stays below it', async (t) => {
    const id = await waiter('busy')
    const typing = await open(t, 'busy')
    typing.type('wait\r')
    await isRunning(id)
    await typing.waitForScreen(/busy works 1 s · Ctrl-C stops/)
    typing.type('next\r')
    await typing.waitForScreen(/busy works \d+ s · 1 more to send · Ctrl-C stops/)
    typing.type('half a li')
    await typing.waitForScreen(/Ctrl-C stops\nyou › half a li$/)
    typing.type('x'.repeat(120))
    await typing.waitForScreen(/Ctrl-C stops\nyou › \.\.\.x{80,}$/)
    typing.type('\b'.repeat(120))
    await typing.waitForScreen(/Ctrl-C stops\nyou › half a li$/)
    typing.type(CTRL_C)
    await typing.waitForScreen(/· canceled\n/)
    await typing.waitForScreen(/you › next\n.*did next\n/s)
    await typing.waitForScreen(/did next\n.*you › half a li/s)
    typing.type('ne\r')
    await typing.waitForScreen(/did half a line\n/)
    await typing.leave()
  })

  test('CL-6 the line shows why a message waits', async (t) => {
    const id = await waiter('queued')
    await sendWithoutWaiting(platform, id, 'wait')
    await isRunning(id)
    const typing = await open(t, 'queued')
    typing.type('hello\r')
    await typing.waitForScreen(/waiting for a free slot: 1 of 1 in use, 1 waiting \d+ s · Ctrl-C stops/)
    assert.equal((await runCommand(['stop', 'queued'], { env: home() })).code, 0)
    await typing.waitForScreen(/waiting: the workspace is paused \d+ s/)
    assert.equal((await runCommand(['resume', 'queued'], { env: home() })).code, 0)
    await typing.waitForScreen(/did hello\n/)
    await typing.leave()
  })

  test('CL-6 pasted lines are one message, also with text around them', async (t) => {
    const id = await platform.exec('cat', { name: 'pasted' })
    const typing = await open(t, 'pasted')
    typing.type(`see ${paste('first line\n\nthird\u0003 line\n')} ok`)
    await typing.waitForScreen(/you › see \[paste 1: 3 lines\] ok/)
    typing.type('\r')
    await typing.waitForScreen(/\nsee first line\n\nthird line ok\n/)
    typing.type(paste('only one line\n'))
    await typing.waitForScreen(/you › only one line/)
    typing.type('\r')
    await typing.waitForScreen(/\nonly one line\n.*you ›$/s)
    assert.deepEqual(await sent(id), [[{ text: 'see first line\n\nthird line ok' }], [{ text: 'only one line' }]])
    await typing.leave()
    assert.ok(typing.shown().endsWith('\u001b[?2004l\r\n'))
  })

  test('CL-6 a dropped file is attached; a missing one and a mentioned one are not', async (t) => {
    const id = await platform.exec('cat', { name: 'dropped' })
    const path = join(folder, 'my report.txt')
    await writeFile(path, 'the report')
    const typing = await open(t, 'dropped')
    typing.type(`read ${paste(`'${path}' `)}`)
    await typing.waitForScreen(/you › read \[file my report\.txt\]/)
    typing.type('\r')
    await typing.waitForScreen(/· attached my report\.txt \(10 B\)\n.*read my report\.txt/s)
    // A terminal without paste marks types the path.
    typing.type(`${path.replaceAll(' ', '\\ ')}\r`)
    await typing.waitForScreen(
      /attached my report\.txt.*attached my report\.txt \(10 B\)\n· type your question; Enter alone sends .*\nyou ›$/s,
    )
    assert.equal((await sent(id)).length, 1)
    typing.type('what is in it\r')
    await typing.waitForScreen(/\nwhat is in it\nyou ›$/)
    // A path that is pasted alone waits too. Ctrl-C drops it, and Enter alone sends it.
    typing.type(`${paste(path)}\r`)
    await typing.waitForScreen(/what is in it\nyou › \[file my report\.txt\].*sends .*\nyou ›$/s)
    typing.type(CTRL_C)
    await typing.waitForScreen(/the attached files are dropped\nyou ›$/)
    typing.type(`${paste(path)}\r`)
    await typing.waitForScreen(/dropped\nyou › \[file my report\.txt\].*sends .*\nyou ›$/s)
    typing.type('\r')
    await waitUntil(async () => (await sent(id)).length === 3)
    await typing.waitForScreen(/sends .*\nyou ›\n.*you ›$/s)
    typing.type(`look at '${path}'\r`)
    await typing.waitForScreen(/look at '.*you ›$/s)
    const raw = Buffer.from('the report').toString('base64')
    const file = { raw, filename: 'my report.txt', mediaType: 'text/plain; charset=utf-8' }
    assert.deepEqual(await sent(id), [
      [{ text: 'read my report.txt' }, file],
      [{ text: 'what is in it' }, file],
      [file],
      [{ text: `look at '${path}'` }],
    ])
    const huge = join(folder, 'huge.bin')
    await writeFile(huge, Buffer.alloc(7_000_000))
    typing.type(`${paste(huge)}\r`)
    await typing.waitForScreen(/huge\.bin \(7\.0 MB\) is too large: .*; nothing was attached\nyou ›$/s)
    // A file that waits counts too, and it still waits.
    const large = join(folder, 'large.bin')
    await writeFile(large, Buffer.alloc(4_000_000))
    typing.type(`${paste(large)}\r`)
    await typing.waitForScreen(/attached large\.bin \(4\.0 MB\)\n· type your question.*\nyou ›$/s)
    typing.type(`${paste(large)}\r`)
    await typing.waitForScreen(/large\.bin \(4\.0 MB\) is too large: .*; nothing was attached\nyou ›$/s)
    typing.type(CTRL_C)
    await typing.waitForScreen(/nothing was attached\nyou ›.*the attached files are dropped\nyou ›$/s)
    assert.equal((await sent(id)).length, 4)
    await typing.leave()
  })

  test('CL-6 the files of an answer are saved, their place is shown, and nothing is overwritten', async (t) => {
    const runtime_config = { bin: claude }
    await platform.request('POST', '/workspaces', { name: 'maker', runtime: 'claude-code', runtime_config })
    await mkdir(join(folder, 'molecule-files'))
    await writeFile(join(folder, 'molecule-files', 'chart.txt'), 'mine')
    const typing = await open(t, 'maker')
    typing.type('!outbox chart.txt\r')
    await typing.waitForScreen(/wrote chart\.txt\n· saved molecule-files\/chart-2\.txt \(19 B\)\n/)
    assert.equal(await readFile(join(folder, 'molecule-files', 'chart-2.txt'), 'utf8'), 'the file chart.txt\n')
    assert.equal(await readFile(join(folder, 'molecule-files', 'chart.txt'), 'utf8'), 'mine')
    typing.type('/files\r')
    await typing.waitForScreen(/· already saved as molecule-files\/chart-2\.txt \(19 B\)\n/)
    await typing.leave()
    const again = await open(t, 'maker', '--save', '/dev/null')
    assert.match(again.screen(), /· file chart\.txt\n/)
    again.type('!outbox chart.txt\r')
    await again.waitForScreen(/chart\.txt could not be saved in \/dev\/null .*task show \w+ --save FOLDER/s)
    again.type('still here\r')
    await again.waitForScreen(/\nstill here\n/)
    await again.leave()
    const env = home()
    const piped = await runCommand(['chat', 'maker'], { env, input: '!outbox chart.txt\n', cwd: folder })
    assert.deepEqual([piped.code, piped.out], [0, 'wrote chart.txt\n'])
    assert.equal(piped.err, 'already saved as molecule-files/chart-2.txt (19 B)\n')
  })

  test('CL-6 /model shows and changes the model; /where, /help and an unknown command explain', async (t) => {
    const id = await platform.exec('cat', { name: 'commanded' })
    const typing = await open(t, 'commanded')
    typing.type('/model\r')
    await typing.waitForScreen(/· commanded uses the default model of exec\n/)
    typing.type('/model opus\r')
    await typing.waitForScreen(/· commanded uses the model opus from its next turn on, in every conversation\n/)
    assert.equal((await getWorkspace(platform, id)).model, 'opus')
    typing.type('/model default\r')
    await typing.waitForScreen(/uses the default model of exec from its next turn on/)
    assert.equal((await getWorkspace(platform, id)).model, undefined)
    typing.type('/where\r')
    await typing.waitForScreen(new RegExp(`· workspace commanded \\(${id}\\), exec, online\\n`))
    await typing.waitForScreen(/· conversation terminal\n· platform http:\S+\n· files of answers go to \/\S+/)
    typing.type('/help\r')
    await typing.waitForScreen(/· \/new: start a new conversation\n/)
    typing.type('/dance\r')
    await typing.waitForScreen(/there is no command \/dance; \/help lists them, \/\/dance sends it to the agent/)
    assert.deepEqual(await sent(id), [])
    typing.type('//dance now\r')
    await typing.waitForScreen(/\n\/dance now\n/)
    typing.type('/quit\r')
    assert.equal(await typing.ended(), 0)
  })

  test('CL-6 /stop stops a turn, /new starts a conversation, and Ctrl-C gives up a typed line', async (t) => {
    const id = await waiter('renewed')
    const typing = await open(t, 'renewed')
    typing.type('/stop\r')
    await typing.waitForScreen(/· nothing runs\n/)
    typing.type('wait\r')
    await isRunning(id)
    typing.type('/where\r')
    await typing.waitForScreen(/· conversation terminal\n/)
    typing.type('/stop\r')
    await typing.waitForScreen(/· canceled\n.*you ›$/s)
    typing.type('not this')
    await typing.waitForScreen(/not this$/)
    typing.type(CTRL_C)
    await typing.waitForScreen(/not this\n.*you ›$/s)
    typing.type('/new\r')
    await typing.waitForScreen(/· new conversation (terminal-\w+)\n/)
    typing.type('fresh\r')
    await typing.waitForScreen(/did fresh\n/)
    const contextId = /new conversation (terminal-\w+)/.exec(typing.screen())?.[1]
    const { body } = await platform.rpc(id, 'ListTasks', { contextId })
    assert.equal(body.result.totalSize, 1)
    assert.equal((await sent(id)).length, 2)
    await typing.leave()
  })

  test('CL-6 a terminal that can only print lines gets no control sequences', async (t) => {
    const id = await waiter('dumb')
    const typing = openTerminal(t, ['chat', 'dumb'], { ...home(), TERM: 'dumb' })
    await typing.waitForScreen(/you ›$/)
    typing.type('wait\r')
    await isRunning(id)
    typing.type(CTRL_C)
    await typing.waitForScreen(/· canceled\nyou ›$/)
    typing.type('go\r')
    await typing.waitForScreen(/did go\nyou ›$/)
    typing.type(CTRL_D)
    assert.equal(await typing.ended(), 0)
    assert.ok(!typing.shown().includes('\u001b'), JSON.stringify(typing.shown()))
  })

  test('CL-2 CL-6 by pipe the reason of a wait is a plain line on stderr', async (t) => {
    const id = await waiter('plain')
    await platform.request('POST', `/workspaces/${id}/pause`)
    const piped = startCommand(t, ['chat', 'plain'], { env: home(), input: 'hello\n' })
    await piped.waitForErrors(/^plain: waiting: the workspace is paused\n$/)
    await platform.request('POST', `/workspaces/${id}/resume`)
    const { code, out, err } = await piped.ended()
    assert.deepEqual([code, out, err], [0, 'did hello\n', 'plain: waiting: the workspace is paused\n'])
  })
})
