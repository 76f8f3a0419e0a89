/**
 * What the commands say in good and bad situations. Every output is read for doubled words, for words of the code and of
 * libraries, and for commands that would not work as printed. Every wrong option, argument and value ends with exit code 2.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { main } from '../../src/cli/molecule.ts'
import { buildProgram } from '../../src/cli/program.ts'
import { createFakeProgram } from '../fakes/agents/fake-program.ts'
import { recordingTerminal } from '../fakes/terminal.ts'
import { type CommandResult, cleanEnvironment, openTerminal, runCommand } from '../harness/command.ts'
import { type PlatformUnderTest, sendWithoutWaiting, startPlatform } from '../harness/platform.ts'
import { temporaryDir } from '../harness/process-harness.ts'

const { path: claude } = createFakeProgram('claude')
const NO_KEYS = Object.fromEntries(
  [
    ...[
      'ANTHROPIC_API_KEY',
      'ANTHROPIC_AUTH_TOKEN',
      'CLAUDE_CODE_OAUTH_TOKEN',
      'CLAUDE_AUTH_TOKEN',
      'CLAUDE_CONFIG_DIR',
    ],
    ...['CLAUDE_CODE_USE_VERTEX', 'CLAUDE_CODE_USE_BEDROCK'],
  ].map((name) => [name, '']),
)

/** What no sentence for people may contain. */
const WRONG: readonly (readonly [what: string, pattern: RegExp])[] = [
  ['a verb after a verb', /\b(is|are) (needs|cannot|has|failed)\b/i],
  ['a doubled state', /\b(paused|waiting|failed|offline|stopped|working): \1\b/i],
  ['a doubled word', /\b(the|is|a|an|to|of|it|and|in|that|for|with|not) \1\b/i],
  ['two signs in a row', /[.?!;,]\)?;|\.\.(?!\.)(?<!\.\.\.)|,,|: :/],
  ['a name of the wire', /TASK_STATE_|needs_login|\binput_required\b/],
  [
    'the words of a library',
    /\b(Too|too) (small|big):|expected (string|number|object|one of|array)|Invalid (input|option)|IANA|toTZ/,
  ],
  ['a value of JavaScript', /\bundefined\b|\[object |\bNaN\b/],
  ['a command that does not work here', /"molecule [a-z]|(^|\s)molecule (up|init|chat|open|doctor)\b/m],
  ['a command that does not exist', /run \/login/i],
]

const requireGoodWords = (args: readonly string[], { out, err }: Pick<CommandResult, 'out' | 'err'>): void => {
  for (const [what, pattern] of WRONG) {
    for (const text of [out, err]) {
      const found = pattern.exec(text)
      assert.equal(found, null, `${args.join(' ')} prints ${what} (${found?.[0]}): ${text}`)
    }
  }
}

/** In this process, because a process for each of two hundred commands would take minutes. */
async function runHere(args: readonly string[], env: Record<string, string>): Promise<CommandResult> {
  const terminal = recordingTerminal({ ...cleanEnvironment(), ...env })
  const code = await main(args, terminal)
  return { code, out: terminal.output(), err: terminal.errors() }
}

describe('the sentences of the commands', () => {
  let platform: PlatformUnderTest
  let home: string
  const ids: Record<string, string> = {}
  before(async () => {
    home = mkdtempSync(join(tmpdir(), 'molecule-words-'))
    platform = await startPlatform({ env: { ...NO_KEYS, HOME: home } })
    const make = async (name: string, runtime: string, config: object = {}) => {
      const body = { name, runtime, runtime_config: config, max_attempts: 2 }
      const made = await platform.request('POST', '/workspaces', body)
      assert.equal(made.status, 201, JSON.stringify(made.body))
      ids[name] = made.body.id
      return made.body.id as string
    }
    await make('locked', 'claude-code', { bin: claude })
    await make('broken', 'claude-code', { bin: '/nowhere/claude' })
    await make('remote', 'a2a', { url: 'http://127.0.0.1:1/' })
    await make('server', 'mcp', { url: 'http://127.0.0.1:1/', tool: 'x' })
    await make('far', 'external')
    const failing = await make('failing', 'exec', { cmd: 'echo "the reason" >&2; exit 3', max_attempts: 1 })
    const held = await make('held', 'exec', { cmd: 'cat' })
    ids['dead'] = (await platform.send(failing, 'fail')).id
    await platform.request('POST', `/workspaces/${held}/pause`)
    ids['waiting'] = await sendWithoutWaiting(platform, held, 'wait')
    ids['away'] = await sendWithoutWaiting(platform, ids['far'] ?? '', 'wait for a bridge')
    const daily = { cron: '0 7 * * *', text: 'Report', time_zone: 'Europe/Berlin' }
    ids['schedule'] = (await platform.request('POST', `/workspaces/${held}/schedules`, daily)).body.id
  })
  after(async () => {
    await platform.dispose()
    rmSync(home, { recursive: true, force: true })
  })

  const molecule = (...args: string[]) => runHere(args, { MOLECULE_HOME: platform.dataDir })

  test('CL-2 no output of a command has doubled words, words of the code, or a command that does not work', async () => {
    const { dead = '', waiting = '', away = '', schedule = '', locked = '', broken = '' } = ids
    for (const args of [
      ...[['workspace', 'list'], ['agent', 'list'], ['status'], ['task', 'list'], ['pending'], ['schedule'], ['rules']],
      ...[
        ['token'],
        ['usage'],
        ['channel', 'list'],
        ['pair'],
        ['memory', 'list', 'held'],
        ['config', 'list'],
        ['doctor'],
      ],
      ...['locked', 'broken', 'remote', 'server', 'far', 'failing', 'held'].flatMap((name) => [
        ['workspace', 'inspect', name],
        ['workspace', 'restart', name],
        ['agent', 'peers', name],
        ['status', '--workspace', name],
        ['logs', name],
      ]),
      ...[dead, waiting, away].flatMap((id) => [
        ['task', 'show', id],
        ['explain', id],
      ]),
      ...[dead, locked, broken].map((id) => ['pending', 'show', id]),
      ...[
        ['schedule', 'pause', schedule],
        ['schedule', 'list'],
        ['schedule', 'resume', schedule],
      ],
      ...[
        ['workspace', 'pause', 'failing'],
        ['workspace', 'resume', 'failing'],
        ['pause', 'far'],
        ['resume', '--all'],
      ],
      ...[
        ['workspace', 'set', 'held', 'role=x'],
        ['workspace', 'connect-command', 'far'],
        ['stop', 'held'],
      ],
    ]) {
      const result = await molecule(...args)
      if (args[0] !== 'doctor') assert.equal(result.code, 0, `${args.join(' ')}: ${result.err}`)
      requireGoodWords(args, result)
    }
  })

  test('CL-2 a workspace says how it is in one sentence: log-in, paused, failed', async () => {
    assert.match(
      (await molecule('workspace', 'restart', 'locked')).out,
      /^locked needs a log-in: claude is not logged in: run /,
    )
    assert.match((await molecule('workspace', 'restart', 'broken')).out, /^broken cannot run: backend "claude-code": /)
    assert.equal(
      (await molecule('workspace', 'pause', 'held')).out,
      'held is paused: messages are accepted and none is started\n',
    )
    await sendWithoutWaiting(platform, ids['held'] ?? '', 'wait again')
    assert.match((await molecule('task', 'list', 'held')).out, /held +waiting: the workspace is paused +/)
  })

  test('CL-2 explain shows the end of a long stderr, where the reason is', async () => {
    const cmd = 'i=0; while [ $i -lt 200 ]; do i=$((i+1)); echo "step $i" >&2; done; echo "no space left" >&2; exit 3'
    const { body } = await platform.request('POST', '/workspaces', {
      name: 'chatty',
      runtime: 'exec',
      max_attempts: 1,
      runtime_config: { cmd: `${cmd} # ${'x'.repeat(1500)}` },
    })
    const { id } = await platform.send(body.id, 'go')
    const { out } = await molecule('explain', id)
    assert.match(out, /the program said: \.\.\.[\s\S]*step 200\nno space left\)\n/)
    const activity = await molecule('explain', ids['dead'] ?? '')
    assert.match(activity.out, /the task failed for good: .*exit code 3 \(exit_3, err_\w+\)\n/)
  })

  test('CL-2 help names the program as it is typed here', async () => {
    const program = await buildProgram(recordingTerminal(), () => true)
    const { out: first } = await molecule('--help')
    assert.match(first, /^Usage: bin\/molecule \[options\] <command>/)
    for (const command of program.commands.filter((each) => each.name() !== 'complete')) {
      for (const path of [[command.name()], ...command.commands.map((below) => [command.name(), below.name()])]) {
        const { code, out } = await molecule(...path, '--help')
        assert.deepEqual([code, out.startsWith(`Usage: bin/molecule ${path.join(' ')}`)], [0, true], out)
        assert.doesNotMatch(out, /"molecule [a-z]|default: \[/, path.join(' '))
      }
    }
  })

  const BAD: readonly (readonly [args: readonly string[], reason: RegExp])[] = [
    [['workspace', 'list', 'extra'], /too many arguments/],
    [['workspace', 'list', '--wrong'], /unknown option '--wrong'/],
    [['workspace', 'lst'], /did you mean "bin\/molecule workspace list"/],
    [['workspace', 'zzzzzz'], /"bin\/molecule workspace --help" lists them all/],
    [['-o', 'xml', 'workspace', 'list'], /there is no output "xml"; use table, json, yaml/],
    [['--api-url', 'ftp://x', 'workspace', 'list'], /--api-url is not an http address/],
    [['workspace', 'create', ''], /field "name": must not be empty/],
    [['workspace', 'create', 'x', '--permission', 'all'], /must be ask, allowed_tools or bypass/],
    [['workspace', 'create', 'x', '--concurrency', '0'], /takes a number from 1 to 9999/],
    [['workspace', 'create', 'x', '--concurrency', '9999'], /"max_concurrent_tasks": must be at most \d+/],
    [['workspace', 'create', 'x', '--runtime', 'nope'], /unknown backend "nope"/],
    [['workspace', 'create', 'x', '--dir', '/nowhere/at/all'], /there is no folder/],
    [['workspace', 'create', 'x', '--template', 'none'], /there is no template "none"/],
    [['workspace', 'create', 'x', '--set', 'cmd'], /--set takes key=value/],
    [['workspace', 'delete', 'held'], /add --yes to confirm/],
    [['workspace', 'rename', 'held', ' '], /field "name": must not be empty/],
    [['agent', 'send', 'held', 'x', '--max-cost', '0'], /--max-cost cannot be '0'\. It must be an amount/],
    [['agent', 'send', 'held', ''], /there is nothing to send/],
    [['agent', 'send', 'held', 'two', 'words'], /got 3: held, two, words; a text with spaces needs quotes; "/],
    [['agent', 'send', 'held', 'x', '--file', '/nowhere'], /the file \/nowhere does not exist/],
    [['workspace', 'inspect', ''], /the name of a workspace must not be empty/],
    [['workspace', 'delete', '', '--yes'], /the name of a workspace must not be empty/],
    [['status', '--workspace', ''], /the name of a workspace must not be empty/],
    [['chat', 'held', '--context', ''], /must not be empty/],
    [['chat', 'held', '--new', '--context', 'x'], /--new starts a conversation and --context continues one; give one/],
    [['task', 'show', ''], /"id" must not be empty/],
    [['explain', ''], /"id" must not be empty/],
    [['token', 'revoke', ''], /"id" must not be empty/],
    [['schedule', 'remove', ''], /"schedule" must not be empty/],
    [['task', 'list', '--state', 'lost'], /there is no state "lost"; the states are submitted, /],
    [['task', 'list', '-n', '0'], /takes a number from 1 to 100/],
    [['logs', '-n', 'many'], /takes a number from 1 to/],
    [['memory', 'list', 'held', '-n', 'many'], /--lines must be a whole number/],
    [['memory', 'add', 'held', ''], /field "text": must not be empty/],
    [
      ['schedule', 'add', 'held', '61 0 * * *', 'x'],
      /the times "61 0 \* \* \*" cannot be used: "61" is not a minute; the fields are/,
    ],
    [['schedule', 'add', 'held', '0 0 * *', 'x'], /it has 4 fields, not 5/],
    [['schedule', 'add', 'held', '0 0 30 2 *', 'x'], /the times "0 0 30 2 \*" never come/],
    [
      ['schedule', 'add', 'held', '0 0 * * *', 'x', '--time-zone', 'Mars/City'],
      /^error: there is no time zone "Mars\/City"; use a name such as UTC or Europe\/Berlin\n$/,
    ],
    [['schedule', 'add', 'held', '0 0 * * *', 'x', '--missed', 'never'], /"missed": must be once or skip/],
    [['schedule', 'add', 'held', '0 0 * * *', 'x', '--webhook', 'nope'], /"webhook": must be a URL/],
    [['pending', 'raise', 'x', 'much'], /the argument <usd> cannot be 'much'/],
    [['pending', 'allow', 'x', '--pattern', 'y'], /--pattern needs --always/],
    [['pending', 'discard'], /name one id, or use --all/],
    [['stop'], /name one workspace, or use --all/],
    [['pause', 'held', '--all'], /name one workspace, or use --all/],
    [['open', '--role', 'king'], /--role cannot be 'king'\. Allowed choices are/],
    [['token', 'create', 'x', '--role', 'king'], /Allowed choices are admin, member/],
    [['token', 'create', 'x', '--role', 'caller'], /--role caller needs --only NAME for each workspace/],
    [['token', 'create', 'x', '--role', 'workspace'], /--role workspace needs --workspace NAME/],
    [['token', 'create', 'x', '--role', 'viewer', '--workspace', 'held'], /--only NAME limits --role viewer to/],
    [['connect', 'held', '--token', 'x', '--cgroups', 'some'], /--cgroups must be auto or off/],
    [['token', 'create', 'x', '--role', 'viewer', '--expires', 'soon'], /"expires_in": must be a duration/],
    [['usage', '--days', '0'], /--days cannot be '0'/],
    [['config', 'set', 'port', 'eighty'], /^error: port cannot be "eighty": it must be a whole number/],
    [['config', 'set', 'output', 'xml'], /output cannot be "xml"/],
    [['config', 'set', 'colour', 'red'], /there is no setting "colour"/],
    [['config', 'get', 'colour'], /there is no setting "colour"/],
    [['up', '--port', 'eighty'], /setting "port" from --port cannot be "eighty"/],
    [
      ['up', '--as', 'other', '--data-dir', '/tmp/none/x'],
      /--as cannot be "other"; it must be copy or move|cannot be created/,
    ],
    [['completion', 'tcsh'], /Allowed choices are bash, zsh, fish/],
    [['channel', 'add', 'pigeon'], /there is no kind of channel "pigeon"/],
    [['status', 'busy'], /name one with --workspace/],
    [['mcp'], /name a workspace with --workspace/],
    [['explain'], /missing required argument 'id'/],
    [['down', 'x'], /too many arguments/],
  ]

  test('CL-2 bad usage ends with exit code 2, prints nothing on stdout, and says in one sentence what is wrong', async () => {
    for (const [args, reason] of BAD) {
      const result = await molecule(...args)
      assert.deepEqual([result.code, result.out], [2, ''], `${args.join(' ')}: ${result.err}`)
      assert.match(result.err, reason)
      assert.match(result.err, /^error: [^\n]+\n$/, args.join(' '))
      requireGoodWords(args, result)
    }
  })

  test('CL-2 what is not there, and what fails, ends with exit code 1', async () => {
    for (const [args, reason] of [
      [
        ['workspace', 'inspect', 'nobody'],
        /there is no workspace called "nobody"; the workspaces are locked, broken, /,
      ],
      [['token', 'revoke', '.'], /there is nothing called "\."/],
      [['explain', '.'], /nothing is known of "\."/],
      [['task', 'show', 'none'], /there is no message or task none/],
      [['pending', 'show', 'none'], /nothing with the id none waits/],
      [['schedule', 'pause', 'none'], /there is no schedule none/],
      [['token', 'revoke', 'none'], /there is no token none/],
      [['explain', 'none'], /nothing is known of "none"/],
      [['workspace', 'create', 'held'], /there is a workspace called "held" already/],
    ] as const) {
      const result = await molecule(...args)
      assert.deepEqual([result.code, result.out], [1, ''], `${args.join(' ')}: ${result.err}`)
      assert.match(result.err, reason)
      requireGoodWords(args, result)
    }
  })

  test('CL-2 a refused token is answered with the variable that holds it', async () => {
    const withToken = (name: string) =>
      runCommand(['status'], {
        env: { MOLECULE_HOME: '/nowhere', MOLECULE_API_URL: platform.url, [name]: 'mol_wrong' },
      })
    assert.match((await withToken('MOLECULE_ADMIN_TOKEN')).err, /the token in MOLECULE_ADMIN_TOKEN \(/)
    assert.match((await withToken('MOLECULE_WORKSPACE_TOKEN')).err, /the token in MOLECULE_WORKSPACE_TOKEN \(/)
  })

  test('CL-2 a2a reports bad usage with its own prefix and exit code 2', async () => {
    const env = { MOLECULE_API_URL: platform.url, MOLECULE_ADMIN_TOKEN: platform.token }
    for (const args of [
      ['delegate', 'held'],
      ['delegate', 'held', 'two', 'words'],
      ['peers', '--wrong'],
      ['dance'],
      ['delegate', 'held', 'x', '--max-cost', 'y'],
    ]) {
      const { code, err } = await runCommand(args, { program: 'a2a', env })
      assert.equal(code, 2, args.join(' '))
      assert.match(err, /^\[A2A_ERROR\] [^\n]+\n$/)
      if (args.includes('words')) assert.match(err, /; a text with spaces needs quotes\n$/)
    }
  })

  test('CL-8 a table fits the terminal and names what it cut; a pipe gets every cell in full', async (t) => {
    const role = `Reviews ${'very '.repeat(40)}long changes`
    await molecule('workspace', 'set', 'held', `role=${role}`)
    const typing = openTerminal(t, ['workspace', 'list'], { MOLECULE_HOME: platform.dataDir })
    assert.equal(await typing.ended(), 0)
    const lines = typing.screen().split('\n')
    assert.ok(
      lines.every((line) => line.length <= 100),
      typing.screen(),
    )
    assert.match(
      typing.screen(),
      /cut to the width of this terminal: (NAME, )?STATUS(, WAITING)?, ROLE; -o json shows all/,
    )
    assert.ok(typing.screen().includes(ids['held'] ?? '-'), 'ids are whole')
    assert.match((await molecule('workspace', 'list')).out, /long changes$/m)
  })
})

test('CL-2 while no platform runs, every command says so and how to start it', async (t) => {
  const home = temporaryDir(t)
  for (const args of [['workspace', 'list'], ['status'], ['usage'], ['pending'], ['init', '--yes']]) {
    const result = await runHere(args, { MOLECULE_HOME: home })
    assert.deepEqual([result.code, result.out], [1, ''], args.join(' '))
    assert.match(result.err, /(cannot be reached|does not run).*"MOLECULE_HOME=\S+ bin\/molecule up"/)
    requireGoodWords(args, result)
  }
})
