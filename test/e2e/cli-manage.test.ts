/** Commands that change settings, names and tokens, discard, report what was used, stop the platform, and complete words. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import { BIN, openProgramAtTerminal, openTerminal, runCommand } from '../harness/command.ts'
import { commandsOf } from '../harness/commands-of.ts'
import { type PlatformUnderTest, sendWithoutWaiting, startPlatform, startPlatformFor } from '../harness/platform.ts'
import { temporaryDir } from '../harness/process-harness.ts'
import { waitUntil } from '../harness/wait.ts'

const { path: claude } = createFakeProgram('claude')

/** Ctrl-U. After a Ctrl-C the terminal drops what is typed at once. */
const CLEAR_LINE = '\u0015'

/** Skips a test where the shell is missing. */
const installed = (shell: string) => ({
  skip: spawnSync(shell, ['--version']).error === undefined ? false : `${shell} is not installed here`,
})

describe('managing a platform from the command line', () => {
  let platform: PlatformUnderTest
  before(async () => {
    platform = await startPlatform({ env: CLAUDE_LOGGED_IN })
    await succeed('workspace', 'create', 'settable', '--runtime', 'mock')
  })
  after(() => platform.dispose())

  const { molecule, succeed, json } = commandsOf(() => platform)
  const as = async (token: string) =>
    (await fetch(`${platform.url}/me`, { headers: { Authorization: `Bearer ${token}` } })).status

  test('CL-8 workspace set changes every setting of a workspace, and an empty value removes it', async () => {
    const id = await platform.exec('cat', { name: 'settled' })
    await platform.exec('cat', { name: 'above' })
    const out = await succeed(
      ...['workspace', 'set', 'settled', 'role=Answers', 'model=opus', 'permission=bypass', 'max_attempts=2'],
      ...[
        'max_concurrent_tasks=3',
        'parent=above',
        'runtime_config.max_turns_per_hour=9',
        'runtime_config.env={"A":"1"}',
      ],
    )
    assert.match(out, /^role +none -> Answers\n/)
    assert.match(out, /^max_attempts +4 -> 2\n/m)
    assert.match(out, /^runtime_config\.max_turns_per_hour +none -> 9\n/m)
    assert.match(out, /\nsettled is online\n$/)
    const set = (await platform.request('GET', `/workspaces/${id}`)).body
    assert.deepEqual(
      [set.role, set.model, set.permission, set.max_attempts, set.max_concurrent_tasks],
      ['Answers', 'opus', 'bypass', 2, 3],
    )
    assert.deepEqual([set.runtime_config.cmd, set.runtime_config.max_turns_per_hour], ['cat', '9'])
    assert.deepEqual(Object.keys(set.runtime_config.env), ['A'], 'a value that is an object is read as JSON')
    await succeed('workspace', 'set', id, 'model=', 'parent=', 'permission=', 'role=', 'runtime_config.env=')
    const unset = (await platform.request('GET', `/workspaces/${id}`)).body
    assert.deepEqual(
      [unset.model, unset.parent_id, unset.permission, unset.role],
      [undefined, undefined, undefined, ''],
    )
    assert.equal('env' in unset.runtime_config, false)
    assert.equal(await succeed('workspace', 'set', id, 'role='), 'nothing changed\nsettled is online\n')
  })

  test('CL-8 a wrong setting is refused before anything changes, with the keys or the reason', async () => {
    const id = await platform.exec('cat', { name: 'kept' })
    for (const [setting, reason] of [
      [
        'rol=x',
        /there is no setting "rol"; did you mean "role"\? An option of the backend is written runtime_config\.rol=/,
      ],
      ['cmd=x', /the settings are name, role, runtime, .* is written runtime_config\.cmd=VALUE\n$/],
      ['role', /a setting takes key=value, not "role"/],
      ['max_attempts=many', /max_attempts takes a whole number, not "many"/],
      ['max_attempts=999', /field "max_attempts": must be at most 100/],
      ['permission=all', /field "permission": must be ask, allowed_tools or bypass/],
      ['runtime=nothing', /unknown backend "nothing"/],
      ['name=', /name cannot be empty/],
    ] as const) {
      const { code, out, err } = await molecule(['workspace', 'set', 'kept', 'role=new', setting])
      assert.deepEqual([code, out], [2, ''], setting)
      assert.match(err, reason)
    }
    assert.equal((await platform.request('GET', `/workspaces/${id}`)).body.role, '')
  })

  test('CL-8 a second workspace of a name is refused, at creation and at a rename, unless --allow-duplicate', async () => {
    const first = await json('workspace', 'create', 'only', '--runtime', 'mock')
    const refused = await molecule(['workspace', 'create', 'only', '--runtime', 'mock'])
    assert.equal(refused.code, 1)
    assert.match(
      refused.err,
      new RegExp(`there is a workspace called "only" already \\(${first.id}\\).*--allow-duplicate`),
    )
    assert.equal((await molecule(['init', '--runtime', 'mock', '--name', 'only'])).code, 1)
    await succeed('workspace', 'create', 'other', '--runtime', 'mock')
    for (const args of [
      ['rename', 'other', 'only'],
      ['set', 'other', 'name=only'],
    ]) {
      assert.match((await molecule(['workspace', ...args])).err, /there is a workspace called "only" already/)
    }
    assert.equal((await platform.request('GET', '/workspaces/only')).body.id, first.id)
    assert.match(await succeed('workspace', 'rename', 'other', 'another'), /^name +other -> another\n/)
    const twice = await molecule([
      'workspace',
      'create',
      'only',
      '--runtime',
      'mock',
      '--allow-duplicate',
      '-o',
      'json',
    ])
    assert.match(twice.err, /^warning: another workspace is called "only"/)
    assert.match(await succeed('workspace', 'rename', 'another', 'only', '--allow-duplicate'), /another -> only/)
    // Programs that always made duplicates go on doing so; one that does not want them says so.
    const bare = { name: 'only', runtime: 'mock' }
    assert.equal((await platform.request('POST', '/workspaces', bare)).status, 201)
    const strict = await platform.request('POST', '/workspaces', { ...bare, allow_duplicate: false })
    assert.deepEqual([strict.status, strict.body.error.code], [400, 'unsupported_operation'])
    const checked = await platform.request('POST', '/workspaces?dry_run=true', { ...bare, allow_duplicate: false })
    assert.equal(checked.status, 400)
  })

  test('CL-8 PL-12 token create, list and revoke', async () => {
    await succeed('workspace', 'create', 'reached', '--runtime', 'mock')
    const made = await succeed('token', 'create', 'ci', '--role', 'caller', '--only', 'reached', '--expires', '24h')
    const [, secret = '', id = ''] =
      /^(mol_\S+)\n\nIt is shown only now\. To end it: .* token revoke (\S+)\n$/.exec(made) ?? []
    assert.equal(await as(secret), 200)
    const table = await succeed('token', 'list')
    assert.match(
      table,
      new RegExp(`^${id} +token +ci +caller +reached +\\d{4}-\\d\\d-\\d\\d +\\d+ s ago +\\d{4}-`, 'm'),
    )
    assert.doesNotMatch(table, /mol_/)
    const { code, err } = await molecule(['token', 'revoke', 'none', id])
    assert.equal(code, 1)
    assert.match(err, /there is no token none/)
    assert.equal(await as(secret), 401, 'the token after the wrong one is revoked all the same')
    const lonely = await molecule(['token', 'create', 'x', '--role', 'workspace'])
    assert.deepEqual([lonely.code, lonely.out], [2, ''])
  })

  test('CL-8 connect-command makes a new token; the earlier ones stay until they are revoked', async () => {
    const made = await json('workspace', 'create', 'far', '--runtime', 'external')
    const out = await succeed('workspace', 'connect-command', 'far')
    const [line = ''] = out.split('\n')
    assert.match(line, new RegExp(`^bin/molecule connect ${made.id} --token mol_\\S+ --api-url ${platform.url}$`))
    const [, second = ''] = /--token (\S+)/.exec(line) ?? []
    assert.match(
      out,
      /The earlier token stays valid:\n {2}\S+ {2}made \d{4}-\d\d-\d\d, never used\nTo end it: .* token revoke \S+\n$/,
    )
    assert.deepEqual([await as(made.auth_token), await as(second)], [200, 200])
    const third = await json('workspace', 'connect-command', 'far', '--revoke-earlier')
    assert.deepEqual([await as(made.auth_token), await as(second), await as(third.auth_token)], [401, 401, 200])
    assert.equal(third.revoked.length, 2)
    await succeed('workspace', 'create', 'near', '--runtime', 'mock')
    const { code, err } = await molecule(['workspace', 'connect-command', 'near'])
    assert.equal(code, 1)
    assert.match(err, /runs "near" \(runtime mock\): only an external workspace has a connect command/)
  })

  test('CL-8 pending discard --all shows what it discards and asks; elsewhere it needs --yes', async (t) => {
    const id = await platform.exec('exit 3', { name: 'failing', max_attempts: 1 })
    const failed = async () => {
      await platform.send(id, 'a')
      await platform.send(id, 'b')
    }
    await failed()
    const refused = await molecule(['pending', 'discard', '--all'])
    assert.equal(refused.code, 2)
    assert.match(refused.err, /this discards 2 × dead letter and cannot be undone; add --yes to confirm/)
    const typing = openTerminal(t, ['pending', 'discard', '--all'], { MOLECULE_HOME: platform.dataDir })
    await typing.waitForScreen(
      /failing +dead letter[\s\S]*Discard these \(2 × dead letter\)\? It cannot be undone\. \[y\/N\]/,
    )
    typing.type('n\r')
    assert.equal(await typing.ended(), 1)
    const letters = async () =>
      (await platform.request('GET', `/workspaces/${id}/dead-letters`)).body.dead_letters.length
    assert.equal(await letters(), 2)
    assert.match(await succeed('pending', 'discard', '--all', '--yes'), /^discarded \S+\ndiscarded \S+\n$/)
    assert.equal(await letters(), 0)
    assert.equal(await succeed('pending', 'discard', '--all', '--yes'), 'Nothing can be discarded.\n')
    assert.equal((await molecule(['pending', 'discard'])).code, 2)
  })

  test('CL-8 usage shows today and the days, by workspace, and names a cost that is not known', async () => {
    assert.match(await succeed('usage'), /^today \$0\.00 \(no turns\); last 7 days \$0\.00 \(no turns\); days/)
    const body = { name: 'spender', runtime: 'claude-code', runtime_config: { bin: claude } }
    const { id } = (await platform.request('POST', '/workspaces', body)).body
    await platform.send(id, 'hello')
    const silent = { name: 'silent', runtime: 'exec', runtime_config: { cmd: 'cat', format: 'text' } }
    await platform.request('POST', '/workspaces', silent)
    const report = await json('usage')
    const own = report.workspaces.find(({ name }: { name: string }) => name === 'spender')
    assert.equal(report.today.turns, report.total.turns)
    const day = new Date().toISOString().slice(0, 10)
    const table = await succeed('usage')
    assert.match(table, /^today \S.* \(\d+ turns?\); last 7 days .*; days begin at 00:00 UTC\n/)
    assert.match(table, new RegExp(`^${day} +\\d+ +`, 'm'))
    const cost = own.cost_usd === null ? 'unknown' : `(≥ )?\\$${own.cost_usd.toFixed(2)}`
    assert.match(table, new RegExp(`^spender +${own.turns} +${cost}`, 'm'))
    const one = await succeed('usage', 'spender', '--days', '1')
    assert.match(one, new RegExp(`^spender: today ${cost}`))
    assert.equal((await json('usage', 'spender')).workspace_id, id)
  })

  test('CL-8 bash completes runtimes, settings, files, folders and a2a', async (t) => {
    const folder = temporaryDir(t)
    mkdirSync(join(folder, 'team folder'))
    writeFileSync(join(folder, 'team.yaml'), '')
    await succeed('workspace', 'create', 'finished', '--runtime', 'mock')
    const script = `eval "$(molecule completion bash)"
      offer() { COMP_LINE="$*"; COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); _molecule; local IFS=,; echo "\${COMPREPLY[*]}"; }
      offer molecule workspace create x --runtime ope
      offer molecule workspace set finished max_
      offer molecule workspace set fini
      offer molecule apply te
      offer molecule workspace create x --dir te
      offer molecule agent send x y --file team.
      offer molecule workspace list te
      offer a2a dele
      offer a2a delegate fini
      offer ${BIN}/a2a delegate x y --as`
    const env = {
      ...process.env,
      PATH: `${BIN}:${process.env['PATH']}`,
      MOLECULE_HOME: platform.dataDir,
      MOLECULE_API_URL: platform.url,
    }
    const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', script], { env, cwd: folder, encoding: 'utf8' })
    assert.equal(stderr, '')
    const sorted = stdout.split('\n').map((line) => line.split(',').sort().join(','))
    assert.deepEqual(sorted, [
      'openai,openclaw,opencode',
      'max_attempts=,max_concurrent_tasks=',
      'finished',
      'team folder,team.yaml',
      'team folder',
      'team.yaml',
      '',
      'delegate',
      'finished',
      '--async',
      '',
    ])
  })

  /** Values behind the = of a setting or an option, a folder and not the file beside it, and a key without a space behind it. */
  const COMPLETED: readonly (readonly [typed: string, completed: string])[] = [
    ['molecule workspace set settable role= runtime=moc', 'runtime=mock'],
    ['molecule workspace set settable parent=settab', 'parent=settable'],
    ['molecule workspace set settable working_dir=sou', 'working_dir=sources/'],
    ['molecule workspace create x --runtime=opencl', '--runtime=openclaw'],
    ['molecule workspace create x --dir sou', 'sources/'],
    ['molecule workspace set settable max_a', 'max_attempts='],
    ['a2a dele', 'delegate'],
  ]

  const promptEnvironment = (t: TestContext) => {
    const folder = temporaryDir(t)
    mkdirSync(join(folder, 'sources'))
    writeFileSync(join(folder, 'source.txt'), '')
    return {
      PATH: `${BIN}:${process.env['PATH']}`,
      MOLECULE_HOME: platform.dataDir,
      MOLECULE_API_URL: platform.url,
      PWD: folder,
      PS1: '> ',
      TERM: 'dumb',
    }
  }

  for (const [shell, program, setUp] of [
    ['bash', ['bash', '--norc', '--noprofile', '-i'], ''],
    ['zsh', ['zsh', '-f', '-i'], 'ZDOTDIR=$PWD; '],
  ] as const) {
    test(
      `CL-8 at a prompt of ${shell}, Tab completes settings, values, folders and a2a`,
      installed(shell),
      async (t) => {
        const typing = openProgramAtTerminal(t, program, promptEnvironment(t))
        typing.type(`${setUp}eval "$(molecule completion ${shell})"; echo ready\r`)
        await typing.waitForScreen(/\nready\n> ?$/)
        for (const [typed, completed] of COMPLETED) {
          typing.type(`${typed}\t`)
          await typing.waitForScreen(new RegExp(`[ =]${completed} ?$`))
          typing.type(CLEAR_LINE)
          // zsh clears the prompt too at a dumb terminal.
          await typing.waitForScreen(/\n(> ?|ready)$/)
        }
      },
    )
  }

  test('CL-8 fish completes settings, values, folders and a2a', installed('fish'), (t) => {
    const env = { ...process.env, ...promptEnvironment(t) }
    const script = ['molecule completion fish | source', ...COMPLETED.map(([typed]) => `complete -C '${typed}'`)]
    const args = ['--no-config', '-c', script.join('; ')]
    const { stdout, stderr } = spawnSync('fish', args, { env, cwd: env.PWD, encoding: 'utf8' })
    assert.equal(stderr, '')
    const offers = stdout.split('\n').map((line) => line.split('\t')[0])
    assert.deepEqual(offers, [...COMPLETED.map(([, completed]) => completed), ''])
  })
})

test('CL-8 down stops the platform of the data folder when its running turns have finished', async (t) => {
  const platform = await startPlatformFor(t)
  const dir = temporaryDir(t)
  const id = await platform.exec(`cat; touch '${dir}/began'; while [ ! -e '${dir}/go' ]; do sleep 0.05; done`)
  const taskId = await sendWithoutWaiting(platform, id, 'finish me')
  const exists = (name: string) => spawnSync('test', ['-e', join(dir, name)]).status === 0
  await waitUntil(() => exists('began'))
  const env = { MOLECULE_HOME: platform.dataDir }
  const elsewhere = await runCommand(['down', '--api-url', 'http://127.0.0.1:1'], { env })
  assert.deepEqual([elsewhere.code, elsewhere.out], [2, ''], 'another platform was meant')
  const downing = runCommand(['down'], { env })
  await waitUntil(() => platform.output().includes('Stopping: waiting up to'))
  writeFileSync(join(dir, 'go'), '')
  const { code, out, err } = await downing
  assert.deepEqual([code, out], [0, `The platform at ${platform.url} has stopped.\n`], err)
  await platform.exited
  const again = await runCommand(['down'], { env })
  const none = `error: no platform runs on the data folder ${platform.dataDir}\n`
  assert.deepEqual([again.code, again.out, again.err], [1, '', none])
  const next = await startPlatformFor(t, { dataDir: platform.dataDir })
  const { body } = await next.request('GET', `/messages/${taskId}/story`)
  assert.equal(body.task_state, 'TASK_STATE_COMPLETED')
  assert.equal(body.steps.filter(({ type }: { type: string }) => type === 'started').length, 1, 'the turn ran once')
})

test('CL-8 CN-6 a turn that outlasts --drain is stopped, and the terminal says that its message runs again', async (t) => {
  const platform = await startPlatformFor(t, { args: ['--drain', '1s'] })
  const dir = temporaryDir(t)
  const id = await platform.exec(`touch '${dir}/began'; sleep 600`, { name: 'long' })
  await sendWithoutWaiting(platform, id, 'never ends')
  await waitUntil(() => spawnSync('test', ['-e', join(dir, 'began')]).status === 0)
  const { code, err } = await runCommand(['down'], { env: { MOLECULE_HOME: platform.dataDir } })
  assert.equal(code, 0, err)
  await platform.exited
  assert.match(
    platform.output(),
    /Stopping: waiting up to 1 s for 1 running turn \(long\).*\n1 turn was stopped before the end \(long\); its message runs again at the next start\.\n/s,
  )
})

test('CL-8 down --now also stops the running turns', async (t) => {
  const platform = await startPlatformFor(t, { args: ['--drain', '10m'] })
  const dir = temporaryDir(t)
  const id = await platform.exec(`touch '${dir}/began'; sleep 600`)
  await sendWithoutWaiting(platform, id, 'never ends')
  await waitUntil(() => spawnSync('test', ['-e', join(dir, 'began')]).status === 0)
  const { code, err } = await runCommand(['down', '--now'], { env: { MOLECULE_HOME: platform.dataDir } })
  assert.equal(code, 0, err)
  await platform.exited
})
