/** Approvals through a running platform: they survive a kill, expire as denied, and are answered once. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import type { NeedView } from '../../src/client/needs.ts'
import { CLAUDE_LOGGED_IN, createFakeProgram } from '../fakes/agents/fake-program.ts'
import { createExternalWorkspace, startBridge, temporaryHome } from '../harness/bridge.ts'
import { type PlatformUnderTest, startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const { path: bin } = createFakeProgram('claude')

const asks = async (platform: PlatformUnderTest): Promise<NeedView[]> => {
  const { needs_you: needs } = (await platform.request('GET', '/needs-you')).body as { needs_you: NeedView[] }
  return needs.filter(({ kind }) => kind === 'permission')
}
const answer = (platform: PlatformUnderTest, id: string, body: object) =>
  platform.request('POST', `/pending/${id}`, body)
const replyOf = async (platform: PlatformUnderTest, workspaceId: string, taskId: string): Promise<string> => {
  let reply: string | undefined
  await waitUntil(async () => {
    const { status, artifacts } = (await platform.rpc(workspaceId, 'GetTask', { id: taskId })).body.result
    reply = artifacts?.[0]?.parts[0]?.text
    return status.state === 'TASK_STATE_COMPLETED'
  }, 'the turn ends')
  return reply ?? ''
}

/** Kills the platform, changes its store, and starts it again at the same address. */
async function restart(t: TestContext, platform: PlatformUnderTest, change = ''): Promise<PlatformUnderTest> {
  await platform.stop('SIGKILL')
  const database = new DatabaseSync(join(platform.dataDir, 'molecule.db'))
  database.exec(change)
  database.close()
  const args = ['--port', new URL(platform.url).port]
  return await startPlatformFor(t, { dataDir: platform.dataDir, args, env: CLAUDE_LOGGED_IN })
}

test('GW-9 an approval of a turn on a bridge survives a killed platform: it is allowed once, or expires as denied', async (t) => {
  let platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  const workspace = await createExternalWorkspace(platform)
  const backend = ['--backend', 'claude', '--backend-opt', `bin=${bin}`]
  await startBridge(t, {
    url: platform.url,
    workspace,
    home: temporaryHome(t),
    args: backend,
    env: CLAUDE_LOGGED_IN,
  })
  const task = await platform.send(workspace.id, '!ask make one')
  const [before] = await asks(platform)
  assert.ok((before?.permission?.expires_in ?? 0) <= 30 * 60 && (before?.permission?.expires_in ?? 0) > 25 * 60)

  platform = await restart(t, platform)
  const [after] = await asks(platform)
  assert.deepEqual([after?.id, after?.expires_at !== undefined], [before?.id, true])
  assert.equal((await answer(platform, after?.id ?? '', { decision: 'allow' })).status, 200)
  assert.equal((await answer(platform, after?.id ?? '', { decision: 'allow' })).status, 200)
  assert.equal((await answer(platform, after?.id ?? '', { decision: 'deny' })).status, 400)
  assert.match(await replyOf(platform, workspace.id, task.id), /^ran .*make one/)

  const late = await platform.send(workspace.id, '!ask make two')
  const [open] = await asks(platform)
  platform = await restart(t, platform, `update asks set expires_at = 1 where state = 'open'`)
  assert.match(await replyOf(platform, workspace.id, late.id), /^was told Permission denied/)
  assert.deepEqual(await asks(platform), [])
  const refused = await answer(platform, open?.id ?? '', { decision: 'allow', always: true })
  assert.equal(refused.status, 400)
  assert.match(refused.body.error.message, /denied already, or not answered in time/)
  assert.deepEqual((await platform.request('GET', `/workspaces/${workspace.id}/rules`)).body.rules, [])
  const { steps } = (await platform.request('GET', `/messages/${late.id}/story`)).body
  assert.ok(
    steps.some(({ text }: { text: string }) => text === 'no answer came in time, so the use of Bash was denied'),
  )
})

test('GW-9 PL-24 an approval of a turn that a kill ended counts for nothing, the message runs again, and rules stay', async (t) => {
  let platform = await startPlatformFor(t, { env: CLAUDE_LOGGED_IN })
  const made = await platform.request('POST', '/workspaces', {
    name: 'hosted',
    runtime: 'claude-code',
    runtime_config: { bin },
  })
  const { id } = made.body
  const first = await platform.send(id, '!ask make one')
  const [ruled] = await asks(platform)
  await answer(platform, ruled?.id ?? '', { decision: 'allow', always: true })
  assert.match(await replyOf(platform, id, first.id), /^ran .*make one/)
  const second = await platform.send(id, '!ask make two')
  const [before] = await asks(platform)

  platform = await restart(t, platform)
  const old = await answer(platform, before?.id ?? '', { decision: 'allow' })
  assert.deepEqual([old.status, old.body.error.message], [400, 'no turn waits for this answer any more'])
  // The fake reads the note about the interrupted attempt as a message, and asks nothing.
  assert.match(await replyOf(platform, id, second.id), /make two/)
  assert.deepEqual(await asks(platform), [])
  assert.equal((await platform.send(id, '!ask make one')).status.state, 'TASK_STATE_COMPLETED')
})
