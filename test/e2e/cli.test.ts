/** Every command of `molecule` against a real platform, as a user types it. */
import assert from 'node:assert/strict'
import { statSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { parse } from 'yaml'
import { BIN, openTerminal, runCommand } from '../harness/command.ts'
import { commandsOf } from '../harness/commands-of.ts'
import { type PlatformUnderTest, startPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const SENTENCE = /^error: [^\n]+\n$/

describe('the commands of molecule', () => {
  let platform: PlatformUnderTest
  before(async () => {
    platform = await startPlatform()
  })
  after(() => platform.dispose())

  const { molecule, succeed, json } = commandsOf(() => platform)

  test('CL-1 workspace create, list and inspect print a table, JSON or YAML', async () => {
    const made = await json('workspace', 'create', 'lister', '--runtime', 'exec', '--set', 'cmd=cat', '--role', 'Lists')
    assert.match(made.id, /^ws_/)
    assert.deepEqual([made.runtime, made.runtime_config.cmd, made.status], ['exec', 'cat', 'online'])
    const table = await succeed('workspace', 'list')
    assert.match(table, /^NAME +ID +RUNTIME +STATUS +WAITING +ROLE\n/)
    assert.match(table, new RegExp(`^lister +${made.id} +exec +online +0 +Lists$`, 'm'))
    const listed = await json('workspace', 'list')
    assert.ok(listed.some(({ id }: { id: string }) => id === made.id))
    const yaml = parse(await succeed('-o', 'yaml', 'workspace', 'inspect', 'lister'))
    assert.deepEqual([yaml.id, yaml.role], [made.id, 'Lists'])
    assert.match(await succeed('workspace', 'inspect', made.id), /^working_dir +\//m)
    assert.match(await succeed('agent', 'list'), /^NAME +STATUS +RUNNING +WAITING +DOING +ID\n/)
    assert.match(await succeed('agent', 'peers', 'lister'), /^(NAME|lister has no peers)/)
  })

  test('CL-1 creating an external workspace prints its token and the connect command', async () => {
    const out = await succeed('workspace', 'create', 'outside', '--runtime', 'external')
    assert.match(out, /^connect +bin\/molecule connect ws_\w+ --token \S+ --api-url http/m)
  })

  test('CL-1 workspace delegate and agent send print only the answer on stdout', async () => {
    await succeed('workspace', 'create', 'answerer', '--runtime', 'exec', '--set', 'cmd=cat')
    const { code, out, err } = await molecule(['workspace', 'delegate', 'answerer', 'say this'])
    assert.deepEqual([code, out, err], [0, 'say this\n', 'waiting for answerer\n'])
    const sent = await molecule(['agent', 'send', 'answerer', '-', '--context', 'talk'], { input: 'from stdin' })
    assert.equal(sent.out, 'from stdin\n')
    const task = await json('agent', 'send', 'answerer', 'x', '--context', 'talk')
    assert.deepEqual([task.contextId, task.status.state], ['talk', 'TASK_STATE_COMPLETED'])
    const taskId = (await succeed('workspace', 'delegate', 'answerer', 'later', '--async')).trim()
    const env = { MOLECULE_HOME: platform.dataDir, MOLECULE_API_URL: platform.url }
    await waitUntil(
      async () => (await runCommand(['status', taskId], { program: 'a2a', env })).out === 'completed\nlater\n',
    )
  })

  test('CL-2 a failed task is one sentence with the next step, and exit code 1', async () => {
    await platform.exec('echo broken >&2; exit 3', { name: 'failing', max_attempts: 1 })
    const { code, out, err } = await molecule(['agent', 'send', 'failing', 'x'])
    assert.deepEqual([code, out], [1, ''])
    const sentence = err.replace('waiting for failing\n', '')
    assert.match(sentence, /^error: the task failed: .*molecule explain \w+" shows more\n$/s)
    const id = /molecule explain (\w+)/.exec(sentence)?.[1] ?? ''
    const story = await succeed('explain', id)
    assert.match(story, /admitted from person "admin" through http\n/)
    assert.match(story, /attempt 1 began\n/)
    assert.match(story, /the task failed for good: /)
    assert.match(story, /the program said: .*broken/)
    const byTask = await json('explain', id)
    assert.equal(byTask.task_id, id)
    const bySenderId = await json('explain', byTask.sender_message_id)
    assert.equal(bySenderId.message_id, byTask.message_id)
  })

  test('CL-1 explain finds the id of a refused request in the log, and reports an unknown id', async () => {
    const refused = await fetch(`${platform.url}/workspaces/ws_none`, {
      headers: { Authorization: `Bearer ${platform.token}` },
    })
    const requestId = refused.headers.get('x-request-id') ?? ''
    assert.match(await succeed('explain', requestId), /request refused .*there is no workspace ws_none/)
    const { code, err } = await molecule(['explain', 'no-such-thing'])
    assert.equal(code, 1)
    assert.match(err, /^error: nothing is known of "no-such-thing"/)
  })

  test('PL-15 CL-1 explain finds an admitted message by its X-Request-Id', async () => {
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

  test('CL-1 workspace pause, resume and restart change the status', async () => {
    await succeed('workspace', 'create', 'turner', '--runtime', 'mock')
    assert.match(await succeed('workspace', 'pause', 'turner', '--now'), /^turner is paused: /)
    assert.match(await succeed('workspace', 'resume', 'turner'), /^turner is online\n$/)
    assert.equal((await json('workspace', 'restart', 'turner')).status, 'online')
  })

  test('CL-1 delete asks for the name at a terminal and needs --yes elsewhere', async (t) => {
    const made = await json('workspace', 'create', 'goner', '--runtime', 'mock')
    const refused = await molecule(['workspace', 'delete', 'goner'])
    assert.equal(refused.code, 2)
    assert.match(refused.err, /add --yes to confirm/)
    const child = await json('workspace', 'create', 'child', '--runtime', 'mock', '--parent', 'goner')
    const parent = await molecule(['workspace', 'delete', 'goner', '--yes'])
    assert.match(parent.err, SENTENCE)
    const typing = openTerminal(t, ['workspace', 'delete', 'goner', '--cascade'], { MOLECULE_HOME: platform.dataDir })
    await typing.waitForText(/Type its name to confirm: /)
    typing.type('goner\r')
    assert.equal(await typing.ended(), 0)
    assert.match(typing.shown(), new RegExp(`deleted ${child.id}\r\ndeleted ${made.id}`))
  })

  test('CL-1 platform health shows URL, readiness and version', async () => {
    const { url, ready, version } = await json('platform', 'health')
    assert.deepEqual([url, ready, typeof version], [platform.url, true, 'string'])
    assert.match(await succeed('platform', 'health'), /^ready +yes$/m)
  })

  test('CL-1 logs shows the file of the platform or the activity of a workspace; -f follows', async (t) => {
    const id = await platform.exec('cat', { name: 'logged' })
    await platform.send(id, 'hello')
    assert.match(await succeed('logs'), /info: the platform is up/)
    assert.match(await succeed('logs', 'logged'), /reply hello \(/)
    assert.equal((await succeed('logs', 'logged', '-n', '1')).trim().split('\n').length, 1)
    const following = openTerminal(t, ['logs', '-f', 'logged'], { MOLECULE_HOME: platform.dataDir })
    await following.waitForText(/reply hello/)
    await platform.send(id, 'once more')
    await following.waitForText(/reply once more/)
    following.type('\u0003')
    assert.equal(await following.ended(), 0)
    const { code, err } = await molecule(['logs', '-n', 'many'])
    assert.equal(code, 2)
    assert.match(err, SENTENCE)
  })

  test('CL-1 config lists, gets and sets the keys of both files, and refuses unknown keys and values', async () => {
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
        [['get', 'colour'], /there is no setting "colour"; the settings are api_url, output, allow-outbound/],
        [['set', 'colour', 'red'], /there is no setting "colour"/],
        [['set', 'port', 'eighty'], /cannot be "eighty"/],
        [['set', 'api_url', 'nowhere'], /must be an http address/],
        [['set', 'output', 'xml'], /must be table, json, yaml/],
      ] as const) {
        const { code, err } = await config(...args)
        assert.equal(code, 2)
        assert.match(err, SENTENCE)
        assert.match(err, problem)
      }
      assert.equal(statSync(join(home, 'cli.json')).mode & 0o077, 0)
      await writeFile(join(home, 'cli.json'), '{"output":')
      assert.match((await config('list')).err, /cli\.json: .*correct it or remove it/)
    } finally {
      await rm(home, { recursive: true })
    }
  })

  test('CL-1 bash completes commands, options and names of workspaces', async () => {
    await succeed('workspace', 'create', 'completable', '--runtime', 'mock')
    const script = `eval "$(molecule completion bash)"
      offer() { COMP_LINE="$*"; COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); _molecule; echo "\${COMPREPLY[*]}"; }
      offer molecule wor
      offer molecule workspace ins
      offer molecule workspace create x --ro
      offer molecule chat compl
      offer molecule status x --workspace compl
      offer molecule workspace list -o ya
      offer molecule completion f
      offer ${BIN}/molecule chat compl`
    const { spawnSync } = await import('node:child_process')
    const env = { ...process.env, PATH: `${BIN}:${process.env['PATH']}`, MOLECULE_HOME: platform.dataDir }
    const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', script], { env, encoding: 'utf8' })
    assert.equal(stderr, '')
    const offered = ['workspace', 'inspect', '--role', 'completable', 'completable', 'yaml', 'fish', 'completable']
    assert.deepEqual(stdout.trim().split('\n'), offered)
    assert.equal((await molecule(['completion', 'tcsh'])).code, 2)
  })

  test('CL-2 every error is one sentence with the right exit code', async () => {
    const cases: readonly (readonly [readonly string[], number, RegExp, Record<string, string>?])[] = [
      [
        ['workspace', 'inspect', 'nobody'],
        1,
        /there is no workspace called "nobody"; the (only one is|workspaces are) /,
      ],
      [['workspace', 'list', '-o', 'xml'], 2, /there is no output "xml"; use table, json, yaml/],
      [['workspace', 'create', 'x', '--set', 'cmd'], 2, /--set takes key=value/],
      [['workspace', 'create', 'x', '--concurrency', 'few'], 2, /--concurrency takes a number/],
      [['workspace', 'create', 'x', '--runtime', 'nothing'], 2, /unknown/],
      [['agent', 'send', 'nobody', ' '], 2, /there is nothing to send/],
      [['status', 'x'], 2, /MOLECULE_WORKSPACE_ID is not set\); name one with --workspace/],
      [['workspace', 'list', '--api-url', 'http://127.0.0.1:1'], 1, /the admin token was not sent: .*listens at http/],
      [
        ['workspace', 'list', '--api-url', 'http://127.0.0.1:1'],
        1,
        /cannot be reached .*start it there with "\S+ bin\/molecule up"/,
        { MOLECULE_ADMIN_TOKEN: 'x' },
      ],
      [['workspace', 'list', '--api-url', 'nowhere'], 2, /--api-url is not an http address/],
      [
        ['workspace', 'list'],
        1,
        /does not accept this command's token .*MOLECULE_ADMIN_TOKEN/,
        { MOLECULE_HOME: '/nowhere', MOLECULE_API_URL: '' },
      ],
      [
        ['workspace', 'list'],
        1,
        /does not accept the token in MOLECULE_ADMIN_TOKEN \(/,
        { MOLECULE_ADMIN_TOKEN: 'wrong' },
      ],
      [['workspace', 'dance'], 2, /unknown command 'dance'/],
      [['dance'], 2, /unknown command 'dance'/],
      [['workspace', 'inspect'], 2, /missing required argument 'workspace'/],
      [['chat'], 2, /missing required argument/],
    ]
    for (const [args, expected, problem, env = {}] of cases) {
      const api: Record<string, string> = env['MOLECULE_API_URL'] === '' ? { MOLECULE_API_URL: platform.url } : {}
      const { code, out, err } = await molecule(args, { env: { ...env, ...api } })
      assert.deepEqual([code, out], [expected, ''], `${args.join(' ')}: ${err}`)
      assert.match(err, problem)
      if (expected === 1) assert.match(err, SENTENCE)
    }
    const verbose = await molecule(['-v', 'workspace', 'inspect', 'nobody'])
    assert.match(verbose.err, /\n {4}at /)
  })

  test('CL-2 a terminal shows moving progress, which is cleared at the end', async (t) => {
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

  test('TW-8 molecule status with a conversation token changes the card at once; an empty text clears it', async () => {
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
    const result = await runCommand(['status', 'running the tests'], { env })
    assert.deepEqual(result, { code: 0, out: '', err: '' })
    const card = async () => (await platform.request('GET', `/workspaces/${id}`)).body
    assert.equal((await card()).status_text, 'running the tests')
    assert.match(await succeed('agent', 'list'), /worker +online .*running the tests/)
    assert.match(await succeed('logs', 'worker'), /status_text running the tests by turn/)
    assert.equal((await platform.request('PATCH', `/workspaces/${id}`, { role: 'Other' })).status, 200)
    assert.equal((await card()).status_text, 'running the tests')
    const other = await platform.exec('cat', { name: 'neighbour' })
    const refused = await runCommand(['status', 'x', '--workspace', other], { env })
    assert.equal(refused.code, 1)
    assert.match(refused.err, /speaks for/)
    assert.equal((await runCommand(['status', ''], { env })).code, 0)
    assert.equal((await card()).status_text, undefined)
  })

  test('TW-2 a2a peers, delegate, status and info work with a conversation token', async () => {
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
