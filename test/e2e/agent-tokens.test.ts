/** RT-9 on a real platform: a token belongs to one vendor, and only that vendor's program gets it. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type PlatformUnderTest, startPlatform } from '../harness/platform.ts'

const CLAUDE_TOKEN = 'token-of-claude-4711'
const OTHERS = ['codex', 'gemini', 'opencode'] as const

describe('RT-9 the token of an agent', () => {
  let platform: PlatformUnderTest
  let folder: string
  let bin: string

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'molecule-tokens-'))
    bin = join(folder, 'agent')
    // Records its environment and fails: what it answers is of no interest here.
    await writeFile(bin, '#!/bin/sh\nenv > "$(dirname "$0")/environment"\nexit 3\n')
    await chmod(bin, 0o755)
    platform = await startPlatform({ env: { HOME: folder, OPENAI_API_KEY: '', CODEX_API_KEY: '' } })
    const template = join(platform.dataDir, 'templates', 'claude-code-default')
    await mkdir(template, { recursive: true })
    await writeFile(join(template, '.auth-token'), `${CLAUDE_TOKEN}\n`)
  })
  after(async () => {
    await platform?.dispose()
    await rm(folder, { recursive: true, force: true })
  })

  const homeOf = (id: string) => join(platform.dataDir, 'workspaces', id.replace('ws_', 'ws-'))
  const create = async (runtime: string, more: Record<string, unknown> = {}) => {
    const { runtime_config: options, ...fields } = more
    const { status, body } = await platform.request('POST', '/workspaces', {
      name: runtime,
      runtime,
      max_attempts: 1,
      ...fields,
      runtime_config: { bin, mode: 'oneshot', permission: 'bypass', ...(options as object) },
    })
    assert.equal(status, 201, JSON.stringify(body))
    return body.id as string
  }
  /** The environment that the program of the workspace gets. */
  const environmentOf = async (id: string) => {
    await rm(join(folder, 'environment'), { force: true })
    await platform.send(id, 'go')
    assert.ok(existsSync(join(folder, 'environment')), 'the program was started')
    return readFileSync(join(folder, 'environment'), 'utf8')
  }

  test('RT-9 the token of the default template reaches claude, and no program of another vendor', async () => {
    assert.match(await environmentOf(await create('claude-code')), /^CLAUDE_CODE_OAUTH_TOKEN=token-of-claude-4711$/m)
    for (const runtime of OTHERS) {
      const id = await create(runtime)
      assert.doesNotMatch(await environmentOf(id), /token-of-claude/, runtime)
      assert.ok(!(await readdir(homeOf(id))).includes('.auth-token'), runtime)
    }
  })

  test('RT-9 a named template gives its token only to its own runtime', async () => {
    const template = join(platform.dataDir, 'templates', 'mine')
    await mkdir(join(template, 'keys'), { recursive: true })
    await writeFile(join(template, '.auth-token'), 'token-a-of-gemini')
    await writeFile(join(template, 'keys', 'g'), 'token-b-of-gemini')
    await writeFile(join(template, 'config.yaml'), 'name: x\nruntime: gemini\n')
    assert.match(
      await environmentOf(await create('gemini', { template: 'mine' })),
      /^GEMINI_API_KEY=token-a-of-gemini$/m,
    )
    assert.doesNotMatch(await environmentOf(await create('codex', { template: 'mine' })), /of-gemini/)
    const naming = 'name: x\nruntime: gemini\nruntime_config:\n  auth_token_file: keys/g\n'
    await writeFile(join(template, 'config.yaml'), naming)
    assert.match(
      await environmentOf(await create('gemini', { template: 'mine' })),
      /^GEMINI_API_KEY=token-b-of-gemini$/m,
    )
    const other = await create('codex', { template: 'mine' })
    assert.doesNotMatch(await environmentOf(other), /of-gemini/)
    assert.ok(!existsSync(join(homeOf(other), 'keys', 'g')))
    assert.doesNotMatch(await environmentOf(await create('opencode', { template: 'claude-code-default' })), /of-claude/)
  })

  test('RT-9 a workspace that gets another runtime keeps its token for the earlier one', async () => {
    const id = await create('claude-code')
    const patch = (change: object) => platform.request('PATCH', `/workspaces/${id}`, change)
    assert.equal((await patch({ runtime: 'codex' })).status, 200)
    assert.doesNotMatch(await environmentOf(id), /token-of-claude/)
    const { activity } = (await platform.request('GET', `/workspaces/${id}/activity?type=config_changed`)).body
    assert.match(JSON.stringify(activity), /kept as \.auth-token\.claude-code/)
    assert.equal((await platform.request('GET', `/workspaces/${id}/files/.auth-token.claude-code`)).status, 403)
    await writeFile(join(homeOf(id), '.auth-token'), 'token-of-codex')
    assert.match(await environmentOf(id), /^CODEX_API_KEY=token-of-codex$/m)
    // Back again, this time in the file and not through the API.
    const config = join(homeOf(id), 'config.yaml')
    await writeFile(config, (await readFile(config, 'utf8')).replace('runtime: codex', 'runtime: claude-code'))
    const again = await environmentOf(id)
    assert.match(again, /^CLAUDE_CODE_OAUTH_TOKEN=token-of-claude-4711$/m)
    assert.doesNotMatch(again, /token-of-codex/)
  })

  test('RT-9 a token file that the owner names together with the runtime is used', async () => {
    const id = await create('claude-code')
    await writeFile(join(folder, 'key'), 'token-on-purpose')
    const runtime_config = { auth_token_file: join(folder, 'key') }
    assert.equal(
      (await platform.request('PATCH', `/workspaces/${id}`, { runtime: 'gemini', runtime_config })).status,
      200,
    )
    assert.match(await environmentOf(id), /^GEMINI_API_KEY=token-on-purpose$/m)
    const own = await create('codex', { runtime_config })
    assert.match(await environmentOf(own), /^CODEX_API_KEY=token-on-purpose$/m)
  })

  test("RT-9 an earlier version's copy of claude's token in another workspace is not used", async () => {
    const id = await create('opencode')
    await writeFile(join(homeOf(id), '.auth-token'), CLAUDE_TOKEN)
    assert.equal((await platform.request('POST', `/workspaces/${id}/restart`)).status, 200)
    assert.doesNotMatch(await environmentOf(id), /token-of-claude/)
  })

  test('RT-9 the documented commands take the token of a Mac from its key chain to every new workspace', async () => {
    const page = await readFile('docs/backends/claude-code.md', 'utf8')
    const recipe = /```sh\n((?:(?!```)[\s\S])*find-generic-password[\s\S]*?)```/.exec(page)?.[1] ?? ''
    // claude keeps the tokens of its MCP servers in the same entry.
    const entry = {
      claudeAiOauth: {
        refreshToken: 'never',
        accessToken: 'token-of-the-mac',
        expiresAt: 1,
        scopes: ['user:inference'],
      },
      mcpOAuth: { 'tracker|1a2b': { serverName: 'tracker', accessToken: 'token-of-a-server' } },
    }
    const security = join(folder, 'security')
    const asked = '[ "$*" = "find-generic-password -s Claude Code-credentials -w" ]'
    await writeFile(security, `#!/bin/sh\n${asked} && echo '${JSON.stringify(entry)}'\n`, { mode: 0o755 })
    const env = { PATH: `${folder}:${process.env['PATH']}`, MOLECULE_HOME: platform.dataDir }
    assert.equal(spawnSync('sh', ['-e'], { input: recipe, env }).status, 0)
    const id = await create('claude-code')
    assert.match(await environmentOf(id), /^CLAUDE_CODE_OAUTH_TOKEN=token-of-the-mac$/m)
  })
})

test('RT-9 OPENAI_API_KEY is the last source of codex: its status and its process have it', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'molecule-tokens-'))
  const bin = join(folder, 'codex')
  await writeFile(bin, '#!/bin/sh\nenv > "$(dirname "$0")/environment"\nexit 3\n')
  await chmod(bin, 0o755)
  const platform = await startPlatform({ env: { HOME: folder, CODEX_HOME: '', OPENAI_API_KEY: 'key-of-openai' } })
  t.after(async () => {
    await platform.dispose()
    await rm(folder, { recursive: true, force: true })
  })
  const { body } = await platform.request('POST', '/workspaces', {
    name: 'codex',
    runtime: 'codex',
    max_attempts: 1,
    runtime_config: { bin, mode: 'oneshot' },
  })
  assert.notEqual(body.status, 'needs_login', body.status_reason)
  await platform.send(body.id, 'go')
  assert.match(await readFile(join(folder, 'environment'), 'utf8'), /^CODEX_API_KEY=key-of-openai$/m)
  await mkdir(join(folder, '.codex'))
  await writeFile(join(folder, '.codex', 'auth.json'), '{}')
  await platform.send(body.id, 'go')
  assert.doesNotMatch(await readFile(join(folder, 'environment'), 'utf8'), /^CODEX_API_KEY=/m)
})
