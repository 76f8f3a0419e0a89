/**
 * The first half hour of a new user in two real terminals: `npm start` in one, and in the other init, chat, a permission,
 * Ctrl-C, a new conversation and the status; then a restart, after which nothing runs again.
 */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createFakeProgram } from '../fakes/agents/fake-program.ts'
import { readLines } from '../harness/bridge.ts'
import { openProgramAtTerminal, openTerminal, runCommand } from '../harness/command.ts'
import { linuxOnly } from '../harness/live-processes.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { waitUntil } from '../harness/wait.ts'

const CTRL_C = '\u0003'
const { path: claude } = createFakeProgram('claude')

test(
  'CL-5 CL-7 CN-6 a new user starts, chats, allows, stops, starts anew, leaves, looks and restarts',
  linuxOnly,
  async (t) => {
    const home = temporaryDir(t)
    const env = { MOLECULE_HOME: home, NO_COLOR: '1' }
    const run = async (...args: string[]) => {
      const { code, out, err } = await runCommand(args, { env })
      assert.equal(code, 0, err)
      return out
    }
    const platform = await npmStart(t, home)

    const init = openTerminal(t, ['init', '--runtime', 'mock', '--name', 'parrot'], env)
    await init.waitForScreen(/In which folder does it work\?/)
    init.type('\r')
    assert.equal(await init.ended(), 0)
    assert.match(init.screen(), anywhereBroken('The workspace "parrot" is online.'))
    assert.match(init.screen(), anywhereBroken('bin/molecule chat parrot'))

    const first = openTerminal(t, ['chat', 'parrot'], env)
    await first.waitForScreen(/you talk to parrot; .*\nyou ›$/)
    first.type('hello\r')
    await first.waitForScreen(/you › hello\necho: hello\nyou ›$/)
    first.type('/quit\r')
    assert.equal(await first.ended(), 0)

    await run('workspace', 'create', 'ana', '--runtime', 'claude-code', '--permission', 'ask', '--set', `bin=${claude}`)
    const runs = join(home, 'runs')
    const cmd = `line=$(cat); echo "$line" >> ${runs}; [ "$line" = wait ] && sleep 1000; echo "did $line"`
    await run('workspace', 'create', 'shell', '--runtime', 'exec', '--set', `cmd=${cmd}`)
    const asking = openTerminal(t, ['chat', 'ana'], env)
    await asking.waitForScreen(/you talk to ana; .*\nyou ›$/)
    asking.type('!ask make it\r')
    await asking.waitForScreen(/· Bash: make it\nallow it\? \(y = once, a = always, n = no\)$/)
    asking.type('y\r')
    await asking.waitForScreen(/· allowed\n.*\nyou ›$/s)
    asking.type('/quit\r')
    assert.equal(await asking.ended(), 0)

    const chat = openTerminal(t, ['chat', 'shell'], env)
    await chat.waitForScreen(/you talk to shell; .*\nyou ›$/)
    chat.type('wait\r')
    await waitUntil(() => readLines(runs).length === 1, 'the turn runs')
    await chat.waitForScreen(/shell works \d+ s · Ctrl-C stops$/)
    chat.type(CTRL_C)
    await chat.waitForScreen(/· canceled\nyou ›$/)
    chat.type('/new\r')
    // The command has the folder of the test, so the terminal may break the line anywhere.
    await chat.waitForScreen(anywhereBroken('continues the one before'))
    await chat.waitForScreen(/\nyou ›$/)
    chat.type('go\r')
    await chat.waitForScreen(/you › go\ndid go\nyou ›$/)
    chat.type('/quit\r')
    assert.equal(await chat.ended(), 0)

    const status = await run('status')
    assert.match(status, /is ready; 3 workspaces, 0 running, 0 waiting; .*\nNothing needs you\.\n$/s)
    platform.type(CTRL_C)
    await platform.ended()
    assert.match(platform.screen(), /Stopping: no turn is running\.$/)
    assert.doesNotMatch(platform.screen(), /failed|warning/)
    const again = await npmStart(t, home)
    const tasks = await run('task', 'list', 'shell')
    assert.match(tasks, /completed.* go\n.*canceled.* wait\n/)
    assert.deepEqual(readLines(runs), ['wait', 'go'])
    again.type(CTRL_C)
    await again.ended()
  },
)

async function npmStart(t: TestContext, home: string) {
  const words = ['npm', 'start', '--', '--port', '0', '--data-dir', home]
  const platform = openProgramAtTerminal(t, words, {
    npm_config_offline: 'true',
    npm_config_update_notifier: 'false',
    npm_config_loglevel: 'error',
  })
  await platform.waitForScreen(/Molecule runs at http:.*In another terminal:/s)
  return platform
}

/** The text, wherever the terminal has broken its line. */
const anywhereBroken = (text: string): RegExp =>
  new RegExp([...text.replaceAll(' ', '')].map((letter) => (letter === '.' ? '\\.' : letter)).join('\\s*'))
