/** The claude-code backend on earlier versions of claude: what they do not know, what they report, and what people see. */
import assert from 'node:assert/strict'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { BackendEvent } from '../../src/backends/backend.ts'
import { type SetUpClaudeOptions, setUpClaude, startsOf } from '../fakes/agents/claude-harness.ts'
import { CLAUDE_LOGGED_IN, createFakeProgram, type FakeProgram } from '../fakes/agents/fake-program.ts'
import { errorOf, replyOf, tokenOf } from '../fakes/turns.ts'
import { createExternalWorkspace, startBridge, temporaryHome } from '../harness/bridge.ts'
import { runCommand } from '../harness/command.ts'
import { type PlatformUnderTest, replyText, startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const SNAPSHOT = '--system-prompt-snapshot'
const NEVER = new AbortController().signal

/** Runs turns of one conversation, each on a new backend, as after a restart of the platform. */
function restarting(t: TestContext, given: SetUpClaudeOptions) {
  let sessionToken: string | undefined
  return async (text: string, turn: Record<string, unknown> = {}) => {
    const { run, backend, warnings } = setUpClaude(t, given)
    const events = await run(text, { ...(sessionToken !== undefined && { sessionToken }), ...turn })
    sessionToken = tokenOf(events)
    await backend.close()
    return { events, warnings, limits: backend.limits?.() ?? [] }
  }
}

const argumentsOf = (program: FakeProgram) => startsOf(program).map(({ argv }) => argv)
const costsIn = (events: readonly BackendEvent[]) =>
  events.flatMap((event) => (event.type === 'usage' ? [event.costUsd] : []))

for (const mode of ['session', 'oneshot']) {
  test(`RT-18 AG-1 ${mode}: a resumed conversation of an older claude gets no option that it does not know`, async (t) => {
    const program = createFakeProgram('claude', 'old')
    const turn = restarting(t, { program, options: { mode } })
    await turn('one', { systemPrompt: 'Be kind.' })
    const { events, warnings, limits } = await turn('!count two', { systemPrompt: 'Be brief.' })
    assert.equal(replyOf(events), 'n=2 one|!count two')
    assert.equal(startsOf(program).at(-1)?.files.systemPrompt, 'Be brief.')
    // Nothing was tried first, and nothing is lost: this version takes every new system prompt.
    assert.equal(startsOf(program).length, 2)
    assert.deepEqual([warnings, limits], [[], []])
    assert.ok(events.every((event) => event.type !== 'status'))
  })

  test(`RT-18 RT-5 ${mode}: an option that claude refuses against its version is left out, and the message answered`, async (t) => {
    const program = createFakeProgram('claude', 'without-system-prompt-snapshot')
    const { run, backend } = setUpClaude(t, { program, options: { mode } })
    const systemPrompt = 'Be kind.'
    const sessionToken = tokenOf(await run('one', { systemPrompt }))
    assert.deepEqual(backend.limits?.(), [])
    // Two at once: each of them finds out by itself.
    const changed = { systemPrompt: 'Be brief.', sessionToken }
    const both = await Promise.all(
      ['a', 'b'].map((id) => run('!count two', { ...changed, conversationId: id, id: `turn-${mode}-${id}` })),
    )
    for (const events of both) assert.match(replyOf(events), /^n=[23] one\|/)
    const tried = argumentsOf(program).length
    await run('three', { ...changed, systemPrompt: 'Be short.' })
    assert.equal(argumentsOf(program).length, tried + 1, 'the option is not tried again')
    assert.ok(!argumentsOf(program).at(-1)?.includes(SNAPSHOT))
    assert.match(
      backend.limits?.().join() ?? '',
      /^this claude does not know the option --system-prompt-snapshot, so .*: update claude with `npm install/,
    )
  })

  test(`RT-13 ${mode}: the cost of a turn is known in every version, also after a restart`, async (t) => {
    for (const version of ['old', 'sums', 'echo']) {
      const turn = restarting(t, { program: createFakeProgram('claude', version), options: { mode } })
      const costs: (number | undefined)[] = []
      for (const text of ['one', 'two', 'three']) costs.push(...costsIn((await turn(text)).events))
      assert.deepEqual(costs, [0.25, 0.25, 0.25], version)
    }
  })

  test(`AG-1 ${mode}: a conversation that loses its model goes back to the default of claude, once`, async (t) => {
    const program = createFakeProgram('claude')
    const environment = { CLAUDE_CONFIG_DIR: join(program.dir, 'config') }
    const turn = restarting(t, { program, options: { mode }, environment })
    const modelOf = () => {
      const argv = argumentsOf(program).at(-1) ?? []
      return argv.includes('--model') ? argv[argv.indexOf('--model') + 1] : undefined
    }
    await turn('one', { model: 'opus' })
    await turn('two')
    assert.equal(modelOf(), 'default')
    await turn('three')
    assert.equal(modelOf(), undefined)
    // The default of its user is not claude's own.
    mkdirSync(environment.CLAUDE_CONFIG_DIR)
    writeFileSync(join(environment.CLAUDE_CONFIG_DIR, 'settings.json'), '{"model": "haiku"}')
    await turn('four', { model: 'opus' })
    await turn('five')
    assert.equal(modelOf(), 'haiku')
    await turn('six', { model: 'opus' })
    const named = restarting(t, { program, options: { mode }, environment: { ...environment, ANTHROPIC_MODEL: 'x' } })
    await named('seven', { model: 'opus' })
    await named('eight')
    assert.equal(modelOf(), undefined)
  })
}

test('AG-1 a warm claude goes back to the default model in a new process, which is then kept', async (t) => {
  const program = createFakeProgram('claude')
  const { run } = setUpClaude(t, { program })
  let sessionToken = tokenOf(await run('one', { model: 'opus' }))
  for (const text of ['two', 'three']) {
    const events = await run(`!count ${text}`, { sessionToken })
    sessionToken = tokenOf(events)
    assert.match(replyOf(events), /^n=\d one\|/)
  }
  const models = argumentsOf(program).map((argv) => argv[argv.indexOf('--model') + 1])
  assert.deepEqual(models, ['opus', 'default'])
})

test('RT-18 an option that claude needs and does not know is final, with its name', async (t) => {
  const program = createFakeProgram('claude', 'without-model')
  const { run } = setUpClaude(t, { program, options: { mode: 'oneshot' } })
  const { message, retryable } = errorOf(await run('one', { model: 'opus' }))
  assert.match(message, /is not compatible: option --model missing/)
  assert.equal(retryable, false)
})

test('RT-18 CL-3 the probe starts claude as a resumed run does', async (t) => {
  const instead = 'a changed system prompt may not reach a conversation that has begun'
  for (const mode of ['session', 'oneshot']) {
    const probe = async (scenario: string) => {
      const program = createFakeProgram('claude', scenario)
      const { backend } = setUpClaude(t, { program, options: { mode } })
      const drifts = await backend.probe?.(NEVER)
      return { drifts, resumed: argumentsOf(program).filter((argv) => argv.includes('--resume')) }
    }
    const old = await probe('old')
    assert.deepEqual(old.drifts, [])
    assert.ok(old.resumed.length === 1 && !old.resumed[0]?.includes(SNAPSHOT))
    const present = await probe('echo')
    assert.deepEqual(present.drifts, [])
    assert.ok(present.resumed[0]?.includes(SNAPSHOT))
    const refusing = await probe('without-system-prompt-snapshot')
    assert.deepEqual(refusing.drifts, [{ missing: `option ${SNAPSHOT} missing`, instead }])
  }
})

test('AG-1 mode text: bin=echo args=hello answers what `echo -p hello` prints', async (t) => {
  const program = { ...createFakeProgram('claude'), path: 'echo' }
  const { run, backend } = setUpClaude(t, { program, options: { args: 'hello', mode: 'text' } })
  assert.equal((await backend.validate(NEVER)).ok, true)
  const events = await run('any message', { systemPrompt: 'Be kind.', model: 'opus' })
  assert.equal(replyOf(events), '-p hello\n')
  assert.ok(events.every((event) => event.type !== 'session'))
})

test('AG-1 mode text: the message is on stdin, failures are those of a command, unused options are named', async (t) => {
  const { dir } = createFakeProgram('claude')
  const path = join(dir, 'own')
  writeFileSync(
    path,
    '#!/bin/sh\nread -r line; echo "got $line"; [ "$2" = fail ] && { echo why >&2; exit 3; }; exit 0\n',
    {
      mode: 0o755,
    },
  )
  const program = { path, dir }
  const options = { mode: 'text', model: 'opus', permission: 'ask' }
  const { run, warnings } = setUpClaude(t, { program, options })
  assert.equal(replyOf(await run('the message')), 'got the message\n')
  assert.equal(warnings.length, 2)
  assert.match(warnings.join(), /option "model": in mode text the program gets only the words of args/)
  const failing = setUpClaude(t, { program, options: { mode: 'text', args: 'fail' } })
  const { code, message } = errorOf(await failing.run('x'))
  assert.equal(code, 'exit')
  assert.match(message, /own -p fail" exited with code 3 \(stderr: why/)
})

/** A platform whose workspaces run a fake claude. */
async function openPlatform(t: TestContext) {
  const platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  const make = async (name: string, bin: string, more: object = {}): Promise<string> => {
    const body = { name, runtime: 'claude-code', runtime_config: { bin, ...more } }
    const created = await platform.request('POST', '/workspaces', body)
    assert.equal(created.status, 201, JSON.stringify(created.body))
    return created.body.id
  }
  return { platform, make }
}

const limitsOf = async (platform: PlatformUnderTest, id: string): Promise<readonly string[] | undefined> =>
  (await platform.request('GET', `/workspaces/${id}`)).body.limits

const molecule = async (platform: PlatformUnderTest, ...args: string[]) => {
  const env = { MOLECULE_HOME: platform.dataDir, MOLECULE_API_URL: platform.url }
  const { code, out, err } = await runCommand(args, { env })
  assert.equal(code, 0, err)
  return out
}

test('RT-18 a check of the version that failed is repeated: nothing is concluded from it', async (t) => {
  const program = createFakeProgram('claude', 'old')
  const busy = join(program.dir, 'busy')
  const own = join(program.dir, 'own')
  writeFileSync(own, `#!/bin/sh\n[ "$1" = --version ] && [ -e ${busy} ] && exit 1\nexec ${program.path} "$@"\n`, {
    mode: 0o755,
  })
  writeFileSync(busy, '')
  const { run, backend } = setUpClaude(t, { program: { ...program, path: own } })
  assert.equal((await backend.validate(NEVER)).ok, false)
  const sessionToken = tokenOf(await run('one', { systemPrompt: 'Be kind.' }))
  rmSync(busy)
  const events = await run('!count two', { systemPrompt: 'Be brief.', sessionToken })
  assert.equal(replyOf(events), 'n=2 one|!count two')
  assert.deepEqual([startsOf(program).length, costsIn(events), backend.limits?.()], [2, [0.25], []])
})

test('RT-13 TW-10 a budget of a workspace bites with a claude that reports only a sum', async (t) => {
  const { platform, make } = await openPlatform(t)
  const id = await make('old', createFakeProgram('claude', 'old').path, { max_cost_usd_per_day: 0.4 })
  const contextId = 'one-conversation'
  for (const text of ['one', 'two']) {
    assert.equal((await platform.send(id, text, { contextId })).status.state, 'TASK_STATE_COMPLETED')
  }
  const message = { messageId: 'third', contextId, role: 'ROLE_USER', parts: [{ text: 'three' }] }
  await platform.rpc(id, 'SendMessage', { message, configuration: { returnImmediately: true } })
  await waitUntil(
    async () => (await platform.request('GET', '/pending')).body.budgets.length === 1,
    'the budget is spent',
  )
  const { body } = await platform.request('GET', `/workspaces/${id}`)
  assert.deepEqual(body.today, { turns: 2, unknown_turns: 0, cost_usd: 0.5 })
})

test('RT-18 AG-16 a workspace that works with less says so in its view, in status and in inspect, until it is mended', async (t) => {
  const { platform, make } = await openPlatform(t)
  const program = createFakeProgram('claude', 'without-input-format')
  const bin = join(program.dir, 'installed')
  symlinkSync(program.path, bin)
  const id = await make('less', bin)
  assert.equal(await limitsOf(platform, id), undefined)
  assert.equal((await platform.send(id, 'one')).status.state, 'TASK_STATE_COMPLETED')
  await waitUntil(async () => (await limitsOf(platform, id)) !== undefined, 'the turn has shown it')
  const [limit = ''] = (await limitsOf(platform, id)) ?? []
  assert.match(limit, /^each message starts a new process \(option --input-format missing\)/)
  assert.match(limit, /an action that needs your permission is refused/)
  assert.match(await molecule(platform, 'status'), /Works with less than it could:\n {2}less {2}each message starts/)
  assert.match(await molecule(platform, 'workspace', 'inspect', 'less'), /limits +each message starts/)
  // The owner does what the sentence says.
  assert.match(limit, /install what "molecule doctor" names, then restart the workspace$/)
  rmSync(bin)
  symlinkSync(createFakeProgram('claude').path, bin)
  await molecule(platform, 'workspace', 'restart', 'less')
  assert.equal(await limitsOf(platform, id), undefined)
  assert.equal((await platform.send(id, 'two')).status.state, 'TASK_STATE_COMPLETED')
  assert.equal(await limitsOf(platform, id), undefined)
  assert.doesNotMatch(await molecule(platform, 'status'), /Works with less/)
})

test('RT-18 BK-8 a claude older than the tested ones is named before its first turn', async (t) => {
  const { platform, make } = await openPlatform(t)
  const id = await make('ancient', createFakeProgram('claude', 'ancient').path)
  const [limit = ''] = (await limitsOf(platform, id)) ?? []
  assert.match(limit, /^claude 2\.0\.1 is older than 2\.1\.197, the oldest version .* update claude with `npm install/)
})

test('AG-1 connect with bin=echo args=hello mode=text answers what `echo -p hello` prints', async (t) => {
  const platform = await startPlatformFor(t)
  const workspace = await createExternalWorkspace(platform)
  const args = ['bin=echo', 'args=hello', 'mode=text'].flatMap((option) => ['--backend-opt', option])
  await startBridge(t, { url: platform.url, workspace, home: temporaryHome(t), args })
  assert.equal(replyText(await platform.send(workspace.id, 'any message')), '-p hello\n')
})

test('RT-18 a bridge reports what does not work with the program on its machine', async (t) => {
  const platform = await startPlatformFor(t)
  const workspace = await createExternalWorkspace(platform)
  const { path } = createFakeProgram('claude', 'ancient')
  const args = ['--backend', 'claude-code', '--backend-opt', `bin=${path}`]
  await startBridge(t, { url: platform.url, workspace, home: temporaryHome(t), args })
  const [limit = ''] = (await limitsOf(platform, workspace.id)) ?? []
  assert.match(limit, /^claude 2\.0\.1 is older than 2\.1\.197/)
})
