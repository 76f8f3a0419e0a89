/** A team in a file: `molecule apply` and `molecule export` against a real platform, as a user types them. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { FILES_MAX } from '../../src/workspaces/workspace-files.ts'
import { openTerminal, runCommand } from '../harness/command.ts'
import { type PlatformUnderTest, replyText, startPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const TEAM = `team: crew
workspaces:
  worker:
    role: Works
    runtime: mock
    parent: lead
    runtime_config:
      reply: "worked: %s"
  lead:
    role: Leads
    runtime: mock
    max_attempts: 2
    permission: bypass
    prompts:
      system-prompt.md: |
        You lead.
        Be kind.
`

interface Listed {
  readonly id: string
  readonly name: string
  readonly [key: string]: unknown
}

describe('a team in a file', () => {
  let platform: PlatformUnderTest
  let folder: string
  before(async () => {
    platform = await startPlatform()
    folder = await mkdtemp(join(tmpdir(), 'molecule-team-'))
  })
  after(async () => {
    await platform.dispose()
    await rm(folder, { recursive: true, force: true })
  })
  afterEach(async () => {
    const ids = new Set((await list()).map(({ id }) => id))
    for (const id of ids) await platform.request('DELETE', `/workspaces/${id}?confirm=${id}&cascade=true`)
  })

  const list = async (): Promise<Listed[]> => (await platform.request('GET', '/workspaces')).body.workspaces
  const listSchedules = async (): Promise<Listed[]> => (await platform.request('GET', '/schedules')).body.schedules
  const find = async (name: string): Promise<Listed> => {
    const found = (await list()).filter((workspace) => workspace.name === name)
    assert.equal(found.length, 1, `one workspace is called ${name}`)
    return found[0] as Listed
  }
  const readPrompt = async (name: string, file: string): Promise<string> => {
    const { id } = await find(name)
    const headers = { Authorization: `Bearer ${platform.token}` }
    return await (await fetch(`${platform.url}/workspaces/${id}/files/${file}`, { headers })).text()
  }
  const molecule = (args: readonly string[], input = '') =>
    runCommand(args, { env: { MOLECULE_HOME: platform.dataDir }, input })
  const succeed = async (args: readonly string[], input = '') => {
    const { code, out, err } = await molecule(args, input)
    assert.equal(code, 0, `${args.join(' ')}: ${err}`)
    return out
  }
  const apply = (text: string, ...args: string[]) => succeed(['apply', '-', ...args], text)
  const refuse = async (text: string, ...args: string[]) => {
    const earlier = await list()
    const { code, err } = await molecule(['apply', '-', ...args], text)
    assert.equal(code, 1)
    assert.deepEqual(await list(), earlier, 'a refused file changes nothing')
    return err
  }

  test('TW-11 apply creates the team of a file, parents first, and a second apply has nothing to change', async () => {
    const dry = await apply(TEAM, '--dry-run')
    assert.match(dry, /^\+ lead\n {4}runtime: mock\n {4}role: Leads\n/)
    assert.match(dry, /\+ You lead\.\n/)
    assert.match(dry, /2 to create\n$/)
    assert.deepEqual(await list(), [])
    assert.match(await apply(TEAM), /2 to create\ndone\n$/)
    const [lead, worker] = [await find('lead'), await find('worker')]
    assert.deepEqual([lead['max_attempts'], worker['parent_id'], worker['team']], [2, lead.id, 'crew'])
    assert.equal(await readPrompt('lead', 'system-prompt.md'), 'You lead.\nBe kind.\n')
    assert.equal(replyText(await platform.send(worker.id, 'x')), 'worked: x')
    assert.equal(await apply(TEAM), 'nothing to change\n')
    assert.equal((await find('worker')).id, worker.id)
  })

  test('TW-11 two applies of one new team at the same moment make each workspace once', async () => {
    const both = await Promise.all([molecule(['apply', '-'], TEAM), molecule(['apply', '-'], TEAM)])
    assert.ok(
      both.some(({ code }) => code === 0),
      JSON.stringify(both),
    )
    // One that came too late says what to do; or it began after the other had ended.
    for (const { code, err } of both) if (code !== 0) assert.match(err, /of this name already .*run the command again/)
    assert.deepEqual((await list()).map(({ name }) => name).sort(), ['lead', 'worker'])
    await apply(TEAM)
    assert.equal(await apply(TEAM), 'nothing to change\n')
  })

  test('TW-11 apply changes what differs: settings go back to their default, null removes a prompt, parents turn around', async () => {
    await apply(TEAM)
    const changed = `team: crew
workspaces:
  lead:
    runtime: mock
    parent: worker
    prompts: { system-prompt.md: null, IDENTITY.md: "Ada\\n" }
  worker:
    role: Works hard
    runtime: mock
    runtime_config: { delay: 1ms }
`
    const out = await apply(changed)
    assert.match(out, /^ {4}max_attempts: 2 -> 4$/m)
    assert.match(out, /^ {4}role: Works -> Works hard$/m)
    assert.match(out, /^ {4}runtime_config\.reply: worked: %s -> none$/m)
    assert.match(out, /2 to change\ndone\n$/)
    const [lead, worker] = [await find('lead'), await find('worker')]
    assert.deepEqual([lead['role'], lead['max_attempts'], lead['parent_id']], ['', 4, worker.id])
    assert.deepEqual([worker['parent_id'], lead['permission']], [undefined, undefined])
    assert.equal((worker['runtime_config'] as Record<string, unknown>)['reply'], undefined)
    assert.match(await readPrompt('lead', 'system-prompt.md'), /there is no file/)
    assert.equal(await readPrompt('lead', 'IDENTITY.md'), 'Ada\n')
    assert.equal(await apply(changed), 'nothing to change\n')
  })

  test('TW-11 TW-10 a budget of the file is set, changed, exported and removed; one at a wrong place is named', async () => {
    const team = (lines: string) => `team: crew\nworkspaces:\n  lead:\n    runtime: mock\n${lines}`
    const daily = async () =>
      ((await find('lead'))['runtime_config'] as Record<string, unknown>)['max_cost_usd_per_day']
    const file = team('    budgets: { max_cost_usd_per_day: 2.5 }\n')
    assert.match(await apply(file), /budgets\.max_cost_usd_per_day: 2\.5/)
    assert.equal(await daily(), 2.5)
    assert.equal(await apply(file), 'nothing to change\n')
    const exported = await succeed(['export'])
    assert.match(exported, /^ {4}budgets:\n {6}max_cost_usd_per_day: 2\.5$/m)
    assert.equal(await apply(exported), 'nothing to change\n')
    // A form writes the amount as text.
    const { id } = await find('lead')
    await platform.request('PATCH', `/workspaces/${id}`, { runtime_config: { max_cost_usd_per_day: '2.5' } })
    assert.equal(await apply(file), 'nothing to change\n')
    assert.match(await apply(team('')), /budgets\.max_cost_usd_per_day: 2\.5 -> none/)
    assert.equal(await daily(), undefined)
    const misplaced = await refuse(team('    runtime_config: { max_cost_usd_per_day: 1 }\n'))
    assert.match(misplaced, /:5: write max_cost_usd_per_day under budgets/)
    assert.match(
      await refuse(team('    budgets: { max_cost_usd_per_day: -1 }\n')),
      /:5: .*max_cost_usd_per_day: must be/,
    )
    assert.match(await refuse(team('    budgets: { max_cost_per_day: 1 }\n')), /did you mean "max_cost_usd_per_day"/)
  })

  test('TW-11 a file with problems changes nothing and names the line of each', async () => {
    const err = await refuse(`team: crew
workspaces:
  a: { runtime: mock, parent: b }
  b:
    runtime: mock
    parent: a
    parnt: a
    max_attempts: many
  c:
    runtime: mock
    weather: 3
    prompts: { MEMORY.md: x }
`)
    assert.match(err, /^error: -:7: workspaces\.b\.parnt: there is no such key; did you mean "parent"\?$/m)
    assert.match(err, /^-:8: workspaces\.b\.max_attempts: /m)
    assert.match(err, /^-:11: workspaces\.c\.weather: there is no such key; the keys are role, runtime, /m)
    assert.match(err, /^-:12: workspaces\.c\.prompts\.MEMORY\.md: there is no such key/m)
    const inCircle = 'team: crew\nworkspaces:\n  a: { parent: b }\n  b: { parent: c }\n  c: { parent: a }\n'
    assert.equal(await refuse(inCircle), 'error: -:3: a cycle of parents: a -> b -> c -> a\n')
    assert.match(await refuse('team: crew\nworkspaces:\n  a: {}\n  a: {}\n'), /^error: -:4: .*twice$/m)
    assert.match(await refuse('team: crew\nworkspaces:\n  "1": {}\n  1: {}\n'), /^error: -:4: .*twice$/m)
    assert.match(await refuse('workspaces: {}\n'), /^error: -:1: team: /)
    assert.match(await refuse('- a\n'), /^error: -:1: it must be a map/)
    assert.match(await refuse('team: [\n'), /^error: -:2: /)
    const stranger = 'team: crew\nworkspaces:\n  a:\n    runtime: mock\n    parent: nowhere\n'
    assert.match(
      await refuse(stranger),
      /^error: -:5: there is no workspace "nowhere" in the file or on the platform\n/,
    )
  })

  test('TW-11 what only the platform can refuse changes nothing either, and names the line', async () => {
    const first = 'team: crew\nworkspaces:\n  good: { runtime: mock }\n'
    assert.match(await refuse(`${first}  bad:\n    runtime: nonsense\n`), /^error: -:5: "bad": unknown .*nonsense/)
    const folderless = `${first}  bad:\n    runtime: mock\n    working_dir: /there/is/none\n`
    assert.match(await refuse(folderless), /^error: -:6: "bad": working_dir: there is no folder/)
    const option = `${first}  bad:\n    runtime: mock\n    runtime_config:\n      delay: soon\n`
    assert.match(await refuse(option), /^error: -:[67]: "bad": .*delay/)
  })

  test('TW-11 a name that two workspaces have is refused with their ids', async () => {
    const ids = [await platform.exec('cat', { name: 'twin' }), await platform.exec('cat', { name: 'twin' })]
    const err = await refuse('team: crew\nworkspaces:\n  twin: { runtime: mock }\n')
    assert.match(err, /^error: -:3: 2 workspaces are called "twin" /)
    for (const id of ids) assert.ok(err.includes(id))
  })

  test('TW-11 only --prune deletes, and only what the same team made', async () => {
    await apply(TEAM)
    await platform.exec('cat', { name: 'by hand' })
    await apply('team: others\nworkspaces:\n  foreign: { runtime: mock }\n')
    const small = 'team: crew\nworkspaces:\n  by hand: { runtime: exec, runtime_config: { cmd: cat } }\n'
    assert.match(await apply(small), /note: "worker" was made by this team and is not in the file; --prune deletes it/)
    assert.equal((await list()).length, 4)
    const { code, out, err } = await molecule(['apply', '-', '--prune'], small)
    assert.deepEqual([code, out], [2, ''], 'without a terminal it asks for --yes')
    assert.match(err, /^error: --prune would delete "worker", "lead", .*add --yes to confirm.* Nothing was changed\n$/)
    assert.equal((await list()).length, 4)
    assert.match(await apply(small, '--prune', '--dry-run'), /^- worker\n- lead\n2 to delete\n$/)
    assert.match(await apply(small, '--prune', '--yes'), /^- worker\n- lead\n2 to delete\ndone\n$/)
    assert.deepEqual((await list()).map(({ name }) => name).sort(), ['by hand', 'foreign'])
    assert.equal(await apply('team: crew\nworkspaces: {}\n', '--prune'), 'nothing to change\n')
    assert.equal((await list()).length, 2)
  })

  test('TW-11 after a failure in the middle, a second apply makes only what is missing', async () => {
    const id = await platform.exec('cat', { name: 'second' })
    const full = join(platform.dataDir, 'workspaces', id.replace('ws_', 'ws-'), 'full')
    await mkdir(full)
    for (let n = 0; n < FILES_MAX; n++) await writeFile(join(full, `${n}`), '')
    const second = 'second: { runtime: exec, runtime_config: { cmd: cat }, prompts: { USER.md: "Ana" } }'
    const text = `team: crew\nworkspaces:\n  first: { runtime: mock }\n  ${second}\n`
    const { code, err } = await molecule(['apply', '-'], text)
    assert.equal(code, 1)
    assert.match(
      err,
      /"second": there are already 1000 files: remove some first; 1 of 2 changes are made; run the command again to continue\n$/,
    )
    await rm(full, { recursive: true })
    assert.match(await apply(text), /^~ second\n {4}USER\.md: Ana\n1 to change\ndone\n$/)
    assert.equal(await readPrompt('second', 'USER.md'), 'Ana')
  })

  test('TW-11 --prune refuses to delete a workspace with another one below it, before it changes anything', async () => {
    await apply(TEAM)
    const { id } = await find('lead')
    await platform.exec('cat', { name: 'below', parent_id: id })
    const err = await refuse('team: crew\nworkspaces:\n  new: { runtime: mock }\n', '--prune')
    assert.match(err, /--prune cannot delete "lead": "below" is below it and stays/)
  })

  test('TW-11 SC-1 schedules of the file are made and changed, and --prune removes only those of the team', async () => {
    const withSchedule = (schedules: string) =>
      `team: crew\nworkspaces:\n  clerk:\n    runtime: mock\n    schedules:\n${schedules}`
    const yearly = '      yearly: { cron: 0 0 1 1 *, text: Sum up }\n'
    const text = withSchedule(`      daily: { cron: 0 7 * * 1-5, text: Report }\n${yearly}`)
    assert.match(await apply(text), /schedules\.daily\.cron: 0 7 \* \* 1-5\n {4}schedules\.daily\.text: Report\n/)
    assert.equal(await apply(text), 'nothing to change\n')
    const daily = (await listSchedules()).find(({ name }) => name === 'daily')
    assert.deepEqual([daily?.['time_zone'], daily?.['missed'], daily?.['team']], ['UTC', 'skip', 'crew'])
    await platform.request('PATCH', `/schedules/${daily?.id}`, { paused: true })
    const own = { name: 'by hand', cron: '0 0 2 1 *', text: 'mine' }
    await platform.request('POST', `/workspaces/${(await find('clerk')).id}/schedules`, own)
    const changed = withSchedule('      daily: { cron: 0 8 * * *, time_zone: Europe/Berlin, text: Report }\n')
    const out = await apply(changed)
    assert.match(out, /^ {4}schedules\.daily\.cron: 0 7 \* \* 1-5 -> 0 8 \* \* \*$/m)
    assert.match(out, /^ {4}schedules\.daily\.time_zone: UTC -> Europe\/Berlin$/m)
    assert.match(out, /^note: schedule "yearly" of "clerk" was made by this team and is not in the file; --prune/m)
    assert.deepEqual((await listSchedules()).map(({ name }) => name).sort(), ['by hand', 'daily', 'yearly'])
    const { err } = await molecule(['apply', '-', '--prune'], changed)
    assert.match(err, /^error: --prune would delete schedule "yearly" of "clerk", and there is no terminal/)
    assert.match(await apply(changed, '--prune', '--yes'), /^- schedule "yearly" of "clerk"\n1 to delete\ndone\n$/)
    const left = await listSchedules()
    assert.deepEqual(left.map(({ name }) => name).sort(), ['by hand', 'daily'])
    assert.equal(left.find(({ name }) => name === 'daily')?.['paused'], true, 'apply does not end a pause')
    assert.equal(await apply(await succeed(['export'])), 'nothing to change\n')
    assert.match(await apply('team: crew\nworkspaces: {}\n', '--prune', '--yes'), /^- clerk\n1 to delete\ndone\n$/)
    assert.deepEqual(await listSchedules(), [], 'the schedules of a deleted workspace go with it')
  })

  test('TW-11 SC-1 a bad schedule changes nothing and names its line, and a name of two schedules is refused', async () => {
    const head = 'team: crew\nworkspaces:\n  clerk:\n    runtime: mock\n    schedules:\n      daily:\n        text: x\n'
    assert.match(await refuse(`${head}        cron: 61 * * * *\n`), /^error: -:8: .*cron: the times "61 /)
    const onMars = `${head}        cron: 0 7 * * *\n        time_zone: Mars\n`
    assert.match(await refuse(onMars), /^error: -:9: .*there is no time zone "Mars"; use a name such as/)
    const never = await refuse(`${head}        cron: 0 0 30 2 *\n`)
    assert.match(never, /^error: -:8: .*the times "0 0 30 2 \*" never come/)
    const misspelt = await refuse(`${head}        corn: 0 7 * * *\n`)
    assert.match(misspelt, /^error: -:6: .*\.cron: /)
    assert.match(misspelt, /^-:8: .*did you mean "cron"\?$/m)
    const { body } = await platform.request('POST', '/workspaces', { name: 'clerk', runtime: 'mock' })
    const same = { name: 'daily', cron: '0 0 2 1 *', text: 'mine' }
    for (let n = 0; n < 2; n++) await platform.request('POST', `/workspaces/${body.id}/schedules`, same)
    const twice = await refuse(`${head}        cron: 0 7 * * *\n`)
    assert.match(twice, /^error: -:6: 2 schedules are called "daily" \(sch_/)
    const exported = await molecule(['export'])
    assert.equal(exported.err, 'note: 2 schedules of "clerk" are called "daily" and are left out\n')
    assert.equal(await apply(exported.out), 'nothing to change\n')
  })

  test('TW-11 export writes what apply reads: applying the export changes nothing', async () => {
    await apply(TEAM)
    const worker = await find('worker')
    const config = {
      reply: '${x}',
      list: [1, { a: true }],
      api_key: 'sk-very-secret',
      env: { A_KEY: 'sk-nested' },
      nothing: '',
    }
    await platform.exec('cat', {
      name: 'odd: "name" #1',
      role: 'two\nlines\r\n',
      runtime_config: config,
      permission: 'ask',
    })
    const odd = (await find('odd: "name" #1')).id
    const headers = { Authorization: `Bearer ${platform.token}` }
    const prompt = '\u0001 tab\t\r\n  deep\n\n: é 漢 ${y} \n\n'
    const put = await fetch(`${platform.url}/workspaces/${odd}/files/USER.md`, { method: 'PUT', headers, body: prompt })
    assert.equal(put.status, 201)
    const text = await succeed(['export'])
    assert.ok(!/sk-very-secret|sk-nested/.test(text))
    assert.match(text, /# not written, because it may be secret: runtime_config\.api_key, runtime_config\.env$/m)
    assert.equal(await apply(text), 'nothing to change\n')
    assert.equal(await apply(await succeed(['export', '-o', 'json'])), 'nothing to change\n')
    const part = await succeed(['export', 'worker'])
    assert.match(part, /^team: crew\nworkspaces:\n {2}worker:\n/)
    assert.equal(
      await apply(part),
      'note: "lead" was made by this team and is not in the file; --prune deletes it\nnothing to change\n',
    )
    await platform.request('DELETE', `/workspaces/${worker.id}?confirm=${worker.id}`)
    await platform.request('DELETE', `/workspaces/${odd}?confirm=${odd}`)
    assert.match(await apply(text), /2 to create\ndone\n$/)
    // The file of workspaces of several teams has a name of its own.
    assert.equal(await succeed(['export', 'worker']), part.replace('team: crew', 'team: team'))
    assert.equal(await readPrompt('odd: "name" #1', 'USER.md'), prompt)
  })

  test('TW-11 a secret of the file is shown nowhere, kept when it is set, and written again on request', async () => {
    const text = 'team: crew\nworkspaces:\n  a: { runtime: mock, runtime_config: { api_key: sk-one } }\n'
    const out = await apply(text)
    assert.match(out, /runtime_config\.api_key: \[hidden\]/)
    assert.equal(await apply(text.replace('sk-one', 'sk-two')), 'nothing to change\n')
    assert.equal(await apply('team: crew\nworkspaces:\n  a: { runtime: mock }\n'), 'nothing to change\n')
    assert.match(
      await apply(text, '--write-secrets'),
      /api_key: \[hidden\] -> \[hidden\]\n(note: .*\n)?1 to change\ndone\n$/,
    )
  })

  test('TW-11 variables have a default in the file, and --set gives another value', async () => {
    const text =
      'team: crew\nvariables: { reply: one, tries: 3 }\nworkspaces:\n  a:\n    runtime: mock\n    max_attempts: ${tries}\n    runtime_config: { reply: "${reply}" }\n'
    await apply(text, '--set', 'tries=7')
    const { id, max_attempts: tries } = await find('a')
    assert.deepEqual([tries, replyText(await platform.send(id, 'x'))], [7, 'one'])
    const wrong = async (pair: string) => {
      const { code, err } = await molecule(['apply', '-', '--set', pair], text)
      assert.equal(code, 2, err)
      return err
    }
    assert.match(await wrong('replay=x'), /--set replay: the file declares reply, tries/)
    assert.match(await wrong('tries=x'), /--set tries takes a number/)
    assert.match(await refuse(text.replace('reply: one, ', '')), /^error: -:7: the variable reply has no value/)
  })

  test('TW-11 an external workspace prints its connect command once, and its token works', async () => {
    const out = await apply('team: crew\nworkspaces:\n  laptop: { runtime: external }\n')
    const connect = /^connect "laptop" with: .* connect (ws_\w+) --token (\S+) --api-url \S+$/m.exec(out)
    const headers = { Authorization: `Bearer ${connect?.[2]}` }
    assert.equal((await fetch(`${platform.url}/workspaces/${connect?.[1]}`, { headers })).status, 200)
  })

  test('TW-11 in a terminal apply shows the difference and asks, and anything but yes changes nothing', async (t) => {
    const file = join(folder, 'team.yaml')
    await writeFile(file, TEAM)
    const env = { MOLECULE_HOME: platform.dataDir }
    const no = openTerminal(t, ['apply', file], env)
    await no.waitForScreen(/2 to create\s+Make these changes\? \[y\/N\]/)
    no.type('n\r')
    assert.equal(await no.ended(), 1)
    assert.match(no.screen(), /nothing was changed/)
    assert.deepEqual(await list(), [])
    const end = openTerminal(t, ['apply', file], env)
    await end.waitForScreen(/\[y\/N\]/)
    end.type('\u0004')
    assert.equal(await end.ended(), 1, 'Ctrl-D means no')
    const yes = openTerminal(t, ['apply', file], env)
    await yes.waitForScreen(/\[y\/N\]/)
    yes.type('y\r')
    assert.equal(await yes.ended(), 0)
    assert.equal((await list()).length, 2)
    const again = openTerminal(t, ['apply', file], env)
    assert.equal(await again.ended(), 0)
    assert.match(again.screen(), /nothing to change/)
  })

  test('TW-11 SC-1 the schedule of the example nightly-report runs, and its answer is the last result', async () => {
    await succeed(['apply', join(import.meta.dirname, '../../examples/nightly-report.yaml')])
    const [schedule] = await listSchedules()
    await succeed(['schedule', 'run', schedule?.id ?? ''])
    const last = async () => (await listSchedules())[0]?.['last'] as { state: string; text: string } | null
    await waitUntil(async () => (await last())?.state === 'TASK_STATE_COMPLETED', 'the report is written')
    assert.equal((await last())?.text, 'echo: Write the report of the last day.')
  })

  for (const [example, first] of [
    ['reviewer-pair', 'author'],
    ['planner-and-workers', 'planner'],
    ['nightly-report', 'reporter'],
  ] as const) {
    test(`TW-11 the example ${example} is applied and answers`, async () => {
      const file = join(import.meta.dirname, `../../examples/${example}.yaml`)
      assert.match(await succeed(['apply', file]), /done\n$/)
      assert.equal(await succeed(['apply', file]), 'nothing to change\n')
      assert.equal(await succeed(['agent', 'send', first, 'hello']), 'echo: hello\n')
      const other = await succeed(['apply', file, '--set', 'runtime=claude', '--dry-run'])
      assert.match(other, /^ {4}runtime: mock -> claude-code$/m)
    })
  }
})
