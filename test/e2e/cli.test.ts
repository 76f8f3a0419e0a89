/** Every command of `molecule` against a real platform, as a stranger would type it. */
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { parse } from 'yaml'
import { BIN, openTerminal, type RunCommandOptions, runCommand } from '../harness/command.ts'
import { type PlatformUnderTest, startPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const SENTENCE = /^error: [^\n]+\n$/

describe('the commands of molecule', () => {
  let platform: PlatformUnderTest
  before(async () => {
    platform = await startPlatform()
  })
  after(() => platform.dispose())

  /** On the machine of the platform: the data folder says where it is and has the token. */
  const molecule = (args: readonly string[], options: RunCommandOptions = {}) =>
    runCommand(args, { ...options, env: { MOLECULE_HOME: platform.dataDir, ...options.env } })
  const well = async (...args: string[]) => {
    const { code, out, err } = await molecule(args)
    assert.equal(code, 0, `${args.join(' ')}: ${err}`)
    return out
  }
  const json = async (...args: string[]) => JSON.parse(await well(...args, '-o', 'json'))

  test('CL-1 workspace create, list, inspect: as a table, as JSON, as YAML', async () => {
    const made = await json('workspace', 'create', 'lister', '--runtime', 'exec', '--set', 'cmd=cat', '--role', 'Lists')
    assert.match(made.id, /^ws_/)
    assert.deepEqual([made.runtime, made.runtime_config.cmd, made.status], ['exec', 'cat', 'online'])
    const table = await well('workspace', 'list')
    assert.match(table, /^NAME +ID +RUNTIME +STATUS +WAITING +ROLE\n/)
    assert.match(table, new RegExp(`^lister +${made.id} +exec +online +0 +Lists$`, 'm'))
    const listed = await json('workspace', 'list')
    assert.ok(listed.some(({ id }: { id: string }) => id === made.id))
    const yaml = parse(await well('-o', 'yaml', 'workspace', 'inspect', 'lister'))
    assert.deepEqual([yaml.id, yaml.role], [made.id, 'Lists'])
    assert.match(await well('workspace', 'inspect', made.id), /^working_dir +\//m)
    assert.match(await well('agent', 'list'), /^NAME +STATUS +RUNNING +WAITING +DOING +ID\n/)
    assert.match(await well('agent', 'peers', 'lister'), /^(NAME|lister has no peers)/)
  })

  test('CL-1 an external workspace is made with its token and the line to paste', async () => {
    const out = await well('workspace', 'create', 'outside', '--runtime', 'external')
    assert.match(out, /^connect +molecule connect ws_\w+ --token \S+ --api-url http/m)
  })

  test('CL-1 workspace delegate and agent send print the answer and nothing else on stdout', async () => {
    await well('workspace', 'create', 'answerer', '--runtime', 'exec', '--set', 'cmd=cat')
    const { code, out, err } = await molecule(['workspace', 'delegate', 'answerer', 'say this'])
    assert.deepEqual([code, out, err], [0, 'say this\n', 'waiting for answerer\n'])
    const sent = await molecule(['agent', 'send', 'answerer', '-', '--context', 'talk'], { input: 'from stdin' })
    assert.equal(sent.out, 'from stdin\n')
    const task = await json('agent', 'send', 'answerer', 'x', '--context', 'talk')
    assert.deepEqual([task.contextId, task.status.state], ['talk', 'TASK_STATE_COMPLETED'])
    const taskId = (await well('workspace', 'delegate', 'answerer', 'later', '--async')).trim()
    const env = { MOLECULE_HOME: platform.dataDir, MOLECULE_API_URL: platform.url }
    await waitUntil(
      async () => (await runCommand(['status', taskId], { program: 'a2a', env })).out === 'completed\nlater\n',
    )
  })

  test('CL-2 a task that fails is one sentence, what to do next, exit code 1', async () => {
    await platform.exec('echo broken >&2; exit 3', { name: 'failing', max_attempts: 1 })
    const { code, out, err } = await molecule(['agent', 'send', 'failing', 'x'])
    assert.deepEqual([code, out], [1, ''])
    const sentence = err.replace('waiting for failing\n', '')
    assert.match(sentence, /^error: the task ended failed: .*"molecule explain \w+" tells more\n$/s)
    const id = /molecule explain (\w+)/.exec(sentence)?.[1] ?? ''
    const story = await well('explain', id)
    assert.match(story, /admitted from person "admin" through http\n/)
    assert.match(story, /attempt 1 began\n/)
    assert.match(story, /the task failed for good: /)
    assert.match(story, /the program said: .*broken/)
    const told = await json('explain', id)
    assert.equal(told.task_id, id)
    const [again] = [await json('explain', told.sender_message_id)]
    assert.equal(again.message_id, told.message_id)
  })

  test('CL-1 explain finds the id of a refused request in the log, and says when there is nothing', async () => {
    const refused = await fetch(`${platform.url}/workspaces/ws_none`, {
      headers: { Authorization: `Bearer ${platform.token}` },
    })
    const requestId = refused.headers.get('x-request-id') ?? ''
    assert.match(await well('explain', requestId), /request refused .*there is no workspace ws_none/)
    const { code, err } = await molecule(['explain', 'no-such-thing'])
    assert.equal(code, 1)
    assert.match(err, /^error: nothing is known of "no-such-thing"/)
  })

  test('PL-15 CL-1 the X-Request-Id of a message that was taken leads explain to its story', async () => {
    const id = await platform.exec('cat', { name: 'taken' })
    const message = { messageId: 'called so', role: 'ROLE_USER', parts: [{ text: 'hello' }] }
    const sent = await fetch(`${platform.url}/workspaces/${id}/a2a`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${platform.token}` },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } }),
    })
    const story = await json('explain', sent.headers.get('x-request-id') ?? '')
    assert.deepEqual([story.workspace_id, story.sender_message_id], [id, 'called so'])
  })

  test('CL-1 workspace pause, resume, restart', async () => {
    await well('workspace', 'create', 'turner', '--runtime', 'mock')
    assert.match(await well('workspace', 'pause', 'turner', '--now'), /^turner is paused: /)
    assert.match(await well('workspace', 'resume', 'turner'), /^turner is online\n$/)
    assert.equal((await json('workspace', 'restart', 'turner')).status, 'online')
  })

  test('CL-1 stop ends the turn that runs, and its message waits until resume', async () => {
    const id = await platform.exec('sleep 60; cat', { name: 'sleeper' })
    const running = async () => (await platform.request('GET', `/workspaces/${id}`)).body.running
    await well('agent', 'send', 'sleeper', 'x', '--async')
    await waitUntil(async () => (await running()) === 1)
    assert.equal((await molecule(['stop'])).code, 1)
    assert.match(await well('stop', 'sleeper'), /^sleeper is paused; its messages wait\n$/)
    await waitUntil(async () => (await running()) === 0)
    const all = await json('stop', '--all')
    assert.ok(all.length > 1 && all.every(({ status }: { status: string }) => status === 'paused'))
    for (const { name } of all) await well('workspace', 'resume', name)
  })

  test('CL-1 deleting asks for the name at a terminal, and for --yes elsewhere', async (t) => {
    const made = await json('workspace', 'create', 'goner', '--runtime', 'mock')
    const refused = await molecule(['workspace', 'delete', 'goner'])
    assert.equal(refused.code, 1)
    assert.match(refused.err, /add --yes if you mean it/)
    const child = await json('workspace', 'create', 'child', '--runtime', 'mock', '--parent', 'goner')
    const parent = await molecule(['workspace', 'delete', 'goner', '--yes'])
    assert.match(parent.err, SENTENCE)
    const typing = openTerminal(t, ['workspace', 'delete', 'goner', '--cascade'], { MOLECULE_HOME: platform.dataDir })
    await typing.waitForText(/Type its name to go on: /)
    typing.type('goner\r')
    assert.equal(await typing.ended(), 0)
    assert.match(typing.shown(), new RegExp(`deleted ${child.id}\r\ndeleted ${made.id}`))
  })

  test('CL-1 platform health', async () => {
    const { url, ready, version } = await json('platform', 'health')
    assert.deepEqual([url, ready, typeof version], [platform.url, true, 'string'])
    assert.match(await well('platform', 'health'), /^ready +yes$/m)
  })

  test('CL-1 logs: the file of the platform, and what happened in a workspace; -f goes on', async (t) => {
    const id = await platform.exec('cat', { name: 'logged' })
    await platform.send(id, 'hello')
    assert.match(await well('logs'), /info: the platform is up/)
    assert.match(await well('logs', 'logged'), /reply hello \(/)
    assert.equal((await well('logs', 'logged', '-n', '1')).trim().split('\n').length, 1)
    const following = openTerminal(t, ['logs', '-f', 'logged'], { MOLECULE_HOME: platform.dataDir })
    await following.waitForText(/reply hello/)
    await platform.send(id, 'once more')
    await following.waitForText(/reply once more/)
    following.type('\u0003')
    assert.equal(await following.ended(), 0)
    const { code, err } = await molecule(['logs', '-n', 'many'])
    assert.equal(code, 1)
    assert.match(err, SENTENCE)
  })

  test('CL-1 config: list, get, set of both files; what is unknown or wrong is refused', async () => {
    const home = await mkdtemp(join(tmpdir(), 'molecule-config-'))
    const env = { MOLECULE_HOME: home }
    const config = (...args: string[]) => runCommand(['config', ...args], { env })
    try {
      assert.equal((await config('get', 'api_url')).out, 'http://localhost:8080\n')
      assert.equal((await config('set', 'api_url', platform.url)).code, 0)
      assert.equal((await config('set', 'output', 'json')).code, 0)
      assert.equal(JSON.parse((await config('get', 'api_url')).out).value, platform.url)
      await writeFile(join(home, 'molecule.yaml'), '# mine\nport: 8123\n')
      assert.equal((await config('set', 'drain', '20s')).code, 0)
      assert.equal(await readFile(join(home, 'molecule.yaml'), 'utf8'), '# mine\nport: 8123\ndrain: 20s\n')
      const listed = JSON.parse((await config('list')).out) as { key: string; value?: string }[]
      assert.equal(listed.find(({ key }) => key === 'port')?.value, '8123')
      assert.equal((await config('set', 'port')).code, 0)
      for (const [args, problem] of [
        [['get', 'colour'], /there is no setting "colour"; there are api_url, output, allow-outbound/],
        [['set', 'colour', 'red'], /there is no setting "colour"/],
        [['set', 'port', 'eighty'], /cannot be "eighty"/],
        [['set', 'api_url', 'nowhere'], /must be an http address/],
        [['set', 'output', 'xml'], /must be table, json, yaml/],
      ] as const) {
        const { code, err } = await config(...args)
        assert.equal(code, 1)
        assert.match(err, SENTENCE)
        assert.match(err, problem)
      }
      assert.equal(statSync(join(home, 'cli.json')).mode & 0o077, 0)
      await writeFile(join(home, 'cli.json'), '{"output":')
      assert.match((await config('list')).err, /cli\.json: .*mend it or remove it/)
    } finally {
      await rm(home, { recursive: true })
    }
  })

  test('CL-1 completion: bash completes commands, options and names of workspaces', async () => {
    await well('workspace', 'create', 'completable', '--runtime', 'mock')
    const script = `eval "$(molecule completion bash)"
      offer() { COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); _molecule; echo "\${COMPREPLY[*]}"; }
      offer molecule wor
      offer molecule workspace ins
      offer molecule workspace create x --ro
      offer molecule chat compl
      offer molecule status x --workspace compl
      offer molecule workspace list -o ya
      offer molecule completion f`
    const { spawnSync } = await import('node:child_process')
    const env = { ...process.env, PATH: `${BIN}:${process.env['PATH']}`, MOLECULE_HOME: platform.dataDir }
    const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', script], { env, encoding: 'utf8' })
    assert.equal(stderr, '')
    const offered = ['workspace', 'inspect', '--role', 'completable', 'completable', 'yaml', 'fish']
    assert.deepEqual(stdout.trim().split('\n'), offered)
    for (const shell of ['zsh', 'fish']) assert.match(await well('completion', shell), /molecule complete --/)
    assert.equal((await molecule(['completion', 'tcsh'])).code, 2)
  })

  test('CL-1 init: by flags without a terminal, by questions at one', async (t) => {
    const out = await well('init', '--name', 'first', '--runtime', 'mock')
    assert.match(out, /^The workspace "first" is online\.\n\n {2}molecule chat ws_/)
    const typing = openTerminal(t, ['init', '--runtime', 'exec'], { MOLECULE_HOME: platform.dataDir })
    await typing.waitForText(/Which command\?/)
    typing.type('cat\r')
    await typing.waitForText(/What is it called\?/)
    typing.type('asked\r')
    assert.equal(await typing.ended(), 0, typing.shown())
    assert.equal((await json('workspace', 'inspect', 'asked')).runtime_config.cmd, 'cat')
  })

  test('CL-2 what is wrong is one sentence and the right exit code', async () => {
    const cases: readonly (readonly [readonly string[], number, RegExp, Record<string, string>?])[] = [
      [['workspace', 'inspect', 'nobody'], 1, /there is no workspace called "nobody"; there are /],
      [['workspace', 'list', '-o', 'xml'], 1, /there is no output "xml"; use table, json, yaml/],
      [['workspace', 'create', 'x', '--set', 'cmd'], 1, /--set takes key=value/],
      [['workspace', 'create', 'x', '--concurrency', 'few'], 1, /--concurrency takes a number/],
      [['workspace', 'create', 'x', '--runtime', 'nothing'], 1, /unknown/],
      [['agent', 'send', 'nobody', ' '], 1, /there is nothing to send/],
      [['status', 'x'], 1, /MOLECULE_WORKSPACE_ID is not set\); say which with --workspace/],
      [
        ['workspace', 'list', '--api-url', 'http://127.0.0.1:1'],
        1,
        /cannot be reached .*is "molecule up" running there/,
      ],
      [['workspace', 'list', '--api-url', 'nowhere'], 1, /no http address/],
      [
        ['workspace', 'list'],
        1,
        /does not accept this command's token .*MOLECULE_ADMIN_TOKEN/,
        { MOLECULE_HOME: '/nowhere', MOLECULE_API_URL: '' },
      ],
      [['workspace', 'list'], 1, /does not accept this command's token/, { MOLECULE_ADMIN_TOKEN: 'wrong' }],
      [['workspace', 'dance'], 2, /unknown command 'dance'/],
      [['dance'], 2, /unknown command 'dance'/],
      [['workspace', 'inspect'], 2, /missing required argument 'workspace'/],
      [['chat'], 2, /missing required argument/],
    ]
    for (const [args, expected, problem, env = {}] of cases) {
      const api = env['MOLECULE_API_URL'] === '' ? { MOLECULE_API_URL: platform.url } : {}
      const { code, out, err } = await molecule(args, { env: { ...env, ...api } })
      assert.deepEqual([code, out], [expected, ''], `${args.join(' ')}: ${err}`)
      assert.match(err, problem)
      if (expected === 1) assert.match(err, SENTENCE)
    }
    const verbose = await molecule(['-v', 'workspace', 'inspect', 'nobody'])
    assert.match(verbose.err, /\n {4}at /)
  })

  test('CL-2 waiting shows progress that moves at a terminal, and leaves nothing behind', async (t) => {
    await platform.request('POST', '/workspaces', {
      name: 'slow',
      runtime: 'mock',
      runtime_config: { delay: '1500ms' },
    })
    const typing = openTerminal(t, ['agent', 'send', 'slow', 'hello'], { MOLECULE_HOME: platform.dataDir })
    await typing.waitForText(/waiting for slow 1 s/)
    assert.equal(await typing.ended(), 0)
    assert.match(typing.shown(), /\[2Kecho: hello\r\n$/)
  })

  test('TW-8 molecule status shows on the card at once, from a process with the conversation token; empty clears', async () => {
    const id = await platform.exec('cat', { name: 'worker' })
    const { body } = await platform.request('POST', '/tokens', {
      name: 'turn',
      role: 'conversation',
      workspace_id: id,
      conversation_id: 'c',
    })
    const env = {
      MOLECULE_HOME: '/nowhere',
      MOLECULE_API_URL: platform.url,
      MOLECULE_WORKSPACE_ID: id,
      MOLECULE_WORKSPACE_TOKEN: body.token,
    }
    const said = await runCommand(['status', 'running the tests'], { env })
    assert.deepEqual(said, { code: 0, out: '', err: '' })
    const card = async () => (await platform.request('GET', `/workspaces/${id}`)).body
    assert.equal((await card()).status_text, 'running the tests')
    assert.match(await well('agent', 'list'), /worker +online .*running the tests/)
    assert.match(await well('logs', 'worker'), /status_text running the tests by turn/)
    assert.equal((await platform.request('PATCH', `/workspaces/${id}`, { role: 'Other' })).status, 200)
    assert.equal((await card()).status_text, 'running the tests')
    const other = await platform.exec('cat', { name: 'neighbour' })
    const refused = await runCommand(['status', 'x', '--workspace', other], { env })
    assert.equal(refused.code, 1)
    assert.match(refused.err, /speaks for/)
    assert.equal((await runCommand(['status', ''], { env })).code, 0)
    assert.equal((await card()).status_text, undefined)
  })

  test('TW-2 the a2a command with a conversation token: peers, delegate, status by the task alone, info', async () => {
    const id = await platform.exec('cat', { name: 'delegator' })
    const peer = await platform.exec('cat', { name: 'delegate-to' })
    const { body } = await platform.request('POST', '/tokens', {
      name: 'turn',
      role: 'conversation',
      workspace_id: id,
      conversation_id: 'c',
    })
    const env = {
      MOLECULE_HOME: '/nowhere',
      MOLECULE_API_URL: platform.url,
      MOLECULE_WORKSPACE_ID: id,
      MOLECULE_WORKSPACE_TOKEN: body.token,
    }
    const a2a = (...args: string[]) => runCommand(args, { program: 'a2a', env })
    assert.match((await a2a('peers')).out, new RegExp(`^delegate-to +${peer} `, 'm'))
    assert.doesNotMatch((await a2a('peers')).out, /^delegator /m)
    assert.match((await a2a('info')).out, /^delegator /)
    assert.deepEqual(await a2a('delegate', 'delegate-to', 'do it'), { code: 0, out: 'do it\n', err: '' })
    const task = (await a2a('delegate', '--async', peer, 'later')).out.trim()
    await waitUntil(async () => (await a2a('status', task)).out === 'completed\nlater\n')
    const foreign = await platform.send(peer, 'private')
    const hidden = await a2a('status', foreign.id)
    assert.deepEqual([hidden.code, hidden.out], [1, ''])
    assert.match(hidden.err, /^\[A2A_ERROR\] there is no task/)
  })
})
