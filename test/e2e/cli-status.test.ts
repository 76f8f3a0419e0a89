/** `molecule status` as the overview, and what the terminal says in people's words: names, durations, sources, advice. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { dirname } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import { BIN, cleanEnvironment, runCommand } from '../harness/command.ts'
import { commandsOf } from '../harness/commands-of.ts'
import { type PlatformUnderTest, startPlatform } from '../harness/platform.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { waitUntil } from '../harness/wait.ts'

const { path: claude } = createFakeProgram('claude')
/** A line program that answers each message with a question. */
const ASKING = `require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const status = { state: "input_required", message: { role: "agent", parts: [{ text: "which colour?" }] } }
  console.log(JSON.stringify({ jsonrpc: "2.0", id: JSON.parse(line).id, result: { status } }))
})`

describe('molecule status and people words', () => {
  let platform: PlatformUnderTest
  before(async () => {
    platform = await startPlatform({ env: CLAUDE_LOGGED_IN })
  })
  after(() => platform.dispose())

  const { molecule, succeed } = commandsOf(() => platform)
  const make = async (workspace: object) => {
    const { status, body } = await platform.request('POST', '/workspaces', workspace)
    assert.equal(status, 201, JSON.stringify(body))
    return body.id as string
  }

  test('CL-7 an empty platform: no workspaces, and the command that makes one', async () => {
    const out = await succeed('status')
    assert.match(out, /^http:\S+ is ready; 0 workspaces, 0 running, 0 waiting; today no usage\n/)
    assert.match(out, /There are no workspaces yet; create one with "MOLECULE_HOME=\S+ bin\/molecule init"\./)
    assert.match(out, /\nNothing needs you\.\n$/)
  })

  test('CL-7 the overview has presence, queue, cost of today, and what needs you with its command', async () => {
    await make({ name: 'worker', runtime: 'mock', runtime_config: { usage: 'true' } })
    await make({ name: 'away', runtime: 'external' })
    await make({ name: 'asker', runtime: 'claude-code', runtime_config: { bin: claude } })
    const failing = await platform.exec('exit 1', { name: 'two words', max_attempts: 1 })
    await platform.exec('sleep 60', { name: 'busy' })
    await succeed('agent', 'send', 'worker', 'count')
    await platform.send(failing, 'x')
    await succeed('agent', 'send', 'busy', 'a long task', '--async')
    await succeed('agent', 'send', 'asker', '!ask touch one', '--async')
    const read = async () => JSON.parse(await succeed('status', '-o', 'json'))
    await waitUntil(async () => {
      const { total, needs_you: needs } = await read()
      return total.running === 1 && needs.length === 2
    }, 'the turns run and ask')
    const report = await read()
    assert.deepEqual([report.url, report.ready], [platform.url, true])
    const line = (name: string) => report.workspaces.find((one: { name: string }) => one.name === name)
    assert.deepEqual([line('worker').status, line('worker').today.turns], ['online', 1])
    assert.equal(line('busy').current_task, 'a long task')
    const kinds = report.needs_you.map((need: Record<string, string>) => [need['kind'], need['workspace_name']])
    // A workspace that is offline needs its owner when messages wait for it.
    assert.deepEqual(kinds, [
      ['permission', 'asker'],
      ['dead_letter', 'two words'],
    ])
    assert.equal(report.needs_you_count, 2)
    const out = await succeed('status')
    assert.match(out, /^NAME +STATUS +RUNNING +WAITING +TODAY +DOING$/m)
    assert.match(out, /^worker +online +0 +0 +1 turn, cost unknown$/m)
    assert.match(out, /^busy +online +1 +0 +a long task$/m)
    assert.match(
      out,
      /^ {2}asker +wants to use Bash: touch one \(\d+ min( \d+ s)? left\)\n +MOLECULE_HOME=\S+ bin\/molecule pending allow \S+$/m,
    )
    assert.match(out, /^Needs you \(2\):$/m)
    assert.match(out, /^away +offline +0 +0$/m)
    const listing = /^ {2}two words +a message failed for good: .*\n +(.*)$/m.exec(out)?.[1] ?? assert.fail(out)
    const pasted = spawnSync('/bin/sh', ['-c', listing], {
      cwd: dirname(BIN),
      env: cleanEnvironment(),
      encoding: 'utf8',
    })
    assert.match(pasted.stdout, /Run again\n {2}\S.* pending replay \S+\nDiscard\n/)

    const asked = await succeed('pending')
    assert.match(asked, /^ID +WORKSPACE +KIND +SINCE +EXPIRES IN +WHAT$/m)
    assert.match(asked, /^\S+ +asker +permission +\d+ s ago +\d+ min( \d+ s)? +wants to use Bash: touch one$/m)
    const offline = async () =>
      (await succeed('status')).includes('it is offline and 1 message waits: it has never connected')
    await succeed('agent', 'send', 'away', 'for later', '--async')
    await waitUntil(offline, 'the message waits')
    const alone = await succeed('status', '--workspace', 'worker')
    assert.match(alone, /; 1 workspace, 0 running/)
    assert.match(alone, /Nothing needs you\.\n$/)
  })

  test('CL-7 a question of an agent needs you', async () => {
    const id = await make({
      name: 'curious',
      runtime: 'stdio',
      runtime_config: { cmd: `${process.execPath} -e '${ASKING}'` },
    })
    const task = await platform.send(id, 'paint it')
    assert.equal(task.status.state, 'TASK_STATE_INPUT_REQUIRED', JSON.stringify(task))
    const out = await succeed('status', '--workspace', 'curious')
    assert.match(out, new RegExp(`^ {2}curious +asks: which colour\\?\n +.*pending show ${task.id}$`, 'm'))
    assert.match(await succeed('pending', 'answer', task.id, 'blue'), /^answered /)
  })

  test('CL-7 PL-8 tokens that see less get the parts that they may read', async () => {
    const id = await platform.exec('cat', { name: 'inside' })
    for (const [role, more] of [
      ['viewer', {}],
      ['workspace', { workspace_id: id }],
    ] as const) {
      const { body } = await platform.request('POST', '/tokens', { name: role, role, ...more })
      const env = { MOLECULE_API_URL: platform.url, MOLECULE_HOME: '/nowhere', MOLECULE_WORKSPACE_TOKEN: body.token }
      const { code, out, err } = await runCommand(['status'], { env })
      assert.equal(code, 0, err)
      assert.match(out, /^inside +online/m)
    }
  })

  test('CL-7 a command that does not exist is answered with the one that is meant', async () => {
    for (const [typed, meant] of [
      ['statu', /; did you mean "bin\/molecule status"\?\n$/],
      ['start', /; did you mean "bin\/molecule up"\?\n$/],
      ['ls', /; did you mean "bin\/molecule workspace list"\?\n$/],
      ['create', /; did you mean "bin\/molecule workspace create"\?\n$/],
      ['workspace isnpect', /; did you mean "bin\/molecule workspace inspect"\?\n$/],
      ['chat --contex x', /^error: unknown option '--contex'; did you mean --context\?\n$/],
      ['schedule add --cron x', /^error: unknown option '--cron'; "bin\/molecule schedule add --help" shows how\n$/],
      ['chat', /^error: missing required argument 'workspace'; "bin\/molecule chat --help" shows how\n$/],
      ['dance', /^error: unknown command 'dance'; "bin\/molecule --help" lists them all\n$/],
    ] as const) {
      const { code, out, err } = await molecule(typed.split(' '))
      assert.deepEqual([code, out], [2, ''], typed)
      assert.match(err, meant)
    }
  })

  test('CL-1 config list shows each value, the defaults too, and where it comes from', async (t) => {
    const home = temporaryDir(t)
    const env = { MOLECULE_HOME: home, MOLECULE_DRAIN: '30s' }
    const config = async (...args: string[]) => (await runCommand(['config', ...args], { env })).out
    await config('set', 'port', '8123')
    await config('set', 'output', 'table')
    const out = await config('list')
    for (const [key, value, source] of [
      ['api_url', 'http://localhost:8080', 'default'],
      ['output', 'table', 'cli.json'],
      ['data-dir', home, 'MOLECULE_HOME'],
      ['port', '8123', 'molecule.yaml'],
      ['drain', '30s', 'MOLECULE_DRAIN'],
      ['host', '127.0.0.1', 'default'],
      ['database', 'the embedded store', 'default'],
      ['log-level', 'info', 'default'],
    ]) {
      assert.match(out, new RegExp(`^${key} +${value} +${source}$`, 'm'))
    }
    assert.equal(await config('get', 'max-block'), '120s\n')
    const given = await runCommand(['config', 'list', '--api-url', 'http://other:1'], { env })
    assert.match(given.out, /^api_url +http:\/\/other:1 +--api-url$/m)
    const wrong = await runCommand(['config', 'set', 'prot', '1'], { env })
    assert.equal(wrong.err, 'error: there is no setting "prot"; did you mean "port"?\n')
    assert.match((await molecule(['config', 'list'])).out, /^api_url +\S+ +the running platform$/m)
  })

  test('PL-12 an expired token says so, and so does a secret that a rotation replaced', async () => {
    const { body } = await platform.request('POST', '/tokens', { name: 'short', role: 'viewer', expires_in: '1s' })
    const env = { MOLECULE_API_URL: platform.url, MOLECULE_ADMIN_TOKEN: body.token }
    let err = ''
    await waitUntil(async () => {
      const result = await runCommand(['workspace', 'list'], { env })
      err = result.err
      return result.code === 1
    }, 'the token expires')
    assert.match(err, /^error: .*this token expired \d+\w* ago; an admin can make a new one/)
    const other = (await platform.request('POST', '/tokens', { name: 'other', role: 'viewer' })).body
    await platform.request('POST', `/tokens/${other.id}/rotate`, { overlap: '0s' })
    const replaced = await fetch(`${platform.url}/workspaces`, { headers: { Authorization: `Bearer ${other.token}` } })
    assert.equal(replaced.status, 401)
    assert.match(await replaced.text(), /replaced by a rotation and ended .* ago; use the new secret/)
    const unknown = await fetch(`${platform.url}/workspaces`, { headers: { Authorization: 'Bearer mol_wrong' } })
    assert.match(await unknown.text(), /this token is not known here/)
  })
})
