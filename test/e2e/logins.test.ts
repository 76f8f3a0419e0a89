/** A workspace whose agent is not logged in says so wherever its status shows, and heals by itself. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createFakeProgram } from '../fakes/agents/fake-program.ts'
import { cleanEnvironment, MOLECULE, runCommand } from '../harness/command.ts'
import { getWorkspace, type PlatformUnderTest, startPlatformFor } from '../harness/platform.ts'
import { waitUntil } from '../harness/wait.ts'

const claude = createFakeProgram('claude')
const codex = createFakeProgram('codex')

/** Variables that would be a log-in. */
const NO_KEYS = Object.fromEntries(
  [
    ...['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'CLAUDE_CODE_OAUTH_TOKEN', 'CLAUDE_AUTH_TOKEN'],
    ...['CLAUDE_CONFIG_DIR', 'CODEX_HOME', 'CODEX_API_KEY', 'OPENAI_API_KEY'],
  ].map((name) => [name, '']),
)

function makeHome(t: TestContext) {
  const home = mkdtempSync(join(tmpdir(), 'molecule-login-'))
  t.after(() => rmSync(home, { recursive: true, force: true }))
  const put = (path: string, text: string) => {
    mkdirSync(join(home, path, '..'), { recursive: true })
    writeFileSync(join(home, path), text)
  }
  return { env: { ...NO_KEYS, HOME: home }, put }
}

async function make(platform: PlatformUnderTest, body: object) {
  const made = await platform.request('POST', '/workspaces', { max_attempts: 1, ...body })
  assert.equal(made.status, 201, JSON.stringify(made.body))
  return made.body
}

const waitForStatus = (platform: PlatformUnderTest, id: string, status: string) =>
  waitUntil(
    async () => (await getWorkspace(platform, id)).status === status,
    () => `the workspace is ${status}`,
  )

test('RT-7 CL-3 CL-1 a workspace whose CLI is not logged in needs login until it is, in every list', async (t) => {
  const { env, put } = makeHome(t)
  const platform = await startPlatformFor(t, { env })
  const made = await make(platform, { name: 'Ada', runtime: 'claude-code', runtime_config: { bin: claude.path } })
  const reason = 'claude is not logged in: run "claude" and log in, or set ANTHROPIC_API_KEY'
  assert.deepEqual([made.status, made.status_reason], ['needs_login', reason])
  const cli = { ...env, MOLECULE_API_URL: platform.url, MOLECULE_HOME: platform.dataDir }
  for (const command of [['workspace', 'list'], ['agent', 'list'], ['doctor']]) {
    const { out } = await runCommand(command, { env: cli })
    assert.match(out, /needs (login|a log-in).*claude is not logged in: run "claude" and log in/, command.join(' '))
  }
  put('.claude/.credentials.json', '{}')
  await waitForStatus(platform, made.id, 'online')
  const exec = await make(platform, { name: 'Bo', runtime: 'exec', runtime_config: { cmd: 'cat' } })
  assert.equal(exec.status, 'online')
})

test('RT-7 RT-6 a log-in that the provider refuses shows after the turn, and heals by a new log-in or an answer', async (t) => {
  const { env, put } = makeHome(t)
  put('.claude/.credentials.json', '{"old":1}')
  const platform = await startPlatformFor(t, { env })
  const { id, status } = await make(platform, {
    name: 'Ada',
    runtime: 'claude-code',
    runtime_config: { bin: claude.path },
  })
  assert.equal(status, 'online')
  const fail = async () => {
    assert.equal((await platform.send(id, '!error-401 x')).status.state, 'TASK_STATE_FAILED')
    await waitForStatus(platform, id, 'needs_login')
  }
  await fail()
  assert.match(
    (await getWorkspace(platform, id)).status_reason,
    /^the model provider refused the log-in of claude: run "claude" and log in/,
  )
  put('.claude/.credentials.json', '{"a new log-in":1}')
  await waitForStatus(platform, id, 'online')
  await fail()
  assert.equal((await platform.send(id, 'hello')).status.state, 'TASK_STATE_COMPLETED')
  await waitForStatus(platform, id, 'online')
})

test('RT-13 CN-3 CL-3 the env_key of a codex provider is looked for where the agent runs, also behind a bridge', async (t) => {
  const { env, put } = makeHome(t)
  put('.codex/config.toml', 'model_provider = "corp"\n[model_providers.corp]\nenv_key = "CORP_KEY"\n')
  const platform = await startPlatformFor(t, { env })
  const hosted = await make(platform, { name: 'Ada', runtime: 'codex', runtime_config: { bin: codex.path } })
  const reason = /^codex is not logged in: set CORP_KEY: it is the env_key of the provider "corp"/
  assert.equal(hosted.status, 'needs_login')
  assert.match(hosted.status_reason, reason)
  const external = await make(platform, { name: 'Bo', runtime: 'external' })
  const args = ['connect', external.id, '--dir', codex.dir, '--backend', 'codex', '--backend-opt', `bin=${codex.path}`]
  const connect = async (more: Record<string, string>, status: string) => {
    const own = { MOLECULE_API_URL: platform.url, MOLECULE_HOME: join(env.HOME, 'bridge') }
    const bridge = spawn(MOLECULE, args, {
      env: cleanEnvironment({ ...env, ...own, ...more, MOLECULE_WORKSPACE_TOKEN: external.auth_token }),
      stdio: 'ignore',
    })
    try {
      await waitForStatus(platform, external.id, status)
      return (await getWorkspace(platform, external.id)).status_reason
    } finally {
      bridge.kill()
      await once(bridge, 'exit')
    }
  }
  assert.match(await connect({}, 'needs_login'), reason)
  assert.equal(await connect({ CORP_KEY: 'x' }, 'online'), undefined)
})
