/** A permission, end to end: an agent asks, the pending list shows the ask, and the owner's decision reaches the agent. */
import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import type { Task } from '../../src/protocol/a2a.ts'
import { createFakeProgram } from '../fakes/agents/fake-program.ts'
import { MOLECULE } from '../harness/command.ts'
import { type PlatformUnderTest, startPlatform } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const run = promisify(execFile)
const { path: bin, dir } = createFakeProgram('claude')

describe('permissions', () => {
  let platform: PlatformUnderTest
  before(async () => {
    platform = await startPlatform()
  })
  after(() => platform.dispose())

  const make = async (workspace: object) => {
    const { status, body } = await platform.request('POST', '/workspaces', { name: 'Ada', ...workspace })
    assert.equal(status, 201, JSON.stringify(body))
    return body
  }
  const ask = async (id: string, command: string) => {
    const task = await platform.send(id, `!ask ${command}`)
    assert.equal(task.status.state, 'TASK_STATE_AUTH_REQUIRED')
    const [pending] = (await platform.request('GET', `/pending?workspace_id=${id}`)).body.pending
    return { task, pending }
  }
  const reply = async (id: string, { id: taskId }: Task): Promise<string> => {
    let task: Task | undefined
    await waitUntil(async () => {
      task = (await platform.rpc(id, 'GetTask', { id: taskId })).body.result
      return task?.status.state === 'TASK_STATE_COMPLETED'
    })
    return task?.artifacts?.[0]?.parts[0]?.text ?? ''
  }

  test('AG-16 the pending list shows what an agent asks, and the agent acts on the decision', async () => {
    const { id } = await make({ runtime: 'claude-code', runtime_config: { bin } })
    const { task, pending } = await ask(id, 'rm -rf build')
    assert.deepEqual([pending.tool, pending.subject], ['Bash', 'rm -rf build'])
    assert.equal(task.status.message?.parts[0]?.text, 'waiting for permission to use Bash')
    const status = async () => (await platform.request('GET', `/workspaces/${id}`)).body
    const asking = await status()
    const reason = 'a turn waits for your permission: see "molecule pending"'
    assert.deepEqual([asking.status, asking.status_reason], ['online', reason])
    const answer = await platform.request('POST', `/pending/${pending.id}`, { decision: 'allow' })
    assert.deepEqual([answer.status, answer.body.decision], [200, 'allow'])
    assert.match(await reply(id, task), /^ran .*rm -rf build/)
    assert.equal((await status()).status_reason, undefined)
    const late = await platform.request('POST', `/pending/${pending.id}`, { decision: 'deny' })
    assert.equal(late.status, 400, JSON.stringify(late.body))
  })

  test("AG-16 RT-9 the agent gets the workspace's permission mode and the token file of its home", async () => {
    const { id } = await make({ runtime: 'claude-code', permission: 'allowed_tools', runtime_config: { bin } })
    await writeFile(join(platform.dataDir, 'workspaces', id.replace('ws_', 'ws-'), '.auth-token'), 'token-of-ada\n')
    assert.equal((await platform.send(id, 'hello')).status.state, 'TASK_STATE_COMPLETED')
    const starts = (await readFile(join(dir, 'starts.jsonl'), 'utf8')).trim().split('\n')
    const { argv, env } = JSON.parse(starts.at(-1) ?? '{}')
    assert.equal(argv[argv.indexOf('--permission-mode') + 1], 'dontAsk')
    assert.equal(env.CLAUDE_CODE_OAUTH_TOKEN, 'token-of-ada')
    assert.match(env.MOLECULE_WORKSPACE_TOKEN, /^mol_conversation_/)
  })

  test('AG-16 CN-2 CL-1 molecule pending lists and denies the ask of an agent behind a bridge', async () => {
    const { id, auth_token: token } = await make({ runtime: 'external' })
    const env = { ...process.env, MOLECULE_API_URL: platform.url, MOLECULE_HOME: platform.dataDir }
    const args = ['connect', id, '--dir', dir, '--backend', 'claude', '--backend-opt', `bin=${bin}`]
    const bridge = spawn(MOLECULE, args, { env: { ...env, MOLECULE_WORKSPACE_TOKEN: token }, stdio: 'ignore' })
    try {
      await waitUntil(async () => (await platform.request('GET', `/workspaces/${id}`)).body.status === 'online')
      const { task, pending } = await ask(id, 'rm -rf /')
      const listed = await run(MOLECULE, ['pending'], { env })
      assert.match(listed.stdout, /Bash .* rm -rf \//)
      assert.match((await run(MOLECULE, ['pending', 'deny', pending.id], { env })).stdout, /denied/)
      assert.match(await reply(id, task), /^was told Permission denied/)
      assert.match((await run(MOLECULE, ['pending'], { env })).stdout, /No request waits/)
    } finally {
      bridge.kill()
      await once(bridge, 'exit')
    }
  })
})
