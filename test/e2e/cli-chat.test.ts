/** `molecule chat` by pipe and by keyboard, through restarts of the platform. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { NeedView } from '../../src/client/needs.ts'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import { startRemoteAgent } from '../fakes/remote-agent/start.ts'
import { openTerminal, runCommand } from '../harness/command.ts'
import { type PlatformUnderTest, startPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const { path: claude } = createFakeProgram('claude')
const CTRL_C = '\u0003'
const CTRL_D = '\u0004'

describe('molecule chat', () => {
  let platform: PlatformUnderTest
  before(async () => {
    platform = await startPlatform({ env: CLAUDE_LOGGED_IN })
  })
  after(() => platform.dispose())

  const mock = async (name: string, options: Record<string, string>, more: object = {}) => {
    const { body } = await platform.request('POST', '/workspaces', {
      name,
      runtime: 'mock',
      runtime_config: options,
      ...more,
    })
    return body.id as string
  }
  /** A claude that asks for permission before it runs the command of a message `!ask ...`. */
  const askingAgent = async (name: string) => {
    const runtime_config = { bin: claude, permission: 'ask' }
    const { body } = await platform.request('POST', '/workspaces', { name, runtime: 'claude-code', runtime_config })
    assert.equal(body.status, 'online', body.status_reason)
    return body.id as string
  }
  const home = () => ({ MOLECULE_HOME: platform.dataDir })

  test('CL-5 by pipe: each line is a message of one conversation, and only answers go to stdout', async () => {
    const id = await platform.exec('cat', { name: 'piped' })
    const { code, out, err } = await runCommand(['chat', 'piped'], { env: home(), input: 'one\n\ntwo **bold**\n' })
    assert.deepEqual([code, out, err], [0, 'one\ntwo **bold**\n', ''])
    const { body } = await platform.rpc(id, 'ListTasks', { contextId: 'terminal' })
    assert.equal(body.result.totalSize, 2)
    await runCommand(['chat', 'piped', '--new'], { env: home(), input: 'three\n' })
    await runCommand(['chat', 'piped', '--context', 'other'], { env: home(), input: 'four\n' })
    assert.equal((await platform.rpc(id, 'ListTasks', { contextId: 'terminal' })).body.result.totalSize, 2)
    assert.equal((await platform.rpc(id, 'ListTasks', { contextId: 'other' })).body.result.totalSize, 1)
  })

  test('CL-5 by pipe: a failed message is reported on stderr, the rest is sent, the exit code is 1', async () => {
    await mock('broken', { fail: 'no luck', fail_times: '1' }, { max_attempts: 1 })
    const { code, out, err } = await runCommand(['chat', 'broken'], { env: home(), input: 'one\ntwo\n' })
    assert.deepEqual([code, out], [1, 'echo: two\n'])
    assert.match(err, /^error: the message failed \(failed\): .*; ".*molecule explain \w+" shows more\n$/s)
  })

  test('CL-5 by keyboard: Markdown streams, the next start shows the history, Ctrl-D leaves', async (t) => {
    await mock('typed', { stream: 'true', reply: '# Title\nsome **bold** and `code` for %s\n- item\n' })
    const first = openTerminal(t, ['chat', 'typed'], home())
    await first.waitForText(/you talk to typed; Ctrl-C stops a turn, Ctrl-D leaves/)
    first.type('hello\r')
    await first.waitForScreen(/^• item$/m)
    assert.match(first.shown(), /\[1;4mTitle/)
    assert.match(first.shown(), /\[1mbold.\[0m and .\[36mcode.\[0m for hello/)
    first.type(CTRL_D)
    assert.equal(await first.ended(), 0)
    const second = openTerminal(t, ['chat', 'typed'], { ...home(), NO_COLOR: '1' })
    await second.waitForText(/you › hello\r\ntyped › # Title\r\nsome \*\*bold\*\*/)
    second.type(CTRL_D)
    assert.equal(await second.ended(), 0)
  })

  test('CL-5 Ctrl-C stops the turn and not the chat; control characters of an agent are removed', async (t) => {
    const id = await platform.exec(
      'read line; if [ "$line" = wait ]; then sleep 60; fi; printf "\\033[2Jclean %s" "$line"',
      {
        name: 'stopped',
      },
    )
    const typing = openTerminal(t, ['chat', 'stopped'], home())
    await typing.waitForText(/you talk to stopped/)
    typing.type('wait\r')
    const running = async () => (await platform.request('GET', `/workspaces/${id}`)).body.running === 1
    await waitUntil(running, 'the turn runs')
    typing.type(CTRL_C)
    await typing.waitForText(/· canceled/)
    typing.type('go\r')
    await typing.waitForText(/clean go/)
    assert.ok(!typing.shown().includes('\u001b[2Jclean'))
    typing.type(CTRL_C)
    await typing.waitForScreen(/clean go\n· Ctrl-D leaves\nyou ›$/)
    typing.type(CTRL_D)
    assert.equal(await typing.ended(), 0)
  })

  test('CL-5 the chat shows a line for each tool that the agent uses, between the texts', async (t) => {
    await askingAgent('tooled')
    const typing = openTerminal(t, ['chat', 'tooled'], { ...home(), NO_COLOR: '1' })
    await typing.waitForText(/you talk to tooled/)
    typing.type('!tool now\r')
    await typing.waitForScreen(/\n· mcp__\w+: \{"text":"pong\?"\}\n/)
    typing.type(CTRL_D)
    assert.equal(await typing.ended(), 0)
  })

  test('CL-5 a permission is allowed or denied in the chat; Ctrl-C at the prompt stops the turn', async (t) => {
    await askingAgent('asking')
    const typing = openTerminal(t, ['chat', 'asking'], home())
    await typing.waitForText(/you talk to asking/)
    typing.type('!ask touch one\r')
    await typing.waitForText(/· Bash: .*touch one.*allow it\? \(y = once, a = always, n = no\) /s)
    typing.type('y\r')
    await typing.waitForText(/· allowed\S*\r\n.*ran \{"command":"touch one"/s)
    typing.type('!ask touch two\r')
    await typing.waitForText(/touch two.*allow it\? \(y = once, a = always, n = no\) /s)
    typing.type('n\r')
    await typing.waitForText(/· denied.*was told/s)
    typing.type('!ask touch three\r')
    await typing.waitForText(/touch three.*allow it\? \(y = once, a = always, n = no\) /s)
    typing.type(CTRL_C)
    await typing.waitForText(/· canceled/)
    // What was typed before the question was shown must not answer it.
    typing.type('!ask touch four\ry')
    await typing.waitForScreen(/touch four\nallow it\? \(y = once, a = always, n = no\)$/)
    // Neither Enter nor a mistyped answer decides.
    typing.type('\r')
    await typing.waitForScreen(/· type y, a or n\nallow it\?.*$/)
    typing.type('yes please\r')
    await typing.waitForScreen(/yes please\n· type y, a or n\nallow it\?.*$/)
    typing.type('N\r')
    await typing.waitForScreen(/· denied\n.*in this turn: Bash\.\)\nyou › y$/s)
    typing.type(CTRL_C)
    await typing.waitForScreen(/you › y\nyou ›$/)
    typing.type('still here\r')
    await typing.waitForScreen(/\nstill here\nyou ›$/)
    typing.type(CTRL_D)
    assert.equal(await typing.ended(), 0)
  })

  test('PL-24 CL-5 always allows exactly this, or more; Enter goes back to the question', async (t) => {
    const id = await askingAgent('ruled')
    const typing = openTerminal(t, ['chat', 'ruled'], { ...home(), NO_COLOR: '1' })
    await typing.waitForText(/you talk to ruled/)
    typing.type('!ask npm test one\r')
    await typing.waitForScreen(/npm test one\nallow it\? \(y = once, a = always, n = no\)$/)
    typing.type('A\r')
    await typing.waitForScreen(
      /· 1: Covers exactly this command.*\n· 2: Covers .*npm test.*\nalways which\? \(1 or 2, Enter = back\)$/s,
    )
    typing.type('3\r')
    await typing.waitForScreen(/· type 1 or 2, or press Enter\nalways which\?.*$/)
    typing.type('\r')
    await typing.waitForScreen(/allow it\? \(y = once, a = always, n = no\)$/)
    typing.type('a\r')
    await typing.waitForScreen(/always which\? \(1 or 2, Enter = back\)$/)
    typing.type('2\r')
    await typing.waitForScreen(/· from now on: Covers .*· allowed\n.*you ›$/s)
    const { body } = await platform.request('GET', `/workspaces/${id}/rules`)
    assert.deepEqual(
      body.rules.map(({ pattern }: { pattern: string }) => pattern),
      ['npm test one *'],
    )
    typing.type(CTRL_D)
    assert.equal(await typing.ended(), 0)
  })

  test('CL-1 pending lists the requests of agents, and allows or denies them by id', async () => {
    const id = await askingAgent('waiting')
    const molecule = (...args: string[]) => runCommand(args, { env: home() })
    // Messages of other tests may have failed for good.
    const list = async () => {
      const needs = JSON.parse((await molecule('pending', '-o', 'json')).out) as NeedView[]
      return needs.filter(({ kind }) => kind === 'permission')
    }
    for (const [decision, answer] of [
      ['allow', /^ran /],
      ['deny', /^was told /],
    ] as const) {
      const sent = runCommand(['agent', 'send', id, `!ask touch ${decision}`], { env: home() })
      await waitUntil(async () => (await list()).length === 1)
      const [asked] = await list()
      assert.deepEqual([asked?.workspace_id, asked?.permission?.tool], [id, 'Bash'])
      const table = (await molecule('pending', 'list')).out
      assert.match(
        table,
        new RegExp(`^ID +WORKSPACE +KIND +SINCE +EXPIRES IN +WHAT\\n${asked?.id} .*touch ${decision}`),
      )
      assert.match((await molecule('pending', decision, asked?.id ?? '')).out, /^(allowed|denied) /)
      assert.match((await sent).out, answer)
    }
    assert.deepEqual(await list(), [])
    const unknown = await molecule('pending', 'allow', 'nothing')
    assert.deepEqual([unknown.code, unknown.out], [1, ''])
    assert.match(unknown.err, /^error: [^\n]+\n$/)
  })

  test('CL-5 a message answers the task that asked; if that task has ended, it starts a new one', async (t) => {
    const remote = await startRemoteAgent('1.0')
    t.after(() => remote.stop())
    const { body } = await platform.request('POST', '/workspaces', {
      name: 'questioner',
      runtime: 'a2a',
      url: remote.url,
    })
    const piped = await runCommand(['chat', 'questioner', '--context', 'p'], { env: home(), input: 'ask\nblue\n' })
    assert.deepEqual([piped.code, piped.out], [0, 'which colour?\nyou said blue\n'])
    const login = await runCommand(['agent', 'send', 'questioner', 'login'], { env: home() })
    assert.deepEqual([login.code, login.out], [1, ''])
    assert.match(login.err, /error: the agent needs a permission or a log-in: log in at /)
    const asked = await runCommand(['agent', 'send', 'questioner', 'ask'], { env: home() })
    const context = /the agent asks: which colour\?; answer with ".*chat questioner --context (\S+)"/.exec(
      asked.err,
    )?.[1]
    const answered = await runCommand(['chat', 'questioner', '--context', context ?? ''], {
      env: home(),
      input: 'red\n',
    })
    assert.deepEqual([answered.code, answered.out], [0, 'you said red\n'], asked.err)
    const typing = openTerminal(t, ['chat', 'questioner'], home())
    await typing.waitForText(/you talk to questioner/)
    typing.type('ask\r')
    await typing.waitForText(/waiting for your answer: which colour\?/)
    const tasks = async () => (await platform.rpc(body.id, 'ListTasks', { contextId: 'terminal' })).body.result.tasks
    const [asking] = await tasks()
    await platform.rpc(body.id, 'CancelTask', { id: asking.id })
    typing.type('silent\r')
    await waitUntil(async () => (await tasks()).length === 2)
    typing.type(CTRL_D)
    assert.equal(await typing.ended(), 0)
  })

  test('CL-5 the chat continues a turn after a restart of the platform', async (t) => {
    const dataDir = await mkdtemp(join(tmpdir(), 'molecule-chat-'))
    let short = await startPlatform({ dataDir })
    const port = new URL(short.url).port
    try {
      await short.exec('sleep 1; cat', { name: 'survivor' })
      const typing = openTerminal(t, ['chat', 'survivor'], { MOLECULE_HOME: dataDir, MOLECULE_API_URL: short.url })
      await typing.waitForText(/you talk to survivor/)
      typing.type('are you there\r')
      await new Promise((resolve) => setTimeout(resolve, 500))
      await short.stop('SIGKILL')
      await typing.waitForText(/cannot be reached.*waiting for the platform/s)
      short = await startPlatform({ dataDir, args: ['--port', port] })
      await typing.waitForScreen(/\nare you there\nyou ›$/)
      typing.type('again\r')
      await typing.waitForScreen(/\nagain\nyou ›$/)
      typing.type(CTRL_D)
      assert.equal(await typing.ended(), 0)
    } finally {
      await short.dispose()
      await rm(dataDir, { recursive: true, force: true })
    }
  })
})
