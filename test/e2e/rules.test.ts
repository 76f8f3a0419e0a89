/** Rules, end to end: "always allow" by API and command line, on the platform and behind a bridge. */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import type { PendingAskView } from '../../src/client/needs.ts'
import type { RuleView } from '../../src/client/views.ts'
import type { Task } from '../../src/protocol/a2a.ts'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import { MOLECULE } from '../harness/command.ts'
import { type PlatformUnderTest, startPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const run = promisify(execFile)
const { path: bin, dir } = createFakeProgram('claude')
const COMPLETED = 'TASK_STATE_COMPLETED'
const ASKS = 'TASK_STATE_AUTH_REQUIRED'

describe('rules', () => {
  let platform: PlatformUnderTest
  before(async () => {
    platform = await startPlatform({ env: CLAUDE_LOGGED_IN })
  })
  after(() => platform.dispose())

  const env = () => ({
    ...process.env,
    ...CLAUDE_LOGGED_IN,
    MOLECULE_API_URL: platform.url,
    MOLECULE_HOME: platform.dataDir,
  })
  const molecule = async (...args: string[]) => (await run(MOLECULE, args, { env: env() })).stdout
  const make = async (workspace: object) => {
    const { status, body } = await platform.request('POST', '/workspaces', { name: 'Ada', ...workspace })
    assert.equal(status, 201, JSON.stringify(body))
    return body
  }
  const pendingOf = async (id: string): Promise<PendingAskView> => {
    const [pending] = (await platform.request('GET', `/pending?workspace_id=${id}`)).body.pending
    return pending
  }
  const stateOf = async (id: string, command: string) => (await platform.send(id, `!ask ${command}`)).status.state
  const completed = (id: string, { id: taskId }: Task) =>
    waitUntil(async () => (await platform.rpc(id, 'GetTask', { id: taskId })).body.result?.status.state === COMPLETED)
  const activityOf = async (id: string, type: string) => {
    const { activity } = (await platform.request('GET', `/workspaces/${id}/activity?type=${type}`)).body
    return activity.map((entry: Record<string, string>) => [
      entry['name'],
      entry['subject'],
      entry['text'],
      entry['by'],
    ])
  }

  test('PL-24 the ask shows what a rule would cover; the answer makes it; it allows, is listed and revoked', async () => {
    const { id } = await make({ runtime: 'claude-code', runtime_config: { bin } })
    const task = await platform.send(id, '!ask npm test')
    assert.equal(task.status.state, ASKS)
    const pending = await pendingOf(id)
    assert.deepEqual([pending.would_cover?.scope, pending.would_cover?.pattern], ['exact', 'npm test'])
    assert.deepEqual([pending.would_cover_more?.scope, pending.would_cover_more?.pattern], ['prefix', 'npm test *'])
    assert.match(pending.would_cover_more?.sentence ?? '', /Still asked/)
    const answer = (body: object) => platform.request('POST', `/pending/${pending.id}`, body)
    for (const body of [
      { decision: 'deny', always: true },
      { decision: 'allow', pattern: 'npm test *' },
      { decision: 'allow', always: true, pattern: 'npm *x' },
    ]) {
      assert.equal((await answer(body)).status, 400, JSON.stringify(body))
    }
    const made = await answer({ decision: 'allow', always: true, pattern: 'npm test *' })
    assert.equal(made.status, 200, JSON.stringify(made.body))
    await completed(id, task)
    assert.equal(await stateOf(id, 'npm test src/a.test.ts'), COMPLETED)
    assert.deepEqual(await activityOf(id, 'rule'), [['Bash', 'npm test *', 'made', 'admin']])
    assert.deepEqual((await activityOf(id, 'permission')).at(-1), ['Bash', 'npm test *', 'allowed by rule', 'admin'])
    const [rule] = (await platform.request('GET', `/workspaces/${id}/rules`)).body.rules as RuleView[]
    assert.deepEqual([rule?.id, rule?.made_by, rule?.used], [made.body.rule.id, 'admin', 1])
    assert.equal((await platform.request('DELETE', `/workspaces/${id}/rules/${rule?.id}`)).status, 204)
    assert.equal(await stateOf(id, 'npm test src/a.test.ts'), ASKS)
    assert.equal((await activityOf(id, 'rule')).at(-1)[2], 'revoked')
  })

  test('PL-24 CL-1 molecule pending show and allow --always, molecule rules list and revoke', async () => {
    const { id } = await make({ name: 'Commands', runtime: 'claude-code', runtime_config: { bin } })
    const task = await platform.send(id, '!ask git status && git diff')
    const pending = await pendingOf(id)
    assert.match(
      await molecule('pending', 'show', pending.id),
      /git status && git diff\n\nAllow once\n.*Always allow. Covers exactly this command.*\n {2}\S.* pending allow .* --always\n$/s,
    )
    await assert.rejects(molecule('pending', 'allow', pending.id, '--pattern', 'git *'), /--pattern needs --always/)
    assert.match(await molecule('pending', 'allow', pending.id, '--always'), /^allowed .*without asking/s)
    await completed(id, task)
    assert.equal(await stateOf(id, 'git status && git diff'), COMPLETED)
    assert.equal(await stateOf(id, 'git status && git diff; id'), ASKS)
    const [rule] = JSON.parse(await molecule('rules', 'list', 'Commands', '-o', 'json')) as RuleView[]
    assert.match(await molecule('rules'), /Commands +Bash .* 1, last .* exactly git status && git diff/)
    assert.match(await molecule('rules', 'revoke', 'Commands', rule?.id ?? ''), /^revoked /)
    assert.match(await molecule('rules', 'list', 'Commands'), /No rules/)
  })

  test('PL-24 CN-2 a rule allows what an agent behind a bridge asks for', async () => {
    const { id, auth_token: token } = await make({ name: 'Laptop', runtime: 'external' })
    const args = ['connect', id, '--dir', dir, '--backend', 'claude', '--backend-opt', `bin=${bin}`]
    const bridge = spawn(MOLECULE, args, { env: { ...env(), MOLECULE_WORKSPACE_TOKEN: token }, stdio: 'ignore' })
    try {
      const online = () =>
        waitUntil(async () => (await platform.request('GET', `/workspaces/${id}`)).body.status === 'online')
      await online()
      const task = await platform.send(id, '!ask make test')
      const pending = await pendingOf(id)
      await platform.request('POST', `/pending/${pending.id}`, { decision: 'allow', always: true })
      await completed(id, task)
      assert.equal(await stateOf(id, 'make test'), COMPLETED)
      assert.equal(await stateOf(id, 'make tests'), ASKS)
      const [asked] = (await platform.request('GET', `/pending?workspace_id=${id}`)).body.pending
      await platform.request('POST', `/pending/${asked.id}`, { decision: 'deny' })
      assert.deepEqual(
        (await activityOf(id, 'permission')).map((entry: string[]) => entry[2]),
        [...['allowed', 'allowed by rule', 'denied']],
      )
    } finally {
      bridge.kill()
      await once(bridge, 'exit')
    }
  })
})
